"""Real model classes of transformers from real config.json files, or from published dimensions."""
import json
from pathlib import Path

from transformers import AutoConfig, CONFIG_MAPPING

TREE = Path(__file__).resolve().parents[2]
CONFIGS = TREE / "tests" / "catalog" / "hf_configs"

# Name as published: the config.json in the tree, or dimensions under transformers' own keys with
# every other key at the default of the configuration class (which are those of the first release).
FROM_FILE = {
    "meta-llama/Llama-2-7b-hf": "meta-llama--Llama-2-7b-hf.json",
    "meta-llama/Llama-3.1-8B": "meta-llama--Meta-Llama-3.1-8B.json",
    "codellama/CodeLlama-34b-Instruct-hf": "codellama--CodeLlama-34b-Instruct-hf.json",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": "mlc--tinyllama_1b_chat_v1.0.json",
    "HuggingFaceTB/SmolLM2-135M": "mlc--smollm2_135m.json",
    "mistralai/Mistral-7B-v0.3": "mistralai--Mistral-7B-Instruct-v0.3.json",
    "mistralai/Mistral-Nemo-Instruct-2407": "mistralai--Mistral-Nemo-Instruct-2407.json",
    "Qwen/Qwen2.5-7B-Instruct": "Qwen--Qwen2.5-7B-Instruct.json",
    "Qwen/Qwen2.5-3B": "mlc--qwen2.5_3b.json",
    "Qwen/Qwen2-0.5B": "mlc--qwen2_0_5b.json",
    "Qwen/Qwen3-0.6B": "Qwen--Qwen3-0.6B.json",
    "Qwen/Qwen3-8B": "Qwen--Qwen3-8B.json",
    "Qwen/Qwen3-30B-A3B": "Qwen--Qwen3-30B-A3B.json",
    "mistralai/Mixtral-8x7B-v0.1": "mistralai--Mixtral-8x7B-v0.1.json",
    "google/gemma-2-2b": "mlc--gemma2_2b.json",
    "google/gemma-3-1b-it": "mlc--gemma3_1b_it.json",
    "google/gemma-2b": "mlc--gemma_2b.json",
    "google/gemma-4-E2B-it": "google--gemma-4-E2B-it.json",
    "google/gemma-4-E4B-it": "google--gemma-4-E4B-it.json",
    "microsoft/Phi-3-mini-4k-instruct": "microsoft--Phi-3-mini-4k-instruct.json",
    "microsoft/phi-4": "microsoft--phi-4.json",
    "microsoft/phi-2": "microsoft--phi-2.json",
    "gpt2": "mlc--gpt2.json",
    "facebook/opt-6.7b": "facebook--opt-6.7b.json",
    "bigscience/bloom-560m": "bigscience--bloom-560m.json",
    "allenai/OLMo-2-1124-32B": "mlc--olmo2_32b.json",
    "bigcode/starcoder2-7b": "mlc--starcoder2.json",
    "stabilityai/stablelm-2-1_6b": "mlc--stablelm-2-zephyr-1_6b.json",
    "togethercomputer/RedPajama-INCITE-Base-3B-v1": "mlc--redpajama_3b_v1.json",
    "LiquidAI/LFM2-350M": "LiquidAI--LFM2-350M.json",
    "LiquidAI/LFM2-8B-A1B": "LiquidAI--LFM2-8B-A1B.json",
    "ibm-granite/granite-4.0-h-tiny": "ibm-granite--granite-4.0-h-tiny.json",
    "tiiuae/Falcon-H1-7B-Base": "tiiuae--Falcon-H1-7B-Base.json",
    "Qwen/Qwen3.5-27B": "Qwen--Qwen3.5-27B.json",
    "deepseek-ai/DeepSeek-V3.2": "deepseek-ai--DeepSeek-V3.2.json",
    "zai-org/GLM-5": "zai-org--GLM-5.json",
}
KIMI_FULL_ATTENTION = [4, 8, 12, 16, 20, 24, 27]  # its config.json, counted from 1
FROM_DIMENSIONS = {
    "ai21labs/Jamba-v0.1": ("jamba", dict()),
    "google/gemma-3n-E4B-it": ("gemma3n_text", dict()),
    "MiniMaxAI/MiniMax-Text-01": ("minimax", dict(
        hidden_size=6144, intermediate_size=9216, num_hidden_layers=80, num_attention_heads=64,
        num_key_value_heads=8, head_dim=128, num_local_experts=32, vocab_size=200064,
        layer_types=(["linear_attention"] * 7 + ["full_attention"]) * 10)),
    "gpt2-xl": ("gpt2", dict(n_layer=48, n_embd=1600, n_head=25)),
    "EleutherAI/pythia-1.4b": ("gpt_neox", dict(
        num_hidden_layers=24, hidden_size=2048, num_attention_heads=16, intermediate_size=8192,
        vocab_size=50304)),
    "EleutherAI/pythia-6.9b": ("gpt_neox", dict(
        num_hidden_layers=32, hidden_size=4096, num_attention_heads=32, intermediate_size=16384,
        vocab_size=50432)),
    "tiiuae/falcon-7b": ("falcon", dict(
        num_hidden_layers=32, hidden_size=4544, num_attention_heads=71, multi_query=True,
        parallel_attn=True, bias=False, vocab_size=65024, new_decoder_architecture=False)),
    "mosaicml/mpt-7b": ("mpt", dict(n_layers=32, d_model=4096, n_heads=32, vocab_size=50432)),
    "facebook/opt-1.3b": ("opt", dict(
        num_hidden_layers=24, hidden_size=2048, num_attention_heads=32, ffn_dim=8192,
        vocab_size=50272, word_embed_proj_dim=2048)),
    "bigscience/bloom-1b1": ("bloom", dict(
        n_layer=24, hidden_size=1536, n_head=16, vocab_size=250880)),
    "allenai/OLMo-2-1124-7B": ("olmo2", dict(
        num_hidden_layers=32, hidden_size=4096, num_attention_heads=32, num_key_value_heads=32,
        intermediate_size=11008, vocab_size=100352)),
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": ("kimi_linear", dict(linear_attn_config=dict(
        full_attn_layers=KIMI_FULL_ATTENTION, head_dim=128, num_heads=32, short_conv_kernel_size=4,
        kda_layers=[i for i in range(1, 28) if i not in KIMI_FULL_ATTENTION]))),
    "EleutherAI/gpt-j-6b": ("gptj", dict(n_layer=28, n_embd=4096, n_head=16, vocab_size=50400)),
}


def configuration(name, layers=None, **changes):
    """The model's configuration, with fewer layers where asked."""
    if name in FROM_FILE:
        raw = json.loads((CONFIGS / FROM_FILE[name]).read_text())
        raw = raw.get("text_config", raw)  # the language model alone
        kind = {"phi-msft": "phi"}.get(raw["model_type"], raw["model_type"])
        raw.pop("auto_map", None)
        config = CONFIG_MAPPING[kind].from_dict(raw)
    else:
        kind, keys = FROM_DIMENSIONS[name]
        config = CONFIG_MAPPING[kind](**keys)
    if layers:
        cut(config, layers)
    for key, value in changes.items():
        setattr(config, key, value)
    return config


def cut(config, layers):
    for key in ("num_hidden_layers", "n_layer", "n_layers"):
        if hasattr(config, key):
            setattr(config, key, layers)
            break
    for key in ("layer_types", "mlp_layer_types", "indexer_types"):
        if vars(config).get(key):
            setattr(config, key, vars(config)[key][:layers])


def first(config, *keys, default=None):
    for key in keys:
        value = getattr(config, key, None)
        if value is not None:
            return value
    return default


# Their sizes are the catalogued model's: a record's `model` has no members for their mixers.
HYBRIDS = ("lfm2", "lfm2_moe", "granitemoehybrid", "falcon_h1", "qwen3_5_text", "gemma4_text",
           "deepseek_v32", "glm_moe_dsa", "kimi_linear", "jamba", "minimax", "gemma3n_text")


def dimensions(name, config):
    """The `model` object of a run record."""
    hidden = first(config, "hidden_size", "n_embd", "d_model")
    if config.model_type in HYBRIDS:
        return {"name": name.split("/")[-1], "hf_id": name, "layers": config.num_hidden_layers,
                "hidden": hidden, "vocab": config.vocab_size,
                "tied_embeddings": bool(config.tie_word_embeddings)}
    heads = first(config, "num_attention_heads", "n_head", "n_heads")
    kv = first(config, "num_key_value_heads", default=heads)
    if config.model_type == "falcon":
        kv = 1 if config.multi_query else heads
    ffn = first(config, "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")
    if ffn is None:
        ffn = int(getattr(config, "expansion_ratio", 4) * hidden)
    gated = config.model_type not in (
        "gpt2", "gpt_neox", "falcon", "mpt", "bloom", "opt", "gptj", "phi", "starcoder2")
    out = {"name": name.split("/")[-1], "hf_id": name,
           "layers": first(config, "num_hidden_layers", "n_layer", "n_layers"),
           "hidden": hidden, "heads": heads, "kv_heads": kv,
           "head_dim": first(config, "head_dim", default=hidden // heads), "ffn": ffn,
           "vocab": config.vocab_size, "gated_mlp": gated,
           "tied_embeddings": bool(config.tie_word_embeddings)}
    experts = first(config, "num_local_experts", "num_experts")
    if experts:
        out["moe"] = {"experts": experts, "top_k": config.num_experts_per_tok,
                      "expert_ffn": first(config, "moe_intermediate_size", default=ffn),
                      "shared_experts": 0, "dense_layers": 0}
    return out
