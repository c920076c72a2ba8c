#include "planner/report/pipeline_drawing.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/figures.hpp"
#include "planner/sentence.hpp"
#include "simulator/step/pass_span.hpp"

namespace shardwise {
namespace {

struct Window {
  SimTime from, to;
  int columns = 80;

  std::int64_t length() const { return to.picoseconds - from.picoseconds; }
  // Where column c begins; column c + 1 begins where it ends. In two steps, so that a step of days
  // does not overflow.
  SimTime begin(int c) const {
    const std::int64_t whole = length() / columns, rest = length() % columns;
    return {from.picoseconds + whole * c + rest * c / columns};
  }
};

// How a kind of work looks: the letter that opens it, what fills the rest, its colour.
struct Look {
  WorkKind work;
  char letter, fill;
  std::string_view colour;  // SGR parameters
};
constexpr std::array<Look, 6> looks{{
    {WorkKind::forward, 'F', '-', "44;97"},
    {WorkKind::backward, 'B', '=', "42;30"},
    {WorkKind::backward_weight, 'W', '+', "43;30"},
    {WorkKind::recompute, 'R', '~', "46;30"},
    {WorkKind::optimizer, 'O', 'o', "45;97"},
    {WorkKind::other, ':', ':', "2"},
}};
constexpr char bubble = '.';
constexpr char waiting = ':';

const Look& look_of(WorkKind work) {
  for (const Look& look : looks)
    if (look.work == work) return look;
  return looks.back();
}

// What one column shows: a piece of work of one pass, or a kind of waiting.
struct Cell {
  const Look* look = nullptr;  // nullptr: waiting
  std::size_t pass = 0;        // index of the pass, where there is one
  std::int64_t busy = 0;       // picoseconds of the column so spent
};

std::int64_t overlap(SimTime a, SimTime b, SimTime c, SimTime d) {
  return std::max<std::int64_t>(0, std::min(b, d).picoseconds - std::max(a, c).picoseconds);
}

// What the other lanes of a rank do while its compute lane idles: their spans, by start.
std::vector<TaskTimes> communication(const PlayedStep& step, int rank) {
  const TaskGraph& graph = step.graph();
  std::vector<TaskTimes> spans;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    const LaneId lane = graph.lanes(task).front();
    const LaneKind kind = graph.kind(lane);
    const bool own = kind != LaneKind::compute && kind != LaneKind::pipeline_comm &&
                     kind != LaneKind::pipeline_comm_backward;
    if (graph.rank(lane) == rank && own) spans.push_back(step.timeline[task]);
  }
  std::sort(spans.begin(), spans.end(),
            [](const TaskTimes& a, const TaskTimes& b) { return a.start < b.start; });
  return spans;
}

class Row {
 public:
  Row(const PlayedStep& step, int stage, Window window)
      : window_(window),
        spans_(pass_spans(step, stage)),
        others_(communication(step, step.rank_of_stage(stage))),
        cells_(static_cast<std::size_t>(window.columns)),
        work_(cells_.size(), 0) {
    for (std::size_t s = 0; s < spans_.size(); ++s)
      for (const PassPiece& piece : spans_[s].pieces) enter(piece, s);
  }

  // One character per column.
  std::string letters() const {
    std::string text(cells_.size(), bubble);
    for (std::size_t c = 0; c < cells_.size(); ++c)
      if (idles(c)) text[c] = idle_letter(c);
    for (std::size_t c = 0; c < cells_.size();) {
      if (idles(c)) {
        ++c;
        continue;
      }
      std::size_t end = c + 1;
      while (end < cells_.size() && !idles(end) && cells_[end].pass == cells_[c].pass &&
             cells_[end].look == cells_[c].look)
        ++end;
      write(text, c, end);
      c = end;
    }
    return text;
  }

  std::string_view colour(std::size_t c) const {
    return idles(c) ? std::string_view("2") : cells_[c].look->colour;
  }

  // The typical length of a pass, by which the larger drawing is scaled.
  std::int64_t median_pass() const {
    std::vector<std::int64_t> lengths;
    for (const PassSpan& span : spans_)
      if (span.pass != WorkKind::optimizer)
        lengths.push_back(span.end().picoseconds - span.start().picoseconds);
    if (lengths.empty()) return 0;
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    return *middle;
  }

 private:
  int column_of(SimTime t) const {
    const auto share = static_cast<double>((t.picoseconds - window_.from.picoseconds)) /
                       static_cast<double>(std::max<std::int64_t>(1, window_.length()));
    int c = std::clamp(static_cast<int>(share * window_.columns), 0, window_.columns - 1);
    while (c > 0 && window_.begin(c) > t) --c;
    while (c + 1 < window_.columns && window_.begin(c + 1) <= t) ++c;
    return c;
  }

  void enter(const PassPiece& piece, std::size_t pass) {
    if (piece.end <= window_.from || piece.start >= window_.to) return;
    const Look& look = look_of(piece.work);
    for (int c = column_of(std::max(piece.start, window_.from)); c < window_.columns; ++c) {
      const SimTime begin = window_.begin(c);
      if (begin >= piece.end) break;
      const auto at = static_cast<std::size_t>(c);
      const std::int64_t spent = overlap(begin, window_.begin(c + 1), piece.start, piece.end);
      work_[at] += spent;
      Cell& cell = cells_[at];
      if (cell.look == &look && cell.pass == pass)
        cell.busy += spent;
      else if (spent > cell.busy)
        cell = {&look, pass, spent};
    }
  }

  bool idles(std::size_t c) const {
    const int column = static_cast<int>(c);
    const std::int64_t length =
        window_.begin(column + 1).picoseconds - window_.begin(column).picoseconds;
    return cells_[c].look == nullptr || 2 * work_[c] < length;
  }

  char idle_letter(std::size_t c) const {
    const int column = static_cast<int>(c);
    const SimTime begin = window_.begin(column), end = window_.begin(column + 1);
    for (const TaskTimes& t : others_) {
      if (t.start >= end) break;
      if (2 * overlap(begin, end, t.start, t.end) > end.picoseconds - begin.picoseconds)
        return waiting;
    }
    return bubble;
  }

  // Columns [begin, end) of one pass: its letter, its number where there is room, and filling.
  void write(std::string& text, std::size_t begin, std::size_t end) const {
    const Cell& cell = cells_[begin];
    const PassSpan& span = spans_[cell.pass];
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
              text.begin() + static_cast<std::ptrdiff_t>(end), cell.look->fill);
    text[begin] = cell.look->letter;
    if (span.pass == WorkKind::optimizer || span.pass == WorkKind::other) return;
    const std::string number =
        std::to_string(span.microbatch) + std::string(static_cast<std::size_t>(span.chunk), '\'');
    if (number.size() + 1 <= end - begin) text.replace(begin + 1, number.size(), number);
  }

  Window window_;
  std::vector<PassSpan> spans_;
  std::vector<TaskTimes> others_;
  std::vector<Cell> cells_;
  std::vector<std::int64_t> work_;  // of any kind, by column
};

std::string coloured(const Row& row, const std::string& letters) {
  std::string text;
  std::string_view now;
  for (std::size_t c = 0; c < letters.size(); ++c) {
    const std::string_view wanted = row.colour(c);
    if (wanted != now) text += sentence(now.empty() ? "" : "\x1b[0m", "\x1b[", wanted, "m");
    now = wanted;
    text += letters[c];
  }
  return text + (now.empty() ? "" : "\x1b[0m");
}

int label_width(const PlayedStep& step) {
  return static_cast<int>(std::to_string(step.stages() - 1).size());
}

std::string window_text(const PlayedStep& step, Window window, DrawingStyle style) {
  std::string text;
  const auto label = static_cast<std::size_t>(label_width(step));
  for (int stage = 0; stage < step.stages(); ++stage) {
    const Row row(step, stage, window);
    const std::string name = std::to_string(stage);
    const std::string letters = row.letters();
    text += sentence("  ", std::string(label - name.size(), ' '), name, " |",
                     style.colour ? coloured(row, letters) : letters, "\n");
  }
  const std::string from = shown_time(window.from - SimTime{});
  const std::string to = shown_time(window.to - SimTime{});
  const auto columns = static_cast<std::size_t>(window.columns);
  const std::size_t used = std::min(columns, from.size() + to.size());
  text += sentence(std::string(label + 4, ' '), from, std::string(columns - used, ' '), to, "\n");
  return text;
}

}  // namespace

std::string pipeline_drawing(const PlayedStep& step, DrawingStyle style) {
  const int columns = std::max(8, style.width - label_width(step) - 4);
  const Window whole{SimTime{}, step.timeline.makespan, columns};
  std::string text = sentence("  the step, a row per stage, a column for ",
                              shown_time(Seconds(seconds(Picoseconds(whole.length())).value /
                                                 static_cast<double>(columns))),
                              "\n", window_text(step, whole, style));
  constexpr int readable = 4;  // columns of a pass whose number can be read
  const std::int64_t pass = Row(step, 0, whole).median_pass();
  const std::int64_t larger = pass / readable * columns;
  if (larger > 0 && larger < whole.length() / 2) {
    const SimTime late{whole.to.picoseconds - larger};
    text += sentence("  its beginning\n", window_text(step, {{}, {larger}, columns}, style),
                     "  its end\n", window_text(step, {late, whole.to, columns}, style));
  }
  return text +
         "    F forward, B backward, W its weight half, R recomputation, O optimizer,\n"
         "    number = microbatch, ' = second chunk, . bubble, : waits for communication or host\n";
}

}  // namespace shardwise
