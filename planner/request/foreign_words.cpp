#include "planner/request/foreign_words.hpp"

#include <array>

#include "catalog/adapter.hpp"
#include "catalog/names.hpp"
#include "catalog/preference.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

struct ForeignWord {
  std::string_view key, word, hint;
};
constexpr std::string_view rollouts =
    "its samples are generated between steps, which is not modelled; what its update takes is "
    "that of --method full or lora with --seq of prompt and answer";
constexpr std::string_view data =
    "that is what the data are; all weights are trained by full, "
    "adapters by lora";
constexpr std::string_view some_layers =
    "training some layers and freezing the rest is not modelled; lora or full is";
constexpr std::string_view as_lora =
    "did you mean lora? only the scale or the start of its adapters differs";
constexpr std::string_view other_adapters = "adapters other than LoRA's are not modelled";
constexpr std::string_view teacher = "a teacher beside the model is not modelled";
constexpr std::string_view eight_bits =
    "adapters on 8-bit weights are qlora with "
    "--quantization int8";
constexpr std::string_view in_codes =
    "that is how frozen weights are held: --method qlora, and --quantization says which format";
constexpr std::string_view written_by_accelerate =
    "a script of TRL's is what accelerate writes, for adapters and for preferences";
constexpr std::string_view training_only = "what is forecast is training";
constexpr std::string_view layout =
    "that is how a method is spread over GPUs: --framework and --plan say it, as in "
    "--method full --plan zero=3";
constexpr std::string_view on_drives =
    "--plan nvme=true puts the optimizer's states on drives, beside --offload optimizer";
constexpr std::array<ForeignWord, 85> foreign_word_rows{{
    {"method", "grpo", rollouts},
    {"method", "ppo", rollouts},
    {"method", "rlhf", rollouts},
    {"method", "rloo", rollouts},
    {"method", "rl", rollouts},
    {"method", "sft", data},
    {"method", "finetune", data},
    {"method", "fine-tune", data},
    {"method", "finetuning", data},
    {"method", "instruct", data},
    {"method", "fft", "did you mean full?"},
    {"method", "full-finetune", "did you mean full?"},
    {"method", "full-parameter", "did you mean full?"},
    {"method", "lora-8bit", eight_bits},
    {"method", "8bit", eight_bits},
    {"method", "4bit", "did you mean qlora?"},
    {"method", "cpt", "did you mean pretrain?"},
    {"method", "galore", "that is an optimizer: --optimizer galore-adamw with --method full"},
    {"method", "freeze", some_layers},
    {"method", "frozen", some_layers},
    {"method", "badam", some_layers},
    {"method", "lisa", some_layers},
    {"method", "rslora", as_lora},
    {"method", "pissa", as_lora},
    {"method", "loftq", "did you mean qlora? only how its adapters begin differs"},
    {"method", "qdora", "DoRA on 4-bit weights is not modelled; qlora is the nearest"},
    {"method", "adalora", other_adapters},
    {"method", "vera", other_adapters},
    {"method", "ia3", other_adapters},
    {"method", "adapter", other_adapters},
    {"method", "prompt-tuning", other_adapters},
    {"method", "prefix-tuning", other_adapters},
    {"method", "p-tuning", other_adapters},
    {"method", "distill", teacher},
    {"method", "distillation", teacher},
    {"method", "inference", training_only},
    {"method", "serving", training_only},
    {"method", "unsloth", "that is a framework: --framework unsloth with --method lora or qlora"},
    {"method", "fsdp", layout},
    {"method", "ddp", layout},
    {"method", "deepspeed", layout},
    {"method", "zero3", layout},
    {"offload", "cpu", "did you mean optimizer, params or all? each lies in the host's RAM then"},
    {"offload", "nvme", on_drives},
    {"offload", "disk", on_drives},
    {"quantization", "4bit", "did you mean nf4?"},
    {"quantization", "4-bit", "did you mean nf4?"},
    {"quantization", "int4", "did you mean nf4?"},
    {"quantization", "fp4", "did you mean nf4?"},
    {"quantization", "8bit", "did you mean int8?"},
    {"precision", "bfloat16", "did you mean bf16?"},
    {"precision", "float16", "did you mean fp16?"},
    {"precision", "half", "did you mean fp16?"},
    {"precision", "float32", "did you mean fp32?"},
    {"precision", "mixed",
     "did you mean bf16 or fp16? sums and master weights are as the framework keeps them"},
    {"precision", "amp",
     "did you mean bf16 or fp16? sums and master weights are as the framework keeps them"},
    {"precision", "4bit", in_codes},
    {"precision", "int4", in_codes},
    {"precision", "nf4", in_codes},
    {"precision", "8bit", in_codes},
    {"precision", "int8", in_codes},
    {"preference", "grpo", rollouts},
    {"preference", "ppo", rollouts},
    {"preference", "rlhf", rollouts},
    {"preference", "rloo", rollouts},
    {"objective", "cost", "did you mean dollars?"},
    {"objective", "price", "did you mean dollars?"},
    {"objective", "money", "did you mean dollars?"},
    {"objective", "cheapest", "did you mean dollars?"},
    {"objective", "cheap", "did you mean dollars?"},
    {"objective", "fast", "did you mean time?"},
    {"objective", "fastest", "did you mean time?"},
    {"objective", "throughput", "did you mean time?"},
    {"objective", "speed", "did you mean time?"},
    {"objective", "memory", "did you mean headroom?"},
    {"objective", "power", "did you mean energy?"},
    {"target", "trl", written_by_accelerate},
    {"target", "sft", written_by_accelerate},
    {"target", "peft", written_by_accelerate},
    {"target", "fsdp", "did you mean torchrun or accelerate?"},
    {"target", "zero3", "did you mean deepspeed?"},
    {"target", "slurm", "a target is a framework; its run.sh is what srun starts on every node"},
    {"target", "unsloth", "its runs are scripts of your own, none are written"},
    {"target", "fsdp2", "did you mean torchrun or torchtitan?"},
    {"target", "llama-factory", "its files are read by --plan-from, none are written"},
}};

// "dpo-lora", "lora+dpo": a loss and a method in one word. Empty where it is not.
std::string loss_and_method(std::string_view word) {
  const std::size_t at = word.find_first_of("-+_ ");
  if (at == std::string_view::npos) return {};
  const std::string_view halves[] = {word.substr(0, at), word.substr(at + 1)};
  for (const PreferenceRow& row : preference_rows)
    for (const MethodRow& method : method_rows)
      for (const int loss : {0, 1})
        if (same_name(row.name, halves[loss]) && same_name(method.name, halves[1 - loss]))
          return sentence("did you mean --method ", method.name, " --preference ", row.name, '?');
  return {};
}

}  // namespace

std::string foreign_word(std::string_view key, std::string_view word) {
  if (key == "method")
    for (const PreferenceRow& row : preference_rows)
      if (same_name(row.name, word))
        return sentence(row.name, " is a loss that goes with each of these: --preference ",
                        row.name, " --method lora, say");
  for (const ForeignWord& row : foreign_word_rows)
    if (row.key == key && same_name(row.word, word)) return std::string(row.hint);
  return key == "method" ? loss_and_method(word) : std::string();
}

}  // namespace shardwise
