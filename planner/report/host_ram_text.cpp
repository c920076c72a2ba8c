#include "planner/report/host_ram_text.hpp"

#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {

std::string host_ram_text(const Forecast& f, std::string_view about) {
  std::string text = sentence("  host RAM per node: ", about, shown_gib(f.host.steady),
                              " while training, ", shown_gib(f.host.load_peak), " while loading");
  if (!f.host_fits)
    text += sentence(", MORE THAN THE ", shown_gib(*f.host.available),
                     " THAT SUCH A NODE HAS (--host-ram says what yours has)");
  if (!f.host_fits && f.host.load_once < f.host.load_peak)
    text += sentence("; read by one process, the others empty, ", shown_gib(f.host.load_once));
  if (f.host.drives > Bytes(0))
    text += sentence("; on its drives: ", shown_gib(f.host.drives), " of optimizer states");
  return text + "\n";
}

}  // namespace shardwise
