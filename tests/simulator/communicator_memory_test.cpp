#include "simulator/memory/communicator_memory.hpp"

#include "tests/simulator/link_machines.hpp"
#include "tests/simulator/sample_workload.hpp"

using namespace shardwise;
using namespace shardwise::link_machines;

namespace {

constexpr std::int64_t bytes_per_mib = std::int64_t{1} << 20;
std::int64_t mebibytes(Bytes b) { return b.value / bytes_per_mib; }
constexpr CollectiveSet only_reduce{Collective::all_reduce};
constexpr CollectiveSet shard{Collective::all_gather, Collective::reduce_scatter};

}  // namespace

TEST_CASE("nobody to talk to, nothing to hold", "[communicator_memory]") {
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100());
  const CollectiveModel model(c, links);
  CHECK(nccl_memory(model, GroupShape{}, only_reduce).device == Bytes(0));
  CHECK(nccl_memory(model, group_shape(8, 1, 8, 8), {}).device == Bytes(0));
}

TEST_CASE("A100: what a new process group takes for an all-reduce", "[communicator_memory]") {
  // NVIDIA/nccl#964, 4 x A100: 544 MiB for a group of two, 688 MiB for larger ones.
  // 240 GB/s / 20 GB/s per channel, doubled: 24 channels. 16 + 24 x 22 and 16 + 24 x 28.
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100(), 1, 4);
  const CollectiveModel model(c, links);
  CHECK(mebibytes(nccl_memory(model, group_shape(2, 1, 4, 4), only_reduce).device) == 544);
  CHECK(mebibytes(nccl_memory(model, group_shape(4, 1, 4, 4), only_reduce).device) == 688);
  // Gathers and scatters know no tree: 16 + 24 x 12.
  CHECK(mebibytes(nccl_memory(model, group_shape(4, 1, 4, 4), shard).device) == 304);
}

TEST_CASE("in-switch reduction has a buffer of its own", "[communicator_memory]") {
  // 16 channels x 2 x (128 KiB x 8 steps) x 8 heads = 256 MiB; 370.8 / 30 GB/s -> 24 channels.
  const LinkCalibration links = calibration();
  const Cluster c = hgx(h100());
  const CollectiveModel model(c, links);
  const GroupShape eight = group_shape(8, 1, 8, 8);
  CHECK(mebibytes(nccl_memory(model, eight, only_reduce).device) == 16 + 24 * 28 + 256);
  LinkCalibration off = links;
  for (GpuGeneration& g : off.generations) g.nvls_channels = 0;
  const CollectiveModel without(c, off);
  CHECK(mebibytes(nccl_memory(without, eight, only_reduce).device) == 16 + 24 * 28);
}

TEST_CASE("an all-to-all connects every pair", "[communicator_memory]") {
  // NVIDIA/nccl#1685: 7 peers x 32 channels x 12 MiB = 2,688 MiB.
  const LinkCalibration links = calibration();
  const Cluster c = hgx(h100());
  const CollectiveModel model(c, links);
  CHECK(mebibytes(nccl_memory(model, group_shape(8, 1, 8, 8), {Collective::all_to_all}).device) ==
        16 + 7 * 32 * 12);
}

TEST_CASE("point-to-point between nodes draws on a shared pool", "[communicator_memory]") {
  // 64 channels x 16 x 128 KiB = 128 MiB.
  const LinkCalibration links = calibration();
  const Cluster c = hgx(h100(), 2);
  const CollectiveModel model(c, links);
  GroupShape stages;
  stages.ranks = stages.nodes = 2;
  stages.sharing = 8;
  CHECK(mebibytes(nccl_memory(model, stages, {Collective::send_recv}).device) == 16 + 128);
}

TEST_CASE("one GPU of a node takes the NICs that its slot feeds", "[communicator_memory]") {
  // A slot of 24 GB/s feeds one NIC of 25: one channel, doubled. 16 + 2 x (12 + 16) MiB.
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100(), 4);
  const CollectiveModel model(c, links);
  CHECK(mebibytes(nccl_memory(model, group_shape(4, 8, 8, 32), only_reduce).device) == 16 + 2 * 28);
}

TEST_CASE("buffers of cards without peer access lie in host memory", "[communicator_memory]") {
  const LinkCalibration links = calibration();
  const Cluster c = cluster(rtx_4090(), node(4, IntraLink::pcie_host, 1), 1, 4);
  const CollectiveModel model(c, links);
  const CommunicatorMemory m = nccl_memory(model, group_shape(4, 1, 4, 4), only_reduce);
  CHECK(mebibytes(m.device) == 16);
  CHECK(mebibytes(m.host) == 2 * 28);
}

TEST_CASE("using a communicator for more never takes less", "[communicator_memory]") {
  const LinkCalibration links = calibration();
  for (const Cluster& c : {hgx(a100(), 4), hgx(h100(), 4)}) {
    const CollectiveModel model(c, links);
    for (const GroupShape& s : {group_shape(8, 1, 8, 32), group_shape(4, 8, 8, 32)}) {
      CollectiveSet set;
      Bytes before(0);
      for (std::size_t k = 0; k < collective_count; ++k) {
        set.add(static_cast<Collective>(k));
        const Bytes now = nccl_memory(model, s, set).device;
        CHECK(now >= before);
        before = now;
      }
    }
  }
}

// NVIDIA/nccl#964: an all-reduce of two A100 takes 544 MiB, as above. In a V both ends are on the
// first stage, which sums nothing.
TEST_CASE("first and last stage open a group for tied tables", "[communicator_memory]") {
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100());
  const CollectiveModel model(c, links);
  Workload w = pretraining(llama(8, 512, 8, 8, 1408, 1000), 128);
  ParallelPlan p = plan_of(2);
  p.pipeline = 4;
  p.microbatches = 8;
  const auto opened = [&] {
    return mebibytes(plan_communicators(w, p, c, RankLayout(p, c), model).device);
  };
  const auto more = [&] {
    w.model.tied_embeddings = false;
    const std::int64_t apart = opened();
    w.model.tied_embeddings = true;
    return opened() - apart;
  };
  CHECK(more() == 544);
  p.schedule = "zb-v";
  p.chunks = 2;
  CHECK(more() == 0);
}

// Gathers and scatters of two A100: 16 + 24 x 12 MiB. Megatron's group of the ranks that cut an
// expert is its own even where it is the tensor group's ranks.
TEST_CASE("ranks that cut an expert have a group of their own", "[communicator_memory]") {
  const LinkCalibration links = calibration();
  const Cluster c = hgx(a100());
  const CollectiveModel model(c, links);
  Workload w = pretraining(llama(8, 512, 8, 8, 1408, 1000), 128);
  w.model.moe = MixtureOfExperts{8, 2, 512, 0, false, 0, 1};
  ParallelPlan p = plan_of(4, 2);
  const auto more = [&] {
    const auto opened = [&] {
      return mebibytes(plan_communicators(w, p, c, RankLayout(p, c), model).device);
    };
    p.expert_tensor = 1;
    const std::int64_t whole = opened();
    p.expert_tensor = 2;
    return opened() - whole;
  };
  w.framework.layers.kernels = KernelStyle::fused;
  CHECK(more() == 304);
  w.framework.experts.dispatches_once = true;
  CHECK(more() == 0);
  w.framework.layers.kernels = KernelStyle::eager;
  w.framework.experts.dispatches_once = false;
  CHECK(more() == 0);
}
