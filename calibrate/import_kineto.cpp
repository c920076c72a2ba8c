#include "calibrate/import_kineto.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "calibrate/import_gemm_table.hpp"
#include "calibrate/log_text.hpp"
#include "calibrate/median.hpp"
#include "calibrate/memory_fit.hpp"
#include "calibrate/trace_events.hpp"
#include "catalog/json_document.hpp"

namespace shardwise {
namespace {

struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string dtype;
  friend auto operator<=>(const Product&, const Product&) = default;
};
// An operator over tensors that are broadcast against each other: elements of its result, and the
// most bytes that it moves (a result of its widest type).
struct Elementwise {
  std::int64_t elements = 0, bytes = 0;
  friend auto operator<=>(const Elementwise&, const Elementwise&) = default;
};
struct Span {
  double start_us = 0, duration_us = 0;
};
struct Kernel {
  Span span;
  std::string name;
  std::int64_t external_id = -1;
};

struct Trace {
  std::vector<Span> steps;
  std::vector<Kernel> kernels;
  std::map<std::int64_t, Product> products;  // by external id of the operator
  std::map<std::int64_t, Elementwise> elementwise;
  double allocated = 0, reserved = 0;  // peaks [bytes]
  int broken = 0;                      // events that are no JSON
};

std::optional<double> number_told(const JsonDocument& d, JsonIndex object, std::string_view key) {
  const JsonIndex i = object == no_json ? no_json : d.member(object, key);
  if (i == no_json) return std::nullopt;
  if (const auto value = d.as_number(i)) return value;
  const auto text = d.as_text(i);
  return text ? number_in(*text) : std::nullopt;
}

std::vector<std::int64_t> dims_at(const JsonDocument& d, JsonIndex args, std::size_t which) {
  const JsonIndex all = d.member(args, "Input Dims");
  if (all == no_json || d.at(all).children <= which) return {};
  std::vector<std::int64_t> dims;
  for (const JsonIndex i : d.children(d.children(all)[which]))
    if (const auto value = d.as_number(i)) dims.push_back(static_cast<std::int64_t>(*value));
  return dims;
}

std::string type_at(const JsonDocument& d, JsonIndex args, std::size_t which) {
  for (const std::string_view key : {"Input type", "Input Types"}) {
    const JsonIndex all = d.member(args, key);
    if (all == no_json || d.at(all).children <= which) continue;
    const auto text = d.as_text(d.children(all)[which]);
    if (text) return gemm_dtype(*text);
  }
  return "";
}

// mm(A, B), addmm(bias, A, B) and bmm(A, B).
std::optional<Product> product_of(const JsonDocument& d, std::string_view name, JsonIndex args) {
  if (args == no_json) return std::nullopt;
  const bool batched = name == "aten::bmm";
  if (!batched && name != "aten::mm" && name != "aten::addmm") return std::nullopt;
  const std::size_t first = name == "aten::addmm" ? 1 : 0, rank = batched ? 3 : 2;
  const auto a = dims_at(d, args, first), b = dims_at(d, args, first + 1);
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2]) return std::nullopt;
  return Product{a[rank - 2], b[rank - 1], a[rank - 1], batched ? a[0] : 1,
                 type_at(d, args, first)};
}

std::int64_t bytes_of_type(const JsonDocument& d, JsonIndex args, std::size_t which) {
  const std::string type = type_at(d, args, which);
  if (type == "fp32" || type == "tf32") return 4;
  return type == "fp16" || type == "bf16" ? 2 : 0;
}

// Dimensions are aligned at the last one, and one of them is 1 or they are equal; nothing where an
// operator's tensors do not broadcast, or hold no floating point of 16 or 32 bits.
std::optional<Elementwise> elementwise_of(const JsonDocument& d, JsonIndex args) {
  const JsonIndex all = args == no_json ? no_json : d.member(args, "Input Dims");
  if (all == no_json) return std::nullopt;
  std::vector<std::int64_t> result;  // the last dimension first
  std::int64_t widest = 0, read = 0;
  for (std::size_t i = 0; i < d.at(all).children; ++i) {
    std::vector<std::int64_t> dims = dims_at(d, args, i);
    const std::int64_t each = bytes_of_type(d, args, i);
    if (dims.empty() || each == 0) continue;
    std::reverse(dims.begin(), dims.end());
    if (result.size() < dims.size()) result.resize(dims.size(), 1);
    std::int64_t elements = 1;
    for (std::size_t j = 0; j < dims.size(); ++j) {
      if (dims[j] != 1 && result[j] != 1 && dims[j] != result[j]) return std::nullopt;
      result[j] = std::max(result[j], dims[j]);
      elements *= dims[j];
    }
    read += each * elements;
    widest = std::max(widest, each);
  }
  if (widest == 0) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t n : result) elements *= n;
  return Elementwise{elements, read + widest * elements};
}

// aten/src/ATen/native/cuda/CUDALoops.cuh: elementwise_kernel and unrolled_elementwise_kernel find
// each operand's place of each element, vectorized_elementwise_kernel reads packs.
bool takes_elements_singly(std::string_view kernel) {
  return kernel.find("elementwise_kernel") != kernel.npos &&
         kernel.find("vectorized_") == kernel.npos && kernel.find("_with_index") == kernel.npos;
}

void read_memory(const JsonDocument& d, JsonIndex args, Trace& trace) {
  if (number_told(d, args, "Device Type").value_or(1) != 1) return;
  trace.allocated = std::max(trace.allocated, number_told(d, args, "Total Allocated").value_or(0));
  trace.reserved = std::max(trace.reserved, number_told(d, args, "Total Reserved").value_or(0));
}

void read_event(std::string_view text, Trace& trace) {
  const auto parsed = parse_json(text, "event");
  if (!parsed) {
    ++trace.broken;
    return;
  }
  const JsonDocument& d = *parsed;
  const std::string name = text_of_member(d, 0, "name"),
                    category = lowered(text_of_member(d, 0, "cat"));
  const JsonIndex args = d.member(0, "args");
  if (name == "[memory]") return read_memory(d, args, trace);
  const auto start = number_told(d, 0, "ts"), duration = number_told(d, 0, "dur");
  if (text_of_member(d, 0, "ph") != "X" || !start || !duration) return;
  auto id = number_told(d, args, "External id");
  if (!id) id = number_told(d, args, "external id");
  const std::int64_t external = id ? static_cast<std::int64_t>(*id) : -1;
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
    trace.kernels.push_back({{*start, *duration}, name, external});
  } else if (category == "cpu_op" || category == "operator") {
    if (external < 0) return;
    if (auto product = product_of(d, name, args)) trace.products[external] = *std::move(product);
    if (const auto one = elementwise_of(d, args)) trace.elementwise[external] = *one;
  } else if (name.starts_with("ProfilerStep#") && category.find("gpu") == category.npos) {
    trace.steps.push_back({*start, *duration});
  }
}

Measurement made(std::string bench, std::string quantity, const std::vector<double>& samples,
                 const ImportedLog& log) {
  Measurement m;
  m.bench = std::move(bench);
  m.quantity = std::move(quantity);
  m.value = median(samples);
  m.spread = relative_spread(samples);
  m.samples = static_cast<int>(samples.size());
  if (const auto device = log.facts.find("device"); device != log.facts.end())
    m.labels["device"] = device->second;
  m.source = log.file;
  return m;
}

// Step times: distances of starts, as work on the GPU runs behind the CPU's own step.
void measure_steps(const Trace& trace, ImportedLog& log) {
  std::vector<double> samples;
  for (std::size_t i = 0; i + 1 < trace.steps.size(); ++i)
    samples.push_back((trace.steps[i + 1].start_us - trace.steps[i].start_us) * 1e-6);
  if (samples.empty() && !trace.steps.empty())
    samples.push_back(trace.steps.front().duration_us * 1e-6);
  if (samples.empty()) {
    leave_unread(log, 0, "", "no ProfilerStep: call prof.step() after every step of the loop");
    return;
  }
  log.measurements.push_back(made("step", "time_s", samples, log));
  log.measurements.back().sizes["steps"] = static_cast<std::int64_t>(samples.size());
}

void measure_memory(const Trace& trace, ImportedLog& log) {
  for (const auto& [kind, bytes] :
       {std::pair{"allocated", trace.allocated}, std::pair{"reserved", trace.reserved}}) {
    if (bytes <= 0) continue;
    log.measurements.push_back(made("step_memory", "bytes", {bytes}, log));
    log.measurements.back().labels["kind"] = kind;
  }
}

struct Window {
  double from = 0, to = 0;  // [us]
  double steps = 1;
  bool holds(const Kernel& k) const { return k.span.start_us >= from && k.span.start_us < to; }
};

Window window_of(const Trace& trace) {
  if (trace.steps.empty()) return {-1e300, 1e300, 1};
  if (trace.steps.size() == 1) return {trace.steps[0].start_us, 1e300, 1};
  return {trace.steps.front().start_us, trace.steps.back().start_us,
          static_cast<double>(trace.steps.size() - 1)};
}

void measure_kernels(const Trace& trace, const std::vector<KernelClass>& classes,
                     ImportedLog& log) {
  const Window window = window_of(trace);
  std::map<std::string_view, std::pair<double, std::int64_t>> by_class;
  std::map<std::string, double> other;
  for (const Kernel& k : trace.kernels) {
    if (!window.holds(k)) continue;
    const std::string_view name = kernel_class(classes, k.name);
    auto& [time, calls] = by_class[name];
    time += k.span.duration_us * 1e-6;
    ++calls;
    if (name == "other") other[k.name] += k.span.duration_us * 1e-6;
  }
  for (const auto& [name, total] : by_class) {
    log.measurements.push_back(made("kernel", "time_s", {total.first / window.steps}, log));
    log.measurements.back().labels["class"] = name;
    log.measurements.back().sizes["calls"] =
        static_cast<std::int64_t>(static_cast<double>(total.second) / window.steps + 0.5);
  }
  for (const auto& [name, time] : other) leave_unread(log, 0, name, "a kernel of no known class");
}

void measure_products(const Trace& trace, const std::vector<KernelClass>& classes,
                      ImportedLog& log) {
  std::map<std::int64_t, double> time_of;  // one operator may launch several kernels
  for (const Kernel& k : trace.kernels)
    if (trace.products.count(k.external_id) && kernel_class(classes, k.name) == "gemm")
      time_of[k.external_id] += k.span.duration_us * 1e-6;
  std::map<Product, std::vector<double>> samples;
  for (const auto& [id, time] : time_of) samples[trace.products.at(id)].push_back(time);
  for (const auto& [product, times] : samples) {
    Measurement m = made("gemm", "time_s", times, log);
    m.sizes = {{"m", product.m}, {"n", product.n}, {"k", product.k}, {"batch", product.batch}};
    m.labels["statistic"] = "median";
    if (!product.dtype.empty()) m.labels["dtype"] = product.dtype;
    log.measurements.push_back(std::move(m));
  }
}

void measure_single_elements(const Trace& trace, ImportedLog& log) {
  std::map<Elementwise, std::vector<double>> samples;
  for (const Kernel& k : trace.kernels)
    if (const auto of = trace.elementwise.find(k.external_id);
        of != trace.elementwise.end() && takes_elements_singly(k.name))
      samples[of->second].push_back(k.span.duration_us * 1e-6);
  for (const auto& [work, times] : samples) {
    Measurement m = made("memory_kernel", "time_s", times, log);
    m.sizes = {{"elements", work.elements}, {"bytes", work.bytes}};
    m.labels["kernel"] = element_by_element;
    log.measurements.push_back(std::move(m));
  }
}

// "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", ...}]
void read_device_properties(std::string_view header, ImportedLog& log) {
  const auto properties = after(header, "\"deviceProperties\"");
  const auto name = properties ? after(*properties, "\"name\"") : std::nullopt;
  if (!name) return;
  const std::size_t begin = name->find('"');
  const std::size_t end = begin == name->npos ? begin : name->find('"', begin + 1);
  if (end != name->npos) log.facts["device"] = name->substr(begin + 1, end - begin - 1);
}

}  // namespace

bool looks_like_kineto(std::string_view text) {
  const std::string_view start = text.substr(0, 1 << 16);
  return start.find("\"traceEvents\"") != start.npos ||
         (trimmed(start.substr(0, 64)).starts_with("[") && start.find("\"ph\"") != start.npos);
}

void import_kineto(std::string_view text, const std::vector<KernelClass>& classes,
                   ImportedLog& log) {
  Trace trace;
  const TraceWalk walk =
      walk_trace_events(text, [&](std::string_view event) { read_event(event, trace); });
  read_device_properties(walk.other, log);
  const auto earlier = [](const Span& a, const Span& b) { return a.start_us < b.start_us; };
  std::sort(trace.steps.begin(), trace.steps.end(), earlier);
  if (!walk.whole) leave_unread(log, 0, "", "the trace is cut off: its last events are missing");
  if (trace.broken > 0)
    leave_unread(log, 0, "", std::to_string(trace.broken) + " events are no JSON");
  if (trace.kernels.empty())
    leave_unread(log, 0, "", "no GPU kernels: profile with ProfilerActivity.CUDA");
  measure_steps(trace, log);
  measure_memory(trace, log);
  measure_kernels(trace, classes, log);
  measure_products(trace, classes, log);
  measure_single_elements(trace, log);
}

}  // namespace shardwise
