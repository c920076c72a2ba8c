#include <algorithm>
#include <array>
#include <string>

#include "planner/forecast/explanation_parts.hpp"
#include "planner/forecast/forecast_parts.hpp"
#include "planner/forecast/kernel_account.hpp"
#include "planner/forecast/spread_key.hpp"
#include "planner/sentence.hpp"
#include "simulator/costs/kernel_model.hpp"
#include "simulator/graphs/visited_places.hpp"
#include "simulator/parameter_state.hpp"

namespace shardwise {
namespace {

ExplainedInput part(const std::string& name, Seconds t) {
  return {name, t.value, "s", std::nullopt, ""};
}

ExplainedFigure step(const Forecast& f) {
  ExplainedFigure figure{"step_time_s.expected",
                         "one training step, on its slowest GPU",
                         f.step_time.expected.value,
                         "s",
                         "busy + waiting for communication + bubble + host + offload",
                         {}};
  for (const auto& [kind, t] : f.breakdown.compute) figure.inputs.push_back(part(kind, t));
  for (const auto& [kind, t] : f.breakdown.exposed)
    figure.inputs.push_back(part("waiting for " + kind, t));
  const std::array<std::pair<const char*, Seconds>, 3> rest{{{"bubble", f.breakdown.bubble},
                                                             {"host", f.breakdown.host},
                                                             {"offload", f.breakdown.offload}}};
  for (const auto& [kind, t] : rest)
    if (t > Seconds(0)) figure.inputs.push_back(part(kind, t));
  return figure;
}

ExplainedFigure interval(const Question& q, const Forecast& f, const Profile& profile) {
  const SpreadRow row = spread_of(profile.spread.step_time, spread_key(q));
  ExplainedFigure figure{"step_time_s.high",
                         "the 80 % interval: a tenth of such runs took longer",
                         f.step_time.high.value,
                         "s",
                         "expected x low, expected x high",
                         {}};
  figure.inputs = interval_inputs(row, profile.spread.provenance);
  figure.inputs.push_back(part("expected", f.step_time.expected));
  return figure;
}

// Of the GPU's family, or that of a copy measured on this very GPU where it is higher
// (simulator/costs/memory_bound_model.hpp).
ExplainedInput streaming_fraction(const Gpu& gpu, const Profile& profile) {
  const char* what = "fraction of it that streaming kernels reach";
  const MemoryCalibration& c = profile.row(gpu.family).memory;
  const BytesPerSecond reached = MemoryBoundModel(gpu, profile).bandwidth(MemoryAccess::streaming);
  const double of_family = c.fraction[static_cast<std::size_t>(MemoryAccess::streaming)];
  const double fraction = reached.value / gpu.memory_bandwidth.value;
  if (fraction > of_family)
    return catalogued(what, fraction, "", Trust::published, gpu.provenance, "copy_gb_per_s");
  return catalogued(what, of_family, "", c.evidence.trust, c.evidence.provenance, "fraction");
}

ExplainedInput amount(const std::string& name, double value, const std::string& unit) {
  return {name, value, unit, std::nullopt, "counted, kernel by kernel"};
}

// What the passes of the slowest stage do in a step.
void add_work(const Question& q, const StageAccount& stage, ExplainedFigure& figure) {
  const double times = q.plan.microbatches;
  const std::array<std::pair<const char*, const KernelAccount*>, 4> passes{
      {{"forward", &stage.forward},
       {"recomputed", &stage.recompute},
       {"backward, inputs", &stage.backward},
       {"backward, weights", &stage.backward_weight}}};
  for (const auto& [pass, a] : passes) {
    const double flops = (a->products + a->attention).value * times;
    const double bytes = static_cast<double>(a->moved.value) * times;
    if (flops > 0)
      figure.inputs.push_back(amount(sentence("products, ", pass), flops / 1e12, "TFLOP"));
    if (bytes > 0)
      figure.inputs.push_back(
          amount(sentence("moved by other kernels, ", pass), bytes / 1e9, "GB"));
  }
}

// What matrix products, kernels that move bytes, and the CPU are worth on this GPU.
ExplainedFigure rates(const Question& q, const Gpu& gpu, const Profile& profile, Seconds busy,
                      const StageAccount& work) {
  const FamilyCalibration& c = profile.row(gpu.family);
  const auto format = static_cast<std::size_t>(q.workload.compute);
  ExplainedFigure figure{"forward, backward",
                         "kernels of the layers, one after the other",
                         busy.value,
                         "s",
                         "sum over kernels of start + max(FLOPs / (dense rate x fraction), bytes / "
                         "(bandwidth x fraction)); what the L2 cache still holds, at its rate",
                         {}};
  add_work(q, work, figure);
  if (const auto rate = gpu.rate(q.workload.compute))
    figure.inputs.push_back(catalogued(
        sentence("dense ", name(q.workload.compute), " rate"), rate->value / 1e12, "TFLOP/s",
        Trust::datasheet, gpu.provenance, sentence("dense_", name(q.workload.compute), "_tflops")));
  figure.inputs.push_back(catalogued("fraction of it that products keep up",
                                     c.gemm.sustained_fraction[format], "", c.gemm.evidence.trust,
                                     c.gemm.evidence.provenance, "sustained_fraction"));
  if (const MeasuredMatmul* m = profile.matmul(gpu.id))
    figure.inputs.push_back(catalogued("16-bit rate measured on such a GPU", m->rate.value / 1e12,
                                       "TFLOP/s", Trust::published, m->provenance,
                                       "dense_16bit_tflops"));
  figure.inputs.push_back(catalogued("memory bandwidth", gpu.memory_bandwidth.value / 1e9, "GB/s",
                                     Trust::datasheet, gpu.provenance,
                                     "memory_bandwidth_gb_per_s"));
  figure.inputs.push_back(streaming_fraction(gpu, profile));
  if (const double fullest = fullest_rank(q.workload, q.plan.expert); fullest > 1)
    figure.inputs.push_back(
        {"tokens of the fullest rank's experts over the mean", fullest, "", std::nullopt,
         q.workload.expert_spread > 0 ? "experts that differ as those of trained routers do "
                                        "(simulator/workload.hpp)"
                                      : "asked"});
  return figure;
}

// Where the GPU steps.
ExplainedFigure optimizer(const Question& q, const Gpu& gpu, const Profile& profile, Seconds t,
                          const StageAccount& work) {
  const OptimizerPass pass = optimizer_pass(q.workload);
  const KernelModel kernels(gpu, profile, attention_choice(q.workload, q.plan));
  return {"optimizer",
          "the optimizer steps what this GPU keeps of the states",
          t.value,
          "s",
          "(parameters x bytes each + zeroed + checked) / (bandwidth x fraction) + kernels x start",
          {{"parameters stepped here", static_cast<double>(work.stepped), "parameters",
            std::nullopt, "counted, layer by layer"},
           {"read and written for each", pass.bytes_each, "B", std::nullopt,
            "gradient, weights, states, master copy (simulator/parameter_state.cpp)"},
           {"gradient buffer zeroed", static_cast<double>(work.zeroed.value), "B", std::nullopt,
            "of gradients that stay for the whole run, all that this GPU keeps of them"},
           {"gradients checked", static_cast<double>(work.checked.value), "B", std::nullopt,
            "a norm of what is about to be reduced, for NaN, where the framework takes one"},
           catalogued("memory bandwidth", gpu.memory_bandwidth.value / 1e9, "GB/s",
                      Trust::datasheet, gpu.provenance, "memory_bandwidth_gb_per_s"),
           streaming_fraction(gpu, profile),
           {"kernels", static_cast<double>(pass.kernels + (work.checked.value > 0 ? 1 : 0)), "",
            std::nullopt, "fused, or one per operation and group of tensors; the norm"},
           {"start of one", kernels.memory_bound(Bytes(0), 1).value, "s", std::nullopt,
            "profile of the family"}}};
}

ExplainedFigure host(const Question& q, const Forecast& f, const Profile& profile) {
  const auto style = static_cast<std::size_t>(q.workload.framework.layers.kernels);
  constexpr std::array<const char*, 3> fields{"eager", "fused", "compiled"};
  ExplainedFigure figure{"host",
                         "the GPU waits for the CPU to issue kernels",
                         f.breakdown.host.value,
                         "s",
                         "kernels x time to issue one, where that is longer than they run",
                         {}};
  figure.inputs.push_back(catalogued(
      sentence("time per kernel, ", fields[style]), profile.host.per_kernel[style].value, "s",
      profile.host.evidence.trust, profile.host.evidence.provenance, fields[style]));
  return figure;
}

// Of each kind of communication that the step waits for.
ExplainedFigure waiting(const Question& q, const std::string& kind, Seconds t,
                        const Profile& profile) {
  const LinkEvidence& nccl = profile.links.nccl.evidence;
  ExplainedFigure figure{kind,
                         "communication that no kernel hides",
                         t.value,
                         "s",
                         "sum over collectives of latency + bytes / bandwidth of NCCL's fastest "
                         "algorithm, less what runs beside kernels",
                         {}};
  const NodeGroup& group = q.cluster.groups.front();
  if (q.cluster.nodes() > 1 && q.cluster.network) {
    const Network& network = *q.cluster.network;
    figure.inputs.push_back(catalogued(sentence("one port of ", network.name),
                                       network.port_bandwidth.value / 1e9, "GB/s", Trust::datasheet,
                                       network.provenance, "port_bandwidth_gb_per_s"));
    if (network.share < 1)
      figure.inputs.push_back(
          {"share of it that other jobs leave", network.share, "", std::nullopt, "asked"});
  }
  if (group.gpu.nvlink > BytesPerSecond(0))
    figure.inputs.push_back(catalogued("NVLink of one GPU, one direction",
                                       group.gpu.nvlink.value / 1e9, "GB/s", Trust::datasheet,
                                       group.gpu.provenance, "scale_up_gb_per_s_per_direction"));
  else
    figure.inputs.push_back(catalogued("PCIe generation", group.gpu.pcie_generation, "",
                                       Trust::datasheet, group.gpu.provenance, "pcie_generation"));
  figure.inputs.push_back(catalogued("NCCL's constants", 0, "", nccl.trust, nccl.provenance, ""));
  return figure;
}

ExplainedFigure throughput(const Question& q, const Forecast& f) {
  return {"tokens_per_s",
          "tokens trained on per second",
          f.tokens_per_s,
          "tokens/s",
          "sequences per step x tokens / step time",
          {{"sequences per step", static_cast<double>(q.plan.global_batch()), "sequences",
            std::nullopt, "asked, or the plan's"},
           {"sequence", static_cast<double>(q.workload.sequence), "tokens", std::nullopt, "asked"},
           part("step time", f.step_time.expected)}};
}

ExplainedFigure utilisation(const Question& q, const Forecast& f) {
  ExplainedFigure figure{
      "mfu",
      "model FLOPs utilisation",
      f.mfu,
      "",
      "model FLOPs per token x tokens per second / dense rate of all GPUs (PaLM, "
      "arXiv 2204.02311, appendix B)",
      {}};
  const auto gpus = static_cast<double>(q.plan.gpus());
  const Gpu& gpu = q.cluster.groups.front().gpu;
  const auto rate = gpu.rate(q.workload.compute);
  // Of cards that differ the sum of their rates is what counts, and has no one source.
  if (rate && q.cluster.groups.size() == 1 && f.tokens_per_s > 0) {
    figure.inputs.push_back(
        {"model FLOPs per token", f.mfu * gpus * rate->value / f.tokens_per_s / 1e9, "GFLOP",
         std::nullopt, "6 per weight that a token meets, 4 where frozen, and attention"});
    figure.inputs.push_back(
        catalogued(sentence("dense ", name(q.workload.compute), " rate of one GPU"),
                   rate->value / 1e12, "TFLOP/s", Trust::datasheet, gpu.provenance,
                   sentence("dense_", name(q.workload.compute), "_tflops")));
  }
  figure.inputs.push_back({"tokens per second", f.tokens_per_s, "tokens/s", std::nullopt, ""});
  figure.inputs.push_back({"GPUs", gpus, "", std::nullopt, "asked"});
  return figure;
}

// Of a pipeline.
ExplainedFigure bubble(const Question& q, const Forecast& f) {
  const ParallelPlan& p = q.plan;
  const double evenly = static_cast<double>(p.pipeline - 1) / (p.chunks * p.microbatches);
  return {
      "bubble",
      "the GPU waits for other stages",
      f.breakdown.bubble.value,
      "s",
      sentence("step - what it does and waits for, played task by task with schedule ", p.schedule,
               "; stages all alike under 1F1B would lose (stages - 1) / (chunks x "
               "microbatches) of their work (Narayanan et al., arXiv 2104.04473)"),
      {{"stages", static_cast<double>(p.pipeline), "", std::nullopt, "of the plan"},
       {"chunks", static_cast<double>(p.chunks), "", std::nullopt, "of the plan"},
       {"microbatches", static_cast<double>(p.microbatches), "", std::nullopt, "of the plan"},
       {"stages all alike", evenly, "of the work", std::nullopt, ""},
       part("step", f.step_time.expected)}};
}

}  // namespace

void explain_time(const Question& q, const Forecast& f, const Profile& profile,
                  std::vector<ExplainedFigure>& figures) {
  const Gpu& gpu = q.cluster.groups.front().gpu;
  figures.push_back(step(f));
  Seconds busy;
  for (const auto& [kind, t] : f.breakdown.compute)
    if (kind != name(WorkKind::optimizer) && kind != name(WorkKind::pipeline_send)) busy += t;
  const std::vector<StageAccount> accounts = kernel_accounts(q, profile);
  const StageAccount& work = accounts[static_cast<std::size_t>(f.breakdown.stage)];
  figures.push_back(rates(q, gpu, profile, busy, work));
  if (const auto stepping = f.breakdown.compute.find(std::string(name(WorkKind::optimizer)));
      stepping != f.breakdown.compute.end())
    figures.push_back(optimizer(q, gpu, profile, stepping->second, work));
  if (f.breakdown.host > Seconds(0)) figures.push_back(host(q, f, profile));
  for (const auto& [kind, t] : f.breakdown.exposed) figures.push_back(waiting(q, kind, t, profile));
  if (f.breakdown.bubble > Seconds(0)) figures.push_back(bubble(q, f));
  figures.push_back(interval(q, f, profile));
  figures.push_back(throughput(q, f));
  figures.push_back(utilisation(q, f));
}

}  // namespace shardwise
