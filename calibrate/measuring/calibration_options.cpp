#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "calibrate/measuring/calibration.hpp"

namespace shardwise {
namespace {

template <class Number>
std::optional<Number> whole_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> gpu_list(const std::string& text) {
  std::vector<int> gpus;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto gpu = whole_number<int>(text.substr(begin, end - begin));
    if (!gpu) return std::nullopt;
    gpus.push_back(*gpu);
    begin = end + 1;
  }
  return gpus;
}

// A flag without a value, and one with: what it sets. The second says what it expected in vain.
using Flags = std::map<std::string, std::function<void(CalibrationOptions&)>>;
using Values =
    std::map<std::string, std::function<const char*(CalibrationOptions&, const std::string&)>>;

const Flags& flags() {
  static const Flags rows{
      {"--quick", [](CalibrationOptions& o) { o.mode = CalibrationMode::quick; }},
      {"--full", [](CalibrationOptions& o) { o.mode = CalibrationMode::full; }},
      {"--resume", [](CalibrationOptions& o) { o.resume = true; }},
      {"--list", [](CalibrationOptions& o) { o.list = true; }},
      {"--simulated-device", [](CalibrationOptions& o) { o.simulated = true; }},
      {"--check-libraries", [](CalibrationOptions& o) { o.check_libraries = true; }},
      {"--help", [](CalibrationOptions& o) { o.help = true; }},
  };
  return rows;
}

const Values& values() {
  static const Values rows{
      {"--output",
       [](CalibrationOptions& o, const std::string& text) {
         o.output = text;
         return text.empty() ? "a file name" : nullptr;
       }},
      {"--only",
       [](CalibrationOptions& o, const std::string& text) {
         o.only = text;
         return text.empty() ? "the name of a bench" : nullptr;
       }},
      {"--gpus",
       [](CalibrationOptions& o, const std::string& text) {
         const auto gpus = gpu_list(text);
         o.gpus = gpus.value_or(std::vector<int>{});
         return gpus ? nullptr : "numbers of GPUs, as 0,1";
       }},
      {"--budget",
       [](CalibrationOptions& o, const std::string& text) {
         const auto seconds = whole_number<int>(text);
         if (seconds) o.budget = Seconds(*seconds);
         return seconds && *seconds > 0 ? nullptr : "whole seconds above 0";
       }},
  };
  return rows;
}

}  // namespace

std::string_view calibration_usage() {
  return "shardwise-calibrate: measures the NVIDIA GPUs of this machine\n\n"
         "  --quick            at most 60 s per GPU (the default)\n"
         "  --full             the whole grid, up to 25 minutes per GPU\n"
         "  --output FILE      the measurements, JSON lines (measurements.jsonl)\n"
         "  --resume           go on with FILE where it was left\n"
         "  --gpus 0,2         these GPUs alone\n"
         "  --only BENCH       one bench: gemm, attention, memory_kernel, copy, launch, ...\n"
         "  --budget SECONDS   of each GPU, in place of the mode's\n"
         "  --list             print the machine's facts and measure nothing\n"
         "  --simulated-device measure two GPUs that are not there, to try this program\n"
         "  --check-libraries  say which of cuBLASLt, NCCL and NVML are found, with versions\n\n"
         "Several nodes: start one process per GPU with torchrun, or with RANK, WORLD_SIZE,\n"
         "LOCAL_RANK, MASTER_ADDR and MASTER_PORT set; the collectives are measured, rank 0 "
         "writes.\n"
         "`shardwise calibrate` turns the measurements into a profile.\n";
}

Result<CalibrationOptions> read_calibration_options(const std::vector<std::string>& arguments) {
  CalibrationOptions options;
  Problems problems;
  const auto problem = [&](const std::string& where, const std::string& what) {
    problems.push_back({ProblemKind::request, where, what});
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (const auto flag = flags().find(argument); flag != flags().end()) {
      flag->second(options);
    } else if (const auto value = values().find(argument); value == values().end()) {
      problem(argument, "is not an option; --help lists them");
    } else if (i + 1 == arguments.size()) {
      problem(argument, "needs a value");
    } else if (const char* expected = value->second(options, arguments[++i])) {
      problem(argument,
              std::string("expected ").append(expected).append(", found \"") + arguments[i] + "\"");
    }
  }
  if (!problems.empty()) return problems;
  return options;
}

}  // namespace shardwise
