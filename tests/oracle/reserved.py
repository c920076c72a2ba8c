"""What PyTorch's own allocator reserves for LoRA on samples of unlike length.

  gcc -shared -fPIC -w -O1 -Wl,-soname,libcuda.so.1 -I HEADERS pretend_card.c -o libpretend_card.so
  LD_PRELOAD=./libpretend_card.so python reserved.py SHORTEST LONGEST STEPS

A Qwen2.5-7B of transformers under PEFT (rank 8, every linear, dropout 0.05), checkpointed and under
autocast as its Trainer runs it, 16 samples a step of lengths drawn evenly. run tells HEADERS.
"""
import random
import sys

import peft
import torch
import transformers
from accelerate.utils.operations import convert_outputs_to_fp32
from transformers.initialization import no_init_weights

GIB = 2**30
SEED = 1


def tell(moment):
    figures = (torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(),
               torch.cuda.max_memory_reserved())
    print(moment, "allocated, its peak, reserved:", *(f"{x / GIB:.2f}" for x in figures),
          flush=True)


def main():
    shortest, longest, steps = map(int, sys.argv[1:4])
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN is not pretended
    # As in case.py; and its cumulative sum would wait for a kernel.
    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None
    config = transformers.Qwen2Config(
        vocab_size=152064, hidden_size=3584, num_hidden_layers=28, num_attention_heads=28,
        num_key_value_heads=4, intermediate_size=18944, tie_word_embeddings=False, use_cache=False)
    with torch.device("cuda"), no_init_weights():
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    tell("loaded")
    model = peft.get_peft_model(model, peft.LoraConfig(
        r=8, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable({"use_reentrant": True})
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    forward = convert_outputs_to_fp32(torch.autocast("cuda", dtype=torch.bfloat16)(model.forward))
    random.seed(SEED)
    for step in range(steps):
        for _ in range(16):
            length = random.randint(shortest, longest)
            ids = torch.zeros(1, length, dtype=torch.long, device="cuda")
            loss = forward(input_ids=ids, labels=ids)["loss"] / 16
            loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tell(f"step {step + 1}")


if __name__ == "__main__":
    main()
