#include "planner/sweep/sweep_desk.hpp"

#include <algorithm>
#include <utility>

#include "catalog/text_file.hpp"
#include "planner/figures.hpp"
#include "planner/sentence.hpp"

namespace shardwise {
namespace {

constexpr std::size_t most_study_bytes = std::size_t{16} << 20;
constexpr std::chrono::seconds between_words{5}, between_checkpoints{10};
constexpr std::chrono::milliseconds patience{1000};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Result<OpenedStudy> open_study(const std::string& path) {
  auto text = read_text_file(path, path, most_study_bytes);
  if (!text) return text.error();
  auto study = read_study_text(*text, path);
  if (!study) return study.error();
  return OpenedStudy{*std::move(study), *std::move(text)};
}

SweepDesk::SweepDesk(SweepStore store, std::vector<std::int64_t> missing, std::ostream& progress)
    : store_(std::move(store)),
      missing_(std::move(missing)),
      left_(missing_.size()),
      progress_(&progress),
      begun_(Clock::now()),
      told_(begun_),
      flushed_(begun_) {}

Problems SweepDesk::check_answers_alike(const SweepStore& store, const std::vector<bool>& finished,
                                        const Study& study, PointFacts& facts) {
  const auto first = std::find(finished.begin(), finished.end(), true);
  if (first == finished.end()) return {};
  const auto last = std::find(finished.rbegin(), finished.rend(), true);
  for (const std::int64_t point :
       {std::int64_t{first - finished.begin()}, std::int64_t{finished.rend() - last - 1}}) {
    const auto kept = store.row(point);
    if (!kept) return kept.error();
    if (finish_point(study, point, facts).row != *kept)
      return {{ProblemKind::file, "--resume",
               sentence("this program answers point ", point,
                        " otherwise than the one that began the file; expected the same program, "
                        "or --out with another name")}};
  }
  return {};
}

Result<SweepDesk> SweepDesk::open(const SweepTask& task, const OpenedStudy& opened,
                                  const std::string& facts_fingerprint, PointFacts& facts,
                                  std::ostream& progress) {
  const Study& study = opened.study;
  const SweepHeader header{study.name, study.fingerprint(), facts_fingerprint, opened.text,
                           study.points()};
  auto store =
      task.resume ? SweepStore::resume(task.out, header) : SweepStore::create(task.out, header);
  if (!store) return store.error();
  const auto finished = store->finished();
  if (!finished) return finished.error();
  if (Problems apart = check_answers_alike(*store, *finished, study, facts); !apart.empty())
    return apart;
  std::vector<std::int64_t> missing;
  for (std::int64_t point = 0; point < study.points(); ++point)
    if (!(*finished)[static_cast<std::size_t>(point)]) missing.push_back(point);
  return SweepDesk(*std::move(store), std::move(missing), progress);
}

std::optional<std::int64_t> SweepDesk::next() {
  if (handed_out_ == missing_.size()) return std::nullopt;
  return missing_[handed_out_++];
}

Problems SweepDesk::accept(const FinishedPoint& done, int rank, const std::string& host) {
  if (Problems problems = store_.add(done.row, {rank, host, done.took}); !problems.empty())
    return problems;
  --left_;
  tell_progress();
  if (Clock::now() - flushed_ < between_checkpoints) return {};
  flushed_ = Clock::now();
  return store_.checkpoint();
}

void SweepDesk::tell_progress() {
  if (Clock::now() - told_ < between_words) return;
  told_ = Clock::now();
  const auto done = static_cast<std::int64_t>(missing_.size() - left_);
  const double rate = static_cast<double>(done) / seconds_since(begun_);
  *progress_ << sentence("sweep: ", grouped(done), " of ",
                         counted(static_cast<std::int64_t>(missing_.size()), "point"), ", ",
                         shown_rate(rate), " a second, about ",
                         shown_time(Seconds(static_cast<double>(left_) / rate)), " left\n")
             << std::flush;
}

Problems SweepDesk::close() { return store_.checkpoint(); }

std::string SweepDesk::summary() const {
  const std::int64_t all = store_.header().points;
  const auto mine = static_cast<std::int64_t>(missing_.size());
  return sentence("sweep: ", counted(mine, "point"), " in ", fixed(seconds_since(begun_), 2), " s",
                  mine == all ? "" : sentence("; ", grouped(all - mine), " were there already"),
                  "\n");
}

Problems sweep_here(SweepDesk& desk, const Study& study, PointFacts& facts, int threads) {
  PointCrew crew(study, facts, threads);
  for (int i = 0; i < crew.handful(); ++i)
    if (const auto point = desk.next()) crew.give(*point);
  while (!desk.complete()) {
    const auto done = crew.take(patience);
    if (!done) continue;
    if (const auto point = desk.next()) crew.give(*point);
    if (Problems problems = desk.accept(*done, 0, this_host()); !problems.empty()) return problems;
  }
  return desk.close();
}

}  // namespace shardwise
