// Which attention kernel published runs are forecast with.
#include "planner/validation/replay.hpp"
#include "tests/catch.hpp"
#include "tests/planner/asked_runs.hpp"

namespace shardwise {

// DeepSeek-V3's recipe for GB300 sets both in release 0.5 (NeMo 26.06), that for GB200 the
// projection alone, Qwen3's attention alone; release 0.4 knows neither. NeMo 25.11 has cuDNN 9.13.
TEST_CASE("Recipes that compute attention and head in 8 bits, and a release of cuDNN") {
  const auto framework = [](const char* id) { return asked(id).question.workload.framework; };
  struct Row {
    const char* id;
    bool attention, head;
  };
  for (const Row& row :
       {Row{"bridge-26.06-pretrain-deepseekv3-gb300x256-mxfp8-gbs4096", true, true},
        Row{"bridge-26.06-pretrain-deepseekv3-gb200x256-mxfp8-gbs4096", false, true},
        Row{"bridge-26.06.01-pretrain-qwen3-235b-a22b-gb200x256-mxfp8-gbs8192", true, false},
        Row{"cc-qwen3-235b-a4x-64-pp8-ep8", false, false},
        Row{"bridge-card-deepseek-v3-gb200x256-performance-mxfp8", false, true},
        Row{"bridge-26.04-pretrain-deepseekv3-gb300x256-mxfp8-gbs4096", false, false}}) {
    INFO(row.id);
    CHECK(framework(row.id).narrow.attention == row.attention);
    CHECK(framework(row.id).narrow.head == row.head);
  }
  CHECK(framework("bridge-25.11-pretrain-llama3-8b-b200x8-fp8-mx-gbs128").attention.cudnn ==
        LibraryRelease{9, 13});
  CHECK_FALSE(
      framework("bridge-26.06-pretrain-deepseekv3-gb300x256-mxfp8-gbs4096").attention.cudnn);
  CHECK(framework("mcore-ci-7b-tp4pp1-8xgb200").attention.kernel == AttentionKernel::flash2);
}

// A record may ask what its card has not: 10.x alone has the kernel of 8-bit operands.
TEST_CASE("A record's attention in 8 bits is that of cards which have it") {
  RunRecord run = record("bridge-26.06-pretrain-deepseekv3-gb300x256-mxfp8-gbs4096");
  run.notes = "attention in fp8";
  CHECK(asked(run).question.workload.framework.narrow.attention);
  run.hardware.gpu = "H100";
  CHECK_FALSE(asked(run).question.workload.framework.narrow.attention);
}

}  // namespace shardwise
