#include "planner/request/foreign_flags.hpp"

#include <array>

namespace shardwise {
namespace {

struct FlagElsewhere {
  std::string_view flag, here;
};
constexpr std::array<FlagElsewhere, 162> flags_elsewhere{
    {{"--model", "MODEL without a flag"},
     {"-m", "--method, or MODEL without a flag"},
     {"--lora", "--method lora"},
     {"--qlora", "--method qlora"},
     {"--dora", "--method dora"},
     {"--full", "--method full"},
     {"--pretrain", "--method pretrain"},
     {"--seqlen", "--seq"},
     {"--sequence", "--seq"},
     {"--sequence-length", "--seq"},
     {"--max-seq-length", "--seq"},
     {"--cutoff-len", "--seq"},
     {"--model-max-length", "--seq"},
     {"--bs", "--batch"},
     {"--mbs", "--microbatch"},
     {"--num-gpus", "--gpus (8xH100-SXM)"},
     {"--max-memory-fraction", "--max-memory"},
     {"--cpu-ram", "--host-ram"},
     {"--seq-len", "--seq"},
     {"--seq-length", "--seq"},
     {"--max-seq-len", "--seq"},
     {"--max-length", "--seq"},
     {"--context", "--seq"},
     {"--context-length", "--seq"},
     {"--batch-size", "--batch"},
     {"--global-batch", "--batch"},
     {"--global-batch-size", "--batch"},
     {"--micro-batch-size", "--microbatch"},
     {"--rank", "--lora-rank"},
     {"--dtype", "--precision"},
     {"--optim", "--optimizer"},
     {"--lr", "--learning-rate"},
     {"--ram", "--host-ram"},
     {"--epochs", "--samples (epochs times as many)"},
     {"--lora-r", "--lora-rank"},
     {"--gradient-checkpointing", "--recompute (full or none)"},
     {"--activation-checkpointing", "--recompute (full or none)"},
     {"--load-in-4bit", "--method qlora"},
     {"--load-in-8bit", "--method qlora --quantization int8"},
     {"--per-device-train-batch-size", "--microbatch"},
     {"--quant", "--quantization"},
     {"--vram", "--gpus (1x24GB)"},
     {"--4bit", "--method qlora"},
     {"--load-4bit", "--method qlora"},
     {"--load-8bit", "--method qlora --quantization int8"},
     {"--bf16", "--precision bf16"},
     {"--fp16", "--precision fp16"},
     {"--fp8", "--precision fp8"},
     {"--mixed-precision", "--precision"},
     {"--zero1", "--plan zero=1"},
     {"--zero2", "--plan zero=2"},
     {"--zero3", "--plan zero=3"},
     {"--zero-stage", "--plan zero=N"},
     {"--fsdp", "--plan zero=3"},
     {"--gradient-accumulation", "--plan ga=N, or --batch"},
     {"--gradient-accumulation-steps", "--plan ga=N, or --batch"},
     {"--tensor-parallel-size", "--plan tp=N"},
     {"--tensor-model-parallel-size", "--plan tp=N"},
     {"--pipeline-parallel-size", "--plan pp=N"},
     {"--pipeline-model-parallel-size", "--plan pp=N"},
     {"--context-parallel-size", "--plan cp=N"},
     {"--expert-model-parallel-size", "--plan ep=N"},
     {"--use-distributed-optimizer", "--plan zero=1"},
     {"--cpu-offload", "--offload (optimizer, params or all)"},
     {"--use-liger-kernel", "--fused-loss"},
     {"--liger", "--fused-loss"},
     {"--deepspeed", "--plan-from FILE"},
     {"--config", "--plan-from FILE, or MODEL without a flag"},
     {"-b", "--batch"},
     {"-s", "--seq"},
     {"-g", "--gpus"},
     {"-n", "--gpus (8xH100-SXM)"},
     {"--cards", "--gpus (2xRTX-3090)"},
     {"--devices", "--gpus (2xRTX-3090)"},
     {"--n-gpus", "--gpus (8xH100-SXM)"},
     {"--world-size", "--gpus (8xH100-SXM)"},
     {"--nproc-per-node", "--gpus-per-node"},
     {"--nnodes", "--nodes"},
     {"--num-nodes", "--nodes"},
     {"--nvlink", "--gpus (2x3090 nvlink)"},
     {"--quantize", "--method qlora"},
     {"--bits", "--method qlora, of 4 bits, or --quantization int8"},
     {"--quantization-bit", "--method qlora, of 4 bits, or --quantization int8"},
     {"--ctx", "--seq"},
     {"--context-len", "--seq"},
     {"--max-model-len", "--seq"},
     {"--block-size", "--seq"},
     {"--n-ctx", "--seq"},
     {"--per-device-batch-size", "--microbatch"},
     {"--train-batch-size", "--batch"},
     {"--train-micro-batch-size-per-gpu", "--microbatch"},
     {"--dataset", "--samples"},
     {"--dataset-size", "--samples"},
     {"--num-samples", "--samples"},
     {"--max-samples", "--samples"},
     {"--train-tokens", "--tokens"},
     {"--num-train-epochs", "--samples (epochs times as many)"},
     {"--data-parallel-size", "--plan dp=N"},
     {"--tensor-parallel", "--plan tp=N"},
     {"--expert-parallel-size", "--plan ep=N"},
     {"--grad-accum", "--plan ga=N, or --batch"},
     {"--accumulate-grad-batches", "--plan ga=N, or --batch"},
     {"--target-modules", "--lora-targets"},
     {"--lora-target", "--lora-targets"},
     {"--lora-target-modules", "--lora-targets"},
     {"--offload-optimizer", "--offload optimizer"},
     {"--offload-params", "--offload params"},
     {"--nvme", "--plan nvme=true, beside --offload optimizer"},
     {"--tdp", "--power-limit"},
     {"--watts", "--power-limit"},
     {"--output", "--report FILE.html, or --json"},
     {"--save", "--report FILE.html, or --json"},
     {"--html", "--report FILE.html"},
     {"-o", "--report FILE.html, or --json"},
     {"--format", "--json"},
     {"--yaml", "--json"},
     {"--csv", "--json"},
     {"--verbose", "--explain"},
     {"-v", "--explain"},
     {"--debug", "--explain"},
     {"--why", "--explain"},
     {"--longest", "--reach"},
     {"--max-batch", "--reach"},
     {"--max-batch-size", "--reach"},
     {"--max-context", "--reach"},
     {"--max-seq", "--reach"},
     {"--limit", "--reach"},
     {"--op", "--collective"},
     {"--operation", "--collective"},
     {"--max-steps", "--samples (steps times --batch)"},
     {"--steps", "--samples (steps times --batch)"},
     {"--num-steps", "--samples (steps times --batch)"},
     {"--iterations", "--samples (steps times --batch)"},
     {"--train-iters", "--samples (steps times --batch)"},
     {"--timeline", "--trace"},
     {"--chrome-trace", "--trace"},
     {"--perfetto", "--trace"},
     {"--gantt", "--draw"},
     {"--max-rank", "--reach"},
     {"--batch-tokens", "--batch (tokens over --seq)"},
     {"--tokens-per-batch", "--batch (tokens over --seq)"},
     {"--global-batch-tokens", "--batch (tokens over --seq)"},
     {"--measured", "--measured-step"},
     {"--step-time", "--measured-step"},
     {"--time-per-step", "--measured-step"},
     {"--seconds-per-step", "--measured-step"},
     {"--s-per-it", "--measured-step"},
     {"--it-per-s", "--measured-step (1.5it/s)"},
     {"--pcie", "--pcie-lanes"},
     {"--pcie-width", "--pcie-lanes"},
     {"--pcie-x", "--pcie-lanes"},
     {"--lanes", "--pcie-lanes"},
     {"--riser", "--pcie-lanes"},
     {"--egpu", "--pcie-lanes"},
     {"--display", "--used-memory"},
     {"--windows", "--used-memory"},
     {"--wsl", "--used-memory"},
     {"--desktop", "--used-memory"},
     {"--reserve", "--used-memory"},
     {"--reserved-memory", "--used-memory"},
     {"--free-memory", "--used-memory (what is not free)"},
     {"--free-vram", "--used-memory (what is not free)"}}};

constexpr std::string_view attention =
    "attention runs in the kernel that framework and GPU choose (docs/catalog/frameworks.md)";
constexpr std::string_view compiled =
    "whether layers are compiled is of the framework: --framework names one that does";
constexpr std::string_view of_no_matter = "changes neither memory nor time";

constexpr std::string_view held = "--fix tells which values a key may take, as tp=1|2|4";
constexpr std::string_view every_offer =
    "every catalogued card and machine is looked at; --json lists all that run";
constexpr std::string_view every_size = "every size from 1 KiB to 1 GiB is told";
constexpr std::string_view budget_of_run = "--budget is what the whole run may cost";
constexpr std::string_view budget_in_dollars =
    "--budget is in dollars, and the answer tells how long each takes";
constexpr std::string_view cost_of_run =
    "what a run costs is told by shop, and by simulate --tokens";
constexpr std::string_view amount_of_data =
    "--samples or --tokens say how much data there is, and the answer how long it takes";

constexpr std::string_view failures =
    "how often machines fail stands in catalog/operations.json; simulate --tokens counts on it";
constexpr std::string_view told_mfu =
    "simulate tells it, and with --measured-step that of your run";

// Of one command, or of all the others.
struct ToldElsewhere {
  std::string_view command, flag, words;
};
constexpr std::array<ToldElsewhere, 54> told_elsewhere{
    {{"plan", "--max-tp", held},
     {"plan", "--max-pp", held},
     {"plan", "--exclude", held},
     {"plan", "--fastest", "the fastest stands first"},
     {"plan", "--max-time", "the fastest stands first"},
     {"shop", "--rent", every_offer},
     {"shop", "--buy", every_offer},
     {"shop", "--provider", every_offer},
     {"shop", "--cloud", every_offer},
     {"shop", "--spot", every_offer},
     {"shop", "--region", every_offer},
     {"shop", "--hours", budget_in_dollars},
     {"shop", "--days", budget_in_dollars},
     {"shop", "--max-hours", budget_in_dollars},
     {"shop", "--max-days", budget_in_dollars},
     {"shop", "--price", budget_of_run},
     {"shop", "--max-price", budget_of_run},
     {"shop", "--cost", budget_of_run},
     {"shop", "--cheapest", "the cheapest stands first"},
     {"launch", "--dry-run", "without --out nothing is written: the files are printed"},
     {"collectives", "--size", every_size},
     {"collectives", "--sizes", every_size},
     {"collectives", "--bytes", every_size},
     {"collectives", "--min-bytes", every_size},
     {"", "--hours", amount_of_data},
     {"", "--days", amount_of_data},
     {"", "--max-hours", amount_of_data},
     {"", "--max-time", amount_of_data},
     {"", "--spot", failures},
     {"", "--preemptible", failures},
     {"", "--mtbf", failures},
     {"", "--failure-rate", failures},
     {"", "--mfu", told_mfu},
     {"", "--price", cost_of_run},
     {"", "--cost", cost_of_run},
     {"", "--cheapest", "shop tells what runs it, the cheapest first"},
     {"", "--dry-run", "every answer is one: nothing is run"},
     {"", "--flash-attn", attention},
     {"", "--flash-attention", attention},
     {"", "--flash-attention-2", attention},
     {"", "--use-flash-attn", attention},
     {"", "--use-flash-attention", attention},
     {"", "--attn-implementation", attention},
     {"", "--xformers", attention},
     {"", "--sdpa", attention},
     {"", "--compile", compiled},
     {"", "--torch-compile", compiled},
     {"", "--packing", "--lengths FILE tells what packing and padding do"},
     {"", "--lora-alpha", of_no_matter},
     {"", "--warmup-steps", of_no_matter},
     {"", "--weight-decay", of_no_matter},
     {"", "--lr", of_no_matter},
     {"", "--electricity", "the price of electricity stands in catalog/operations.json"},
     {"", "--trust-remote-code", of_no_matter}}};

constexpr std::array<FlagElsewhere, 58> commands_elsewhere{
    {{"estimate", "fit"},
     {"estimate-memory", "fit"},
     {"memory", "fit"},
     {"vram", "fit"},
     {"calculate", "fit"},
     {"predict", "simulate"},
     {"forecast", "simulate"},
     {"train", "simulate, or launch"},
     {"search", "plan"},
     {"optimize", "plan"},
     {"tune", "plan"},
     {"cost", "shop"},
     {"buy", "shop"},
     {"rent", "shop"},
     {"benchmark", "calibrate"},
     {"size", "fit"},
     {"check", "fit"},
     {"oom", "fit"},
     {"how-many", "models"},
     {"how", "models 70b, where it is how many cards, or fit"},
     {"which", "models, or shop"},
     {"can", "fit"},
     {"does", "fit"},
     {"requirements", "models"},
     {"cards", "models"},
     {"gpus", "catalog list gpus"},
     {"list", "catalog list gpus, and models, frameworks, ..."},
     {"show", "catalog show"},
     {"find", "catalog show"},
     {"price", "shop"},
     {"prices", "catalog list prices, and shop"},
     {"cloud", "shop"},
     {"explain", "fit or simulate with --explain"},
     {"run", "simulate, or launch"},
     {"time", "simulate"},
     {"throughput", "simulate"},
     {"speed", "simulate"},
     {"profile", "calibrate"},
     {"measure", "calibrate"},
     {"import", "calibrate import"},
     {"diff", "calibrate diff"},
     {"nccl", "collectives"},
     {"nccl-tests", "collectives"},
     {"all-reduce", "collectives"},
     {"all_reduce", "collectives"},
     {"bandwidth", "collectives"},
     {"config", "launch"},
     {"export", "launch"},
     {"generate", "launch"},
     {"ui", "serve"},
     {"web", "serve"},
     {"gui", "serve"},
     {"server", "serve"},
     {"autotune", "plan"},
     {"best", "plan"},
     {"vs", "compare"},
     {"accuracy", "validate"},
     {"version", "--version"}}};

}  // namespace

std::string_view called_here(std::string_view flag) {
  for (const FlagElsewhere& row : flags_elsewhere)
    if (row.flag == flag) return row.here;
  return {};
}

std::string_view answered_otherwise(std::string_view command, std::string_view flag) {
  for (const ToldElsewhere& row : told_elsewhere)
    if (row.flag == flag && (row.command.empty() || row.command == command)) return row.words;
  return {};
}

std::string_view answered_by(std::string_view command) {
  for (const FlagElsewhere& row : commands_elsewhere)
    if (row.flag == command) return row.here;
  return {};
}

}  // namespace shardwise
