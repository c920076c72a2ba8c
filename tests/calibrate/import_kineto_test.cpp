#include "calibrate/import_kineto.hpp"

#include <algorithm>
#include <string>

#include "calibrate/import_log.hpp"
#include "calibrate/trace_events.hpp"
#include "catalog/catalog_root.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace shardwise;

namespace {

std::vector<KernelClass> classes() {
  const auto rows = load_kernel_classes(std::filesystem::path(source_dir()) / "catalog");
  REQUIRE(rows);
  return *rows;
}

const Measurement* find(const ImportedLog& log, const std::string& bench,
                        const std::string& label = "", const std::string& value = "") {
  for (const Measurement& m : log.measurements)
    if (m.bench == bench && (label.empty() || m.labels.at(label) == value)) return &m;
  return nullptr;
}

std::string kernel(const std::string& name, int start_us, int duration_us, int id = 0) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "ts": )" +
         std::to_string(start_us) + R"(, "dur": )" + std::to_string(duration_us) +
         R"(, "args": {"device": 0, "External id": )" + std::to_string(id) + "}},\n";
}
std::string step(int number, int start_us, int duration_us) {
  return R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" +
         std::to_string(number) + R"(", "ts": )" + std::to_string(start_us) + R"(, "dur": )" +
         std::to_string(duration_us) + "},\n";
}

// Two whole steps of 1000 and 1100 us and the start of a third; a kernel before the first.
std::string trace() {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
  "traceEvents": [
  )" + kernel("ampere_bf16_s16816gemm_bf16_128x128_tn", 50, 400, 1) +
         step(3, 100, 900) + step(4, 1100, 900) + step(5, 2200, 900) +
         R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 110, "dur": 5, "args": {
             "External id": 7, "Input Dims": [[4096, 1024], [1024, 512]],
             "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
  )" + kernel("ampere_bf16_s16816gemm_bf16_128x128_tn", 200, 120, 7) +
         kernel("void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", 400, 60) +
         kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 500,
                80) +
         kernel("my_own_kernel", 1200, 10) +
         kernel("vectorized_elementwise_kernel<4, add>", 1300, 20) +
         R"({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 300, "s": "t",
             "args": {"Total Reserved": 3000, "Total Allocated": 2000, "Device Type": 1}},
  {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 310,
             "args": {"Total Reserved": 9000, "Total Allocated": 8000, "Device Type": 0}}
  ], "traceName": "a \"quoted\" } name"})";
}

}  // namespace

TEST_CASE("a trace tells of steps, memory, kernels by class and products by shape") {
  const ImportedLog log = import_log("t.json", trace(), classes());
  CHECK(log.format == "PyTorch profiler trace");
  CHECK(log.facts.at("device") == "NVIDIA A100-SXM4-80GB");

  const Measurement* steps = find(log, "step");
  REQUIRE(steps);
  CHECK(steps->samples == 2);
  CHECK(steps->value == Approx(1050e-6));  // the median of 1000 and 1100 us

  // Host memory (device type 0) does not count.
  CHECK(find(log, "step_memory", "kind", "allocated")->value == 2000);
  CHECK(find(log, "step_memory", "kind", "reserved")->value == 3000);

  // Per step: 120 us of gemm over two steps, and so on; the 400 us before the first do not count.
  CHECK(find(log, "kernel", "class", "gemm")->value == Approx(60e-6));
  CHECK(find(log, "kernel", "class", "attention_forward")->value == Approx(30e-6));
  CHECK(find(log, "kernel", "class", "collective")->value == Approx(40e-6));
  CHECK(find(log, "kernel", "class", "elementwise")->value == Approx(10e-6));
  CHECK(find(log, "kernel", "class", "other")->value == Approx(5e-6));
  REQUIRE(log.unread.size() == 1);
  CHECK(log.unread.at(0).text == "my_own_kernel");

  const Measurement* product = find(log, "gemm");
  REQUIRE(product);
  CHECK(product->value == Approx(120e-6));
  CHECK(product->sizes.at("m") == 4096);
  CHECK(product->sizes.at("n") == 512);
  CHECK(product->sizes.at("k") == 1024);
  CHECK(product->labels.at("dtype") == "bf16");
}

TEST_CASE("kernels that take elements one by one are told with what they move at most") {
  const auto op = [](const std::string& name, int id, const std::string& dims,
                     const std::string& types) {
    return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name +
           R"(", "ts": 110, "dur": 5, "args": {"External id": )" + std::to_string(id) +
           R"(, "Input Dims": )" + dims + R"(, "Input type": )" + types + "}},\n";
  };
  const std::string singly = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel>";
  const std::string text =
      R"({"schemaVersion": 1, "traceEvents": [)" + step(1, 100, 900) +
      // 2 x 32 x 1024 x 64 elements of bf16, times one row of 64 that is broadcast.
      op("aten::mul", 1, "[[2, 32, 1024, 64], [64]]", R"(["c10::BFloat16", "c10::BFloat16"])") +
      kernel(singly, 200, 40, 1) +
      op("aten::mul", 2, "[[2, 32, 1024, 64], [64]]", R"(["c10::BFloat16", "c10::BFloat16"])") +
      kernel(singly, 300, 44, 2) +
      // A scalar has no dimensions; packs are no single elements; an index that does not broadcast
      // is no operand.
      op("aten::mul", 3, "[[4096, 64], []]", R"(["float", "Scalar"])") +
      kernel("void at::native::vectorized_elementwise_kernel<4, mul>", 400, 9, 3) +
      op("aten::cat", 4, "[[10, 64], [20, 64]]", R"(["float", "float"])") +
      kernel(singly, 500, 9, 4) + R"({"ph": "M"}]})";
  const ImportedLog log = import_log("t.json", text, classes());
  const Measurement* found = find(log, "memory_kernel");
  REQUIRE(found);
  CHECK(found->labels.at("kernel") == "element_by_element");
  CHECK(found->samples == 2);
  CHECK(found->value == Approx(42e-6));
  CHECK(found->sizes.at("elements") == 2 * 32 * 1024 * 64);
  // Both operands and a result of 2 B an element.
  CHECK(found->sizes.at("bytes") == 2 * (2 * (2 * 32 * 1024 * 64) + 64));
  CHECK(std::count_if(log.measurements.begin(), log.measurements.end(),
                      [](const Measurement& m) { return m.bench == "memory_kernel"; }) == 1);
}

TEST_CASE("a trace that was cut off keeps its whole events") {
  const std::string whole = trace();
  const ImportedLog log =
      import_log("t.json", whole.substr(0, whole.find("vectorized") + 5), classes());
  REQUIRE(find(log, "step"));
  CHECK(find(log, "kernel", "class", "gemm")->value == Approx(60e-6));
  CHECK(find(log, "kernel", "class", "elementwise") == nullptr);
  CHECK(log.unread.at(0).why == "the trace is cut off: its last events are missing");
}

TEST_CASE("braces and quotes inside of strings do not end an event") {
  int events = 0;
  const TraceWalk walk =
      walk_trace_events(R"([{"name": "a}\"]{", "args": {"x": [1, {"y": 2}]}}, {"name": "b"}])",
                        [&](std::string_view) { ++events; });
  CHECK(walk.found);
  CHECK(walk.whole);
  CHECK(events == 2);
}

TEST_CASE("every class of kernels has a name that it alone claims") {
  const auto rows = classes();
  for (const KernelClass& row : rows) {
    INFO(row.name);
    REQUIRE(!row.words.empty());
    // The first word that no earlier row holds leads back to the row.
    bool reached = false;
    for (const std::string& word : row.words)
      reached = reached || kernel_class(rows, word) == row.name;
    CHECK(reached);
  }
  CHECK(kernel_class(rows, "void at::native::reduce_kernel<512, 1>") == "reduction");
  CHECK(kernel_class(rows, "nvjet_hsh_256x128_64x4_2x1_v_bz_TNN") == "gemm");
  CHECK(kernel_class(rows, "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel") == "attention_backward");
  CHECK(kernel_class(rows, "something_else") == "other");
}
