#include "planner/launch/written_words.hpp"

#include <string_view>

#include "planner/launch/launch_job.hpp"

namespace shardwise {
namespace {

// The line of the heading that says the method, without its mark; empty where there is none.
std::string_view heading_in(std::string_view text) {
  const std::size_t at = text.find(heading_start);
  if (at == std::string_view::npos || at > 200) return {};  // it is among the first lines
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

bool was_written_here(const std::string& text) { return !heading_in(text).empty(); }

void imply_by_heading(const std::string& text, const std::string& file, PlanWords& words) {
  const std::string_view line = heading_in(text);
  for (const Method method : {Method::pretrain, Method::full})
    if (line.find(std::string(", ").append(name(method)).append(", ")) != std::string_view::npos)
      words.imply("method", std::string(name(method)), file);
}

void imply_by_run_script(const std::string& text, const std::string& file, PlanWords& words) {
  imply_by_heading(text, file, words);
  for (const char* variable : {"export PYTORCH_ALLOC_CONF=", "export PYTORCH_CUDA_ALLOC_CONF="}) {
    const std::size_t at = text.find(variable);
    if (at == std::string::npos || (at > 0 && text[at - 1] != '\n')) continue;
    const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
    if (line.find("expandable_segments:True") != std::string_view::npos)
      words.imply("expandable_segments", "true", file);
  }
}

}  // namespace shardwise
