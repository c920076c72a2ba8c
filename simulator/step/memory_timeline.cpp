#include "simulator/step/memory_timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/step/pass_span.hpp"

namespace shardwise {
namespace {

using PassKey = std::tuple<WorkKind, int, int>;  // pass, chunk, microbatch

struct Interval {
  SimTime from, to;
};

// When the GPU runs `layer` of a pass. Pieces end at the layer in their tag; a forward pass goes up
// through the layers, a backward pass down.
Interval layer_interval(const PassSpan& span, int layer, int layers) {
  if (span.pass == WorkKind::optimizer) return {span.start(), span.end()};
  const bool up = span.pass == WorkKind::forward;
  int before = up ? -1 : layers;  // the last layer of the piece before
  SimTime from = span.start();
  for (std::size_t i = 0; i < span.pieces.size();) {
    const int last = span.pieces[i].layer;
    SimTime start = std::max(from, span.pieces[i].start), to = span.pieces[i].end;
    // A re-run and the backward pass that asked for it are one piece.
    for (++i; i < span.pieces.size() && span.pieces[i].layer == last; ++i) to = span.pieces[i].end;
    const bool inside = up ? layer > before && layer <= last : layer < before && layer >= last;
    if (!inside && i < span.pieces.size()) {
      before = last;
      from = to;
      continue;
    }
    const int count = std::max(1, up ? last - before : before - last);
    const int place = std::clamp(up ? layer - before - 1 : before - 1 - layer, 0, count - 1);
    const std::int64_t each = (to.picoseconds - start.picoseconds) / count;
    return {{start.picoseconds + each * place}, {start.picoseconds + each * (place + 1)}};
  }
  return {span.start(), span.end()};
}

void enter(MemoryTimeline& timeline, MemorySample sample) {
  if (timeline.empty()) sample.at = SimTime{};
  if (!timeline.empty() && timeline.back().at >= sample.at) {
    timeline.back().allocated = std::max(timeline.back().allocated, sample.allocated);
    timeline.back().reserved = std::max(timeline.back().reserved, sample.reserved);
  } else if (timeline.empty() || timeline.back().allocated != sample.allocated ||
             timeline.back().reserved != sample.reserved) {
    timeline.push_back(sample);
  }
}

}  // namespace

MemoryTimeline memory_timeline(const PlayedStep& step, int stage,
                               const std::vector<MemoryMoment>& moments) {
  const std::vector<PassSpan> spans = pass_spans(step, stage);
  std::map<PassKey, const PassSpan*> by_pass;
  for (const PassSpan& span : spans)
    by_pass.emplace(PassKey{span.pass, span.chunk, span.microbatch}, &span);
  std::map<int, int> layers;  // of each chunk
  for (const MemoryMoment& m : moments) layers[m.chunk] = std::max(layers[m.chunk], m.layer + 1);
  MemoryTimeline timeline;
  SimTime last;
  for (const MemoryMoment& m : moments) {
    const auto found = by_pass.find({m.pass, m.chunk, m.microbatch});
    Interval when{last, last};
    if (found != by_pass.end()) when = layer_interval(*found->second, m.layer, layers[m.chunk]);
    when.from = std::max(when.from, last);
    when.to = std::max(when.to, when.from);
    enter(timeline, {when.from, m.most, m.reserved});
    if (when.to > when.from) enter(timeline, {when.to, m.after, m.reserved});
    last = when.to;
  }
  return timeline;
}

MemoryTimeline thinned(const MemoryTimeline& timeline, SimTime end, int samples) {
  return static_cast<int>(timeline.size()) <= samples ? timeline : evenly(timeline, end, samples);
}

MemoryTimeline evenly(const MemoryTimeline& timeline, SimTime end, int samples) {
  MemoryTimeline parts;
  if (timeline.empty()) return parts;
  const std::int64_t whole = end.picoseconds / samples, rest = end.picoseconds % samples;
  std::size_t next = 0;
  MemorySample held = timeline.front();
  for (int p = 0; p < samples; ++p) {
    const auto boundary = [&](int i) { return SimTime{whole * i + rest * i / samples}; };
    MemorySample part{boundary(p), held.allocated, held.reserved};
    const bool last = p + 1 == samples;
    for (; next < timeline.size() && (last || timeline[next].at < boundary(p + 1)); ++next) {
      held = timeline[next];
      // What ended as this part began is not part of it.
      if (held.at == part.at) part = held;
      part.allocated = std::max(part.allocated, held.allocated);
      part.reserved = std::max(part.reserved, held.reserved);
    }
    parts.push_back(part);
  }
  return parts;
}

}  // namespace shardwise
