#include "simulator/costs/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "catalog/cluster_parser.hpp"
#include "catalog/find.hpp"
#include "planner/facts.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"
#include "tests/simulator/block_time.hpp"
#include "tests/simulator/sample_workload.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

// What all tensor ranks of a stage hold crosses the network in parts, one from each of them, and is
// gathered where it arrives: 1 x 1024 tokens x 2048 x 2 B = 4 MiB as eight sends of 512 KiB.
TEST_CASE("messages between stages go in parts where the framework does that", "[cost]") {
  Workload w = pretraining(gpt(4, 2048, 16), 1024);
  const Cluster cluster = parse_gpus(known_facts().catalog, "16xA100-SXM-80GB")->front();
  ParallelPlan plan = plan_of(1, 8, 2);
  const auto send = [&](bool in_parts, bool sequence_parallel) {
    w.framework.parallel.partitions_pipeline_messages = in_parts;
    plan.sequence_parallel = sequence_parallel;
    const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    return CostModel(w, plan, cluster, known_facts().profile).costs(partition).send.front();
  };
  const CostModel model(w, plan, cluster, known_facts().profile);
  const GroupShape link = model.layout().pipeline_link(0);
  const auto time = [&](Collective kind, std::int64_t bytes, const GroupShape& shape) {
    return model.collectives().time(kind, Bytes(bytes), shape).time;
  };
  const std::int64_t whole = 1024 * 2048 * 2;
  const Seconds part = time(Collective::send_recv, whole / 8, link);
  CHECK(send(false, false) == time(Collective::send_recv, whole, link));
  CHECK(send(true, false) ==
        part + time(Collective::all_gather, whole, model.layout().shape(GroupKind::tensor)));
  CHECK(send(true, true) == part);  // each rank holds its part only, and goes on with it
  CHECK(send(false, true) == part);
}

// A collective that runs beside matmuls leaves them the multiprocessors that its channels do not
// hold: 2 x 240 / 20 = 24 thread blocks on an A100 of 108 (ring_channels).
TEST_CASE("what is hidden behind matmuls takes its share of the multiprocessors", "[cost]") {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  Workload w = pretraining(gpt(1, 8192, 64), 2048);
  const ParallelPlan plan = plan_of(1, 8);
  const auto backward = [&](bool beside) {
    w.framework.parallel.overlap_tensor_backward = beside;
    return block_time(w, plan, cluster).backward_input;
  };
  const PassTime waiting = backward(false), beside = backward(true);
  const Seconds hidden = waiting.exposed[0] - beside.exposed[0];
  REQUIRE(hidden > Seconds(0));
  CHECK((beside.compute - waiting.compute).value == Approx(24.0 / 108 * hidden.value));
}

// DeepSpeed reduces whole buckets up to stage 2, of which each rank keeps its part.
TEST_CASE("whole gradients are reduced where a framework does, up to its stage", "[cost]") {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  Workload w = pretraining(gpt(1, 1024, 16), 1024);
  const auto used = [&](int stage, bool whole) {
    ParallelPlan plan = plan_of(8);
    plan.zero_stage = stage;
    w.framework.gradients.stage_1_all_reduces = w.framework.gradients.stage_2_all_reduces = whole;
    const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    const StageCosts costs =
        CostModel(w, plan, cluster, known_facts().profile).costs(partition).stages.front();
    for (const CollectiveUse& use : costs.collectives)
      if (use.work == WorkKind::reduce_gradients) return use.collective;
    return Collective::all_to_all;
  };
  CHECK(used(0, false) == Collective::all_reduce);
  for (const int stage : {1, 2}) {
    CHECK(used(stage, false) == Collective::reduce_scatter);
    CHECK(used(stage, true) == Collective::all_reduce);
  }
  CHECK(used(3, true) == Collective::reduce_scatter);
}

// A rank of eight steps an eighth of the tensors at stages 1 and 2, a part of each at stage 3: from
// 67 ms to 167 ms for each it is 100 ms of CPU more for each of these; 53 ms more where each is
// looked at for infinity and NaN, which stage 3 does not do so. The CPU's time is more than all
// kernels take. How many there are host_per_step tells, at 1 us each.
TEST_CASE("the norm of a partition takes the CPU a time for each tensor of it", "[cost]") {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  Workload w = pretraining(gpt(2, 1024, 16), 1024);
  w.framework.update.norm_in_double = true;
  const auto costs = [&](int stage) {
    ParallelPlan plan = plan_of(8);
    plan.zero_stage = stage;
    const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    return CostModel(w, plan, cluster, known_facts().profile).costs(partition).stages.front();
  };
  const Seconds none = costs(1).host_per_step;
  w.framework.host.us_per_stepped_tensor = 1;
  const double tensors = std::round((costs(1).host_per_step - none).value / 1e-6);
  CHECK(tensors > 16);
  for (const int stage : {1, 2, 3}) {
    const double own = stage == 3 ? tensors : std::ceil(tensors / 8);
    double& each = stage == 3 ? w.framework.host.us_per_read_tensor_stage_3
                              : w.framework.host.us_per_read_tensor;
    each = 67e3;
    const Seconds read = costs(stage).optimizer;
    each = 167e3;
    CHECK((costs(stage).optimizer - read).value == Approx(own * 0.1));
    w.framework.update.checks_partition = true;
    w.framework.host.us_per_checked_tensor = 53e3;
    CHECK((costs(stage).optimizer - read).value == Approx(own * (stage == 3 ? 0.1 : 0.153)));
    w.framework.update.checks_partition = false;
  }
}

// An operator from 1 to 2 ms: as much more for every tensor, on the GPU's lane, which waits.
// AdamW's lists of tensors wait for nothing, nor does a partition that DeepSpeed hands over. How
// many tensors there are host_per_step tells, at 1 us each.
TEST_CASE("bitsandbytes' optimizers wait for the GPU after each tensor", "[cost]") {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  Workload w = pretraining(gpt(2, 1024, 16), 1024);
  w.framework.layers.kernels = KernelStyle::eager;
  const auto costs = [&](const char* optimizer, int stage, double operator_s) {
    w.step_with(*optimizer_named(optimizer));
    ParallelPlan plan = plan_of(8);
    plan.zero_stage = stage;
    Profile profile = known_facts().profile;
    profile.host.per_kernel[static_cast<std::size_t>(KernelStyle::eager)] = Seconds(operator_s);
    const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    return CostModel(w, plan, cluster, profile).costs(partition).stages.front();
  };
  const auto longer = [&](const char* optimizer, int stage) {
    return (costs(optimizer, stage, 2e-3).optimizer - costs(optimizer, stage, 1e-3).optimizer)
        .value;
  };
  const Seconds none = costs("adamw8bit", 0, 1e-3).host_per_step;
  w.framework.host.us_per_stepped_tensor += 1;
  const double tensors =
      std::round((costs("adamw8bit", 0, 1e-3).host_per_step - none).value / 1e-6);
  CHECK(tensors > 16);
  CHECK(longer("adamw8bit", 0) == Approx(tensors * 1e-3));
  CHECK(longer("paged-adamw", 0) == Approx(tensors * 1e-3));
  CHECK(longer("adamw", 0) == 0);
  CHECK(longer("adamw8bit", 1) == 0);
}

// A module whose CPU issues a kernel in 1.86 times what an x86 server takes (Grace): so much more
// of the CPU's time, and none of the GPU's.
TEST_CASE("a module's own CPU issues kernels at its own pace", "[cost]") {
  Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  const Workload w = pretraining(gpt(1, 1024, 16), 1024);
  const PassTime x86 = block_time(w, plan_of(8), cluster).forward;
  cluster.groups.front().gpu.host_slowdown = 1.86;
  const PassTime grace = block_time(w, plan_of(8), cluster).forward;
  CHECK(x86.host > Seconds(0));
  CHECK(grace.host.value == Approx(1.86 * x86.host.value));
  CHECK(grace.compute.value == Approx(x86.compute.value));
}

// 1,180 us each way around a block whose weights are sharded, nothing where they are whole.
TEST_CASE("a unit of sharded parameters takes the CPU its time, each way", "[cost]") {
  Workload w = pretraining(gpt(4, 2048, 16), 1024);
  w.framework.host.us_per_sharded_unit = 1180;
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  ParallelPlan plan = plan_of(8, 1, 1);
  const LayerTime whole = block_time(w, plan, cluster);
  plan.zero_stage = 3;
  const LayerTime sharded = block_time(w, plan, cluster);
  CHECK((sharded.forward.host - whole.forward.host).value == Approx(1180e-6));
  CHECK((sharded.backward_input.host - whole.backward_input.host).value == Approx(1180e-6));
  CHECK(sharded.recompute.host == whole.recompute.host);
  CHECK(sharded.backward_weight.host == whole.backward_weight.host);
  w.framework.sharding.parameters.units_per_block = 4;  // the block, and three of its linears
  const LayerTime nested = block_time(w, plan, cluster);
  CHECK((nested.forward.host - whole.forward.host).value == Approx(4 * 1180e-6));
}

// The hooks are Python too: 1,180 us x 1.86 on a module's own CPU.
TEST_CASE("hooks run at the pace of the module's own CPU", "[cost]") {
  Workload w = pretraining(gpt(4, 2048, 16), 1024);
  Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  cluster.groups.front().gpu.host_slowdown = 1.86;
  ParallelPlan plan = plan_of(8, 1, 1);
  plan.zero_stage = 3;
  const PassTime bare = block_time(w, plan, cluster).forward;
  w.framework.host.us_per_sharded_unit = 1180;
  const PassTime hooked = block_time(w, plan, cluster).forward;
  CHECK((hooked.host - bare.host).value == Approx(1.86 * 1180e-6));
}

// H100 keeps 0.862 of its tensor rate where it trains alone; a chip whose rate is held far below
// its power keeps all of it, with others too.
TEST_CASE("capped tensor rates lose nothing under load", "[cost]") {
  const Profile& profile = known_facts().profile;
  Gpu gpu = parse_gpus(known_facts().catalog, "H100-SXM")->front().groups.front().gpu;
  GemmShape large;
  large.m = large.n = large.k = 8192;
  large.dtype = DType::bf16;
  const auto time = [&](ChipLoad load) { return GemmModel(gpu, profile, load).time(large); };
  CHECK(time({1}) > time({}));
  CHECK(kept_under_load(gpu, profile, DType::bf16, {1}) == Approx(0.862));
  gpu.capped_rates = true;
  CHECK(time({8}) == time({}));
  CHECK((**find_gpu(known_facts().catalog, "h20")).capped_rates);
}

// Expected largest of n normal variables, tables of order statistics: 0 (n = 1), 0.5642 (2), 1.4236
// (8), 2.3437 (64), 3.2414 (1,000). A step waits for the slowest of the chips that train together.
TEST_CASE("the more chips, the slower the slowest", "[cost]") {
  const std::pair<int, double> tabled[] = {{1, 0}, {2, 0.5642}, {8, 1.4236}, {64, 2.3437}};
  for (const auto& [chips, deviations] : tabled)
    CHECK(slowest_rate(chips, 0.01) == Approx(1 - 0.01 * deviations).epsilon(0.0005));
  CHECK(slowest_rate(1000, 0.01) == Approx(1 - 0.01 * 3.2414).epsilon(0.0005));

  // 1.5 % between chips: eight keep 1 - 0.015 x 1.42 = 0.979 of what one keeps, in products and in
  // fused attention alike.
  const Profile& profile = known_facts().profile;
  const Gpu gpu = parse_gpus(known_facts().catalog, "H100-SXM")->front().groups.front().gpu;
  const double one = kept_under_load(gpu, profile, DType::bf16, {1});
  CHECK(kept_under_load(gpu, profile, DType::bf16, {8}) == Approx(0.979 * one).epsilon(0.001));
  AttentionWork work;
  work.batch = 8, work.heads = 32, work.kv_heads = 32;
  work.queries = work.keys = 4096, work.head_dim = 128;
  const auto attention = [&](int chips) {
    return AttentionModel(gpu, profile, {std::nullopt, KernelStyle::eager, {chips}}).time(work);
  };
  CHECK(attention(8) / attention(1) == Approx(1 / 0.979).epsilon(0.005));
}

TEST_CASE("with blocking launches the GPU waits for the CPU, kernel by kernel", "[cost]") {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  Workload w = pretraining(gpt(1, 1024, 16), 1024);
  const ParallelPlan plan = plan_of(8);
  const auto forward = [&](bool blocking) {
    w.blocking_launches = blocking;
    return block_time(w, plan, cluster).forward;
  };
  const PassTime ahead = forward(false), blocked = forward(true);
  CHECK(blocked.host == Seconds(0));
  CHECK(blocked.compute.value == Approx(ahead.compute.value + ahead.host.value));
}

// On one card of a slow slot a block's copy takes longer than its kernels: what they do not hide is
// left over, so that pass and rest come to bytes / rate. On the way back more is hidden.
TEST_CASE("activations that go to the host hold their pass up where the way is too slow",
          "[cost]") {
  const Workload w = pretraining(gpt(4, 2048, 16), 2048);
  const Cluster cluster = parse_gpus(known_facts().catalog, "1xRTX-4090")->front();
  ParallelPlan plan = plan_of(1);
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const auto costs = [&](double share) {
    plan.offload.activations = share > 0;
    plan.offloaded_share = share;
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    return CostModel(w, plan, cluster, known_facts().profile).costs(partition).stages.front();
  };
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  const LayerDefinition& block = *partition.stages.front().front().layers[1].definition;
  REQUIRE(block.role == LayerRole::block);
  const double rate = CostModel(w, plan, cluster, known_facts().profile)
                          .collectives()
                          .topology()
                          .host_copy(1)
                          .value;

  const StageCosts whole = costs(1), none = costs(0);
  const LayerTime &with = whole.chunks[0][1].time, &without = none.chunks[0][1].time;
  const auto busy = [](const PassTime& t) { return std::max(t.device().value, t.host.value); };
  const double copy = static_cast<double>(block.script.saved_bytes) / rate;
  REQUIRE(copy > busy(without.forward));
  CHECK(with.forward.copies.value == Approx(copy - busy(without.forward)));
  CHECK(with.forward.compute == without.forward.compute);
  const double backward =
      busy(without.recompute) + busy(without.backward_input) + busy(without.backward_weight);
  CHECK(with.backward_input.copies.value == Approx(std::max(0.0, copy - backward)));
  CHECK(whole.chunks[0][0].time.forward.copies == Seconds(0));  // the embedding saves nothing large
  CHECK(whole.host_traffic.copied_out == plan.microbatches * 4 * Bytes(block.script.saved_bytes));
  CHECK(costs(0.05).chunks[0][1].time.forward.copies == Seconds(0));  // a small part hides
}

// A buffer of gradients that stays is zeroed whole on every rank, though each steps its share only.
TEST_CASE("what zeroing gradients takes does not fall with the optimizer's share", "[cost]") {
  Workload w = pretraining(gpt(4, 8192, 64), 1024);
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan_of(1).schedule_row());
  const auto optimizer = [&](int ranks, GradientLife life) {
    w.framework.gradients.life = life;
    const char* gpus = ranks == 1 ? "1xA100-SXM-80GB" : "8xA100-SXM-80GB";
    const Cluster cluster = parse_gpus(known_facts().catalog, gpus)->front();
    ParallelPlan plan = plan_of(ranks);
    plan.zero_stage = 1;
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    return CostModel(w, plan, cluster, known_facts().profile)
        .costs(partition)
        .stages.front()
        .optimizer.value;
  };
  const auto zeroing = [&](int ranks) {
    return optimizer(ranks, GradientLife::persistent) - optimizer(ranks, GradientLife::per_step);
  };
  CHECK(zeroing(1) > 0);
  CHECK(zeroing(8) == Approx(zeroing(1)).epsilon(0.02));
}

// A norm of all of a rank's gradients, whatever share of them is stepped: 4 layers of 12 x 8192^2
// weights, two tables of 51200 rows and one of 1024, each of 8192: 4.07e9 values (biases and norms
// are less than a thousandth). 2 bytes of each take half the time of 4, a zeroing of the same bytes
// takes as long. Sharded gradients are not looked at.
TEST_CASE("a check of gradients for NaN reads all of them once", "[cost]") {
  Workload w = pretraining(gpt(4, 8192, 64), 1024);
  w.framework.gradients.life = GradientLife::persistent;
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan_of(1).schedule_row());
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  const auto optimizer = [&](bool checks, DType gradient, int zero_stage) {
    w.framework.update.checks_gradients = checks;
    w.framework.gradients.dtype = w.framework.gradients.reduce_dtype = gradient;
    ParallelPlan plan = plan_of(8);
    plan.zero_stage = zero_stage;
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    return CostModel(w, plan, cluster, known_facts().profile)
        .costs(partition)
        .stages.front()
        .optimizer.value;
  };
  const auto check = [&](DType gradient, int zero_stage) {
    return optimizer(true, gradient, zero_stage) - optimizer(false, gradient, zero_stage);
  };
  const double bytes = 4 * (4 * 12 * 8192.0 + 2 * 51200 + 1024) * 8192.0;
  const double peak = 2.039e12;  // bytes/s of an A100's memory (SXM, 80 GB)
  CHECK(check(DType::fp32, 1) > bytes / peak);
  CHECK(check(DType::fp32, 1) < 1.3 * bytes / peak);
  CHECK(check(DType::fp32, 0) == Approx(check(DType::fp32, 1)));
  CHECK(check(DType::bf16, 1) == Approx(check(DType::fp32, 1) / 2).epsilon(0.02));
  CHECK(check(DType::fp32, 2) == Approx(0));
  const double checked = check(DType::fp32, 1), kept = optimizer(false, DType::fp32, 1);
  w.framework.gradients.life = GradientLife::per_step;
  CHECK(checked == Approx(kept - optimizer(false, DType::fp32, 1)).epsilon(0.02));
}

// Eight blocks on four stages: the embedding makes the first one another, the head the last; the
// two between them are alike, so only the first of these is told.
TEST_CASE("of stages that are alike the first stands for all where that is enough", "[cost]") {
  const Workload w = pretraining(gpt(8, 2048, 16), 1024);
  const Cluster cluster = parse_gpus(known_facts().catalog, "16xA100-SXM-80GB")->front();
  ParallelPlan plan = plan_of(2, 2, 4);
  plan.zero_stage = 1;
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
  const CostModel model(w, plan, cluster, known_facts().profile);
  const StepCosts all = model.costs(partition);
  const StepCosts distinct = model.costs(partition, CostModel::StagesCosted::distinct);
  CHECK(all.alike == std::vector<std::size_t>{0, 1, 1, 3});
  CHECK(distinct.alike == all.alike);
  CHECK(distinct.stages[2].chunks.empty());
  for (std::size_t s = 0; s < 4; ++s) {
    const StageCosts& first = distinct.stages[all.alike[s]];
    CHECK(all.stages[s].chunks == first.chunks);
    CHECK(all.stages[s].optimizer == first.optimizer);
    CHECK(all.stages[s].reduce_at_end == first.reduce_at_end);
    CHECK(all.stages[s].gather_at_end == first.gather_at_end);
  }
}

// What was stepped is gathered in a byte per weight of linear layers where these are stored in 8
// bits with one scale for each, of which the wide ones took two: less by as many bytes as there are
// such weights. Two blocks of 512 wide with 8 heads, 4 of K and V, and a SwiGLU of 1,024 have
// 2 x (2 x 512 x 512 + 2 x 512 x 256 + 3 x 512 x 1,024) = 4,718,592. MXFP8 goes through bf16.
TEST_CASE("weights that are stored in 8 bits are gathered so", "[cost]") {
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xH100-SXM")->front();
  ParallelPlan plan = plan_of(8);
  plan.zero_stage = 1;
  const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
  const auto gathered = [&](DType compute, NarrowWeights where) {
    Workload w = pretraining(llama(2, 512, 8, 4, 1024, 4096), 256);
    w.compute = compute;
    w.framework.narrow.weights = where;
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    const CostModel model(w, plan, cluster, known_facts().profile);
    const StepCosts costs = model.costs(partition);
    double bytes = 0;
    for (const CollectiveUse& use : costs.stages.front().collectives)
      if (use.work == WorkKind::gather_parameters)
        bytes += use.per_step * static_cast<double>(use.size.value);
    return bytes;
  };
  const double wide = gathered(DType::bf16, NarrowWeights::stored);
  CHECK(wide - gathered(DType::fp8, NarrowWeights::stored) == 4'718'592);
  CHECK(gathered(DType::fp8, NarrowWeights::beside) == wide);
  CHECK(gathered(DType::mxfp8, NarrowWeights::stored) == wide);
}

// Twelve blocks in six chunks on two stages: the embedding makes the first chunk of the first stage
// another one, the head the last chunk of the last; what a stage does in all is that of all three.
TEST_CASE("of chunks that are alike the first stands for all where that is enough", "[cost]") {
  const Workload w = pretraining(gpt(12, 2048, 16), 1024);
  const Cluster cluster = parse_gpus(known_facts().catalog, "8xA100-SXM-80GB")->front();
  for (const int zero : {0, 1, 3}) {
    ParallelPlan plan = plan_of(2, 2, 2);
    plan.zero_stage = zero;
    plan.schedule = "interleaved";
    plan.chunks = 3;
    plan.microbatches = 4;
    const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    const CostModel model(w, plan, cluster, known_facts().profile);
    const StepCosts all = model.costs(partition);
    const StepCosts distinct = model.costs(partition, CostModel::StagesCosted::distinct);
    CHECK(distinct.stages[0].alike == std::vector<std::size_t>{0, 1, 1});
    CHECK(distinct.stages[1].alike == std::vector<std::size_t>{0, 0, 2});
    for (std::size_t s = 0; s < 2; ++s) {
      INFO("ZeRO " << zero << ", stage " << s);
      const StageCosts &whole = all.stages[s], &few = distinct.stages[s];
      CHECK(whole.alike.empty());
      for (std::size_t c = 0; c < 3; ++c) CHECK(whole.chunks[c] == few.chunks[few.alike[c]]);
      CHECK(whole.optimizer == few.optimizer);
      REQUIRE(whole.collectives.size() == few.collectives.size());
      for (std::size_t i = 0; i < few.collectives.size(); ++i) {
        CHECK(whole.collectives[i].size == few.collectives[i].size);
        CHECK(whole.collectives[i].per_step == few.collectives[i].per_step);
      }
    }
  }
}

// Gradients that the host steps go there as wide as they are stepped, 4 bytes of each: all of them
// from one rank; half of them from each of two, at stage 1 as well, behind the bucket that reduces
// them however many layers it has, or behind all of them.
TEST_CASE("gradients go to the host that steps them whatever reduces them", "[cost]") {
  Workload w = pretraining(gpt(4, 2048, 16), 1024);
  w.framework.formats.pretrain_weights = WeightRecipe::half_with_master;
  w.framework.gradients.reduces_every_microbatch = false;
  w.framework.gradients.bucket = Bytes(250'000'000);  // two blocks of 12 x 2048^2 in 16 bits
  const double parameters = static_cast<double>(parameter_count(w.model).total);
  struct Moved {
    double beside = 0, at_end = 0, bytes = 0;
    int copies = 0, reductions = 0;
  };
  const auto moved = [&](int ranks, int stage, bool overlaps) {
    w.framework.gradients.overlap_reduce = overlaps;
    const char* gpus = ranks == 1 ? "1xA100-SXM-80GB" : "2xA100-SXM-80GB";
    const Cluster cluster = parse_gpus(known_facts().catalog, gpus)->front();
    ParallelPlan plan = plan_of(ranks);
    plan.zero_stage = stage;
    plan.microbatches = 2;
    plan.offload.optimizer = true;
    const PipelineSchedule& schedule = *find_pipeline_schedule(plan.schedule_row());
    const ModelPartition partition = partition_model(w, plan, schedule, *recompute_policy("none"));
    const CostModel model(w, plan, cluster, known_facts().profile);
    const StageCosts costs = model.costs(partition).stages.front();
    const double rate = model.collectives().topology().host_copy(ranks).value;
    Moved m;
    for (const LayerSchedule& l : costs.chunks.front()) {
      m.beside += rate * l.copy_out.value_or(Seconds(0)).value;
      m.copies += l.copy_out.has_value();
      m.reductions += l.reduce.has_value();
    }
    m.at_end = rate * costs.copy_out_at_end.value_or(Seconds(0)).value;
    m.bytes = static_cast<double>(costs.host_traffic.copied_out.value);
    return m;
  };
  for (const int stage : {1, 2})
    for (const int ranks : {1, 2}) {
      INFO(stage << " " << ranks);
      const Moved beside = moved(ranks, stage, true), at_end = moved(ranks, stage, false);
      CHECK(beside.beside == Approx(4 * parameters / ranks));
      CHECK(beside.bytes == Approx(beside.beside));
      CHECK(beside.at_end == 0);
      CHECK(at_end.at_end == Approx(4 * parameters / ranks));
      CHECK(at_end.bytes == Approx(at_end.at_end));
      CHECK(at_end.copies == 0);
      if (ranks == 1) {
        CHECK(beside.reductions == 0);
        continue;
      }
      CHECK(beside.copies == beside.reductions);
      CHECK(beside.reductions < 5);  // fewer than layers
    }
}
