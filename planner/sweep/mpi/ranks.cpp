#include "planner/sweep/mpi/ranks.hpp"

#include <utility>

#include "catalog/catalog_root.hpp"
#include "planner/sentence.hpp"
#include "planner/sweep/announced_ranks.hpp"

namespace shardwise {
namespace {

constexpr std::chrono::milliseconds between_words{1};  // that rank 0 listens to its own threads
constexpr std::chrono::milliseconds patience{1000};

// What a rank answers from; `fingerprint` is empty where it has no catalog.
struct RankFacts {
  std::unique_ptr<PointFacts> facts;
  std::string fingerprint;
  Problems problems;
};

RankFacts load_rank_facts(const Study& study) {
  RankFacts mine;
  const auto root = find_catalog_root();
  if (!root) {
    mine.problems = root.error();
    return mine;
  }
  auto facts = PointFacts::load(*root);
  if (!facts) {
    mine.problems = facts.error();
    return mine;
  }
  mine.facts = *std::move(facts);
  mine.fingerprint = facts_fingerprint(*root, study);
  return mine;
}

// On rank 0: every rank has to answer from the same data.
Problems check_alike(const RankFacts& mine, const std::vector<std::string>& fingerprints,
                     const std::vector<std::string>& hosts) {
  if (!mine.problems.empty()) return mine.problems;
  for (std::size_t i = 0; i < fingerprints.size(); ++i)
    if (fingerprints[i] != mine.fingerprint)
      return {{ProblemKind::file, "catalog",
               sentence("rank ", i, " on ", hosts[i], " has ",
                        fingerprints[i].empty() ? "none" : "another one, or other model files",
                        "; expected those of rank 0 on ", hosts.front())}};
  return {};
}

int threads_of(const SweepTask& task, Channel& channel) {
  const auto [masks, mine] = channel.on_this_machine(own_cores());
  return task.threads.value_or(fair_threads(masks, mine));
}

// Rank 0 while others work: what they say, then what its own threads have.
Problems lead(SweepDesk& desk, const Study& study, PointFacts& facts, Channel& channel, int threads,
              const std::vector<std::string>& hosts) {
  PointCrew crew(study, facts, threads);
  for (int i = 0; i < crew.handful(); ++i)
    if (const auto point = desk.next()) crew.give(*point);
  for (int working = channel.size() - 1; working > 0 || !desk.complete();) {
    Problems problems;
    if (const auto word = channel.heard()) {
      if (word->leaves)
        --working;
      else
        channel.answer(word->rank, desk.next());
      if (word->done)
        problems =
            desk.accept(*word->done, word->rank, hosts[static_cast<std::size_t>(word->rank)]);
    } else if (const auto done = crew.take(between_words)) {
      if (const auto point = desk.next()) crew.give(*point);
      problems = desk.accept(*done, 0, hosts.front());
    }
    if (!problems.empty()) return problems;
  }
  return desk.close();
}

void follow(const Study& study, PointFacts& facts, Channel& channel, int threads) {
  PointCrew crew(study, facts, threads);
  int in_hand = 0;
  const auto take_answer = [&] {
    if (const auto point = channel.answered()) {
      crew.give(*point);
      ++in_hand;
    }
  };
  for (int i = 0; i < crew.handful(); ++i) {
    channel.ask();
    take_answer();
  }
  while (in_hand > 0) {
    const auto done = crew.take(patience);
    if (!done) continue;
    --in_hand;
    channel.report(*done);
    take_answer();
  }
  channel.leave();
}

Result<SweepDesk> open_desk(const SweepTask& task, const OpenedStudy& study, const RankFacts& mine,
                            const Problems& apart, const Output& output) {
  if (!apart.empty()) return apart;
  return SweepDesk::open(task, study, mine.fingerprint, *mine.facts, output.err);
}

Problems check_started(const Channel& channel) {
  if (channel.size() >= ranks_announced()) return {};
  return {{ProblemKind::request, "MPI",
           sentence("this process was started as one of ", ranks_announced(),
                    ", but its MPI knows of ", channel.size(),
                    "; start it with the mpirun of the MPI that it was built with, or with srun "
                    "--mpi=pmix")}};
}

}  // namespace

int sweep_over_ranks(const SweepTask& task, Channel& channel, const Output& output) {
  const bool first = channel.rank() == 0;
  if (const Problems problems = check_started(channel); !problems.empty())
    return report_problems(problems, output);
  // Rank 0 reads the study, or says why it cannot; the others get what it read.
  Result<OpenedStudy> study = Problems{};
  if (first) study = open_study(task.study_file);
  const std::string text = channel.from_first(study ? study->text : std::string());
  if (first && !study) return report_problems(study.error(), output);
  if (text.empty()) return 0;
  if (!first) {
    auto mine = read_study_text(text, task.study_file);
    if (!mine) return 0;
    study = OpenedStudy{*std::move(mine), text};
  }
  const RankFacts mine = load_rank_facts(study->study);
  const std::vector<std::string> fingerprints = channel.to_first(mine.fingerprint);
  const std::vector<std::string> hosts = channel.to_first(this_host());
  const int threads = threads_of(task, channel);
  if (!first) {
    if (channel.from_first("") == "go") follow(study->study, *mine.facts, channel, threads);
    return 0;
  }
  auto desk = open_desk(task, *study, mine, check_alike(mine, fingerprints, hosts), output);
  channel.from_first(desk ? "go" : "stop");
  if (!desk) return report_problems(desk.error(), output);
  const Problems problems = lead(*desk, study->study, *mine.facts, channel, threads, hosts);
  if (!problems.empty()) channel.abort(report_problems(problems, output));
  output.err << desk->summary() << std::flush;
  return 0;
}

}  // namespace shardwise
