#include "calibrate/measuring/calibration.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "tests/catch.hpp"

using namespace shardwise;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("shardwise_calibration_" + std::to_string(getpid()));
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The simulated machine with every third point of its plans.
CalibrationMachine thinned_machine() {
  CalibrationMachine machine = simulated_machine(CalibrationMode::quick);
  for (Subject& subject : machine.subjects) {
    BenchPlan some;
    for (std::size_t i = 0; i < subject.plan.size(); i += 3) some.push_back(subject.plan[i]);
    subject.plan = some;
  }
  return machine;
}

int calibrate(const fs::path& output, bool resume, std::ostream& messages) {
  CalibrationOptions options;
  options.output = output;
  options.resume = resume;
  return run_calibration(
      options, thinned_machine(), [] { return false; }, messages);
}

// Tells of each line that it is given: one byte down a pipe.
class LineBell : public std::stringbuf {
 public:
  explicit LineBell(int to) : to_(to) {}

 protected:
  int_type overflow(int_type c) override {
    if (c == '\n' && write(to_, "x", 1) != 1) _exit(1);
    return c;
  }
  std::streamsize xsputn(const char*, std::streamsize n) override { return n; }

 private:
  int to_;
};

// Calibrates in a process of its own and kills it -9 after so many lines of progress and a moment.
void calibrate_and_die(const fs::path& output, int lines, int microseconds) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    LineBell bell(ends[1]);
    std::ostream messages(&bell);
    _exit(calibrate(output, true, messages));
  }
  close(ends[1]);
  char byte = 0;
  for (int i = 0; i < lines && read(ends[0], &byte, 1) == 1; ++i) continue;
  usleep(static_cast<useconds_t>(microseconds));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
}

}  // namespace

TEST_CASE("killed -9 at random moments, the file is whole and --resume ends with the same bytes") {
  const Folder folder;
  std::ostringstream messages;
  REQUIRE(calibrate(folder.path / "whole.jsonl", false, messages) == 0);
  const std::string expected = content(folder.path / "whole.jsonl");
  const auto points = static_cast<int>(std::count(expected.begin(), expected.end(), '\n')) - 1;
  REQUIRE(points > 60);  // of both GPUs

  std::mt19937 random(20260101);
  int killed_on_the_way = 0;
  for (int moment = 0; moment < 20; ++moment) {
    const fs::path path = folder.path / ("killed" + std::to_string(moment) + ".jsonl");
    const int lines = static_cast<int>(random() % static_cast<unsigned>(points));
    calibrate_and_die(path, lines, static_cast<int>(random() % 300));
    if (fs::exists(path)) {
      const std::string before = content(path);
      const auto whole = read_measurement_file(path);
      REQUIRE(whole);
      REQUIRE(before.back() == '\n');
      CHECK(expected.compare(0, before.size(), before) == 0);
      killed_on_the_way += before.size() < expected.size();
    }
    REQUIRE(calibrate(path, true, messages) == 0);
    CHECK(content(path) == expected);
  }
  CHECK(killed_on_the_way > 0);
}

TEST_CASE("the simulated machine adapts its grid to the smaller GPU") {
  const Folder folder;
  std::ostringstream messages;
  REQUIRE(calibrate(folder.path / "m.jsonl", false, messages) == 0);
  const auto file = read_measurement_file(folder.path / "m.jsonl");
  REQUIRE(file);
  std::array<int, 2> out_of_memory{};
  std::array<int, 2> measured{};
  for (const Entry& entry : file->entries) {
    const auto gpu = static_cast<std::size_t>(entry.gpu.value());
    out_of_memory[gpu] += entry.finding.outcome == Outcome::out_of_memory;
    measured[gpu] += entry.finding.outcome == Outcome::measured;
  }
  CHECK(out_of_memory[0] == 0);
  CHECK(out_of_memory[1] > 0);
  CHECK(measured[1] > 20);
  CHECK(messages.str().find("GPU 1 (simulated): all measured") != std::string::npos);
}

TEST_CASE("a file is neither overwritten nor mixed with another machine's") {
  const Folder folder;
  const fs::path path = folder.path / "m.jsonl";
  CalibrationMachine machine = simulated_machine(CalibrationMode::quick);
  for (Subject& subject : machine.subjects) subject.plan.resize(3);
  CalibrationOptions options;
  options.output = path;
  const auto run = [&](const CalibrationMachine& here) {
    std::ostringstream messages;
    const int code = run_calibration(
        options, here, [] { return false; }, messages);
    return std::to_string(code) + " " + messages.str();
  };
  CHECK(run(machine).find("0 ") == 0);
  const std::string before = content(path);
  CHECK(run(machine).find("exists: --resume goes on with it, or remove it") != std::string::npos);
  options.resume = true;
  CalibrationMachine other = machine;
  other.facts.gpus[1]["uuid"] = "GPU-x";
  CHECK(run(other).find("is of another GPU 1: Simulated GPU, SIMULATED-1") != std::string::npos);
  other = machine;
  other.facts.facts["mode"] = "full";
  CHECK(run(other).find("was begun with --quick") != std::string::npos);
  other = machine;
  other.facts.gpus.pop_back();
  CHECK(run(other).find("is of 2 GPUs, here are 1") != std::string::npos);
  CHECK(content(path) == before);
  CHECK(run(machine).find("0 ") == 0);
  CHECK(content(path) == before);
}

TEST_CASE("an interrupted calibration says how to go on") {
  const Folder folder;
  CalibrationOptions options;
  options.output = folder.path / "m.jsonl";
  int asked = 0;
  std::ostringstream messages;
  const auto machine = simulated_machine(CalibrationMode::quick);
  CHECK(run_calibration(
            options, machine, [&] { return ++asked > 5; }, messages) == 130);
  CHECK(messages.str().find("--resume") != std::string::npos);
  options.resume = true;
  CHECK(run_calibration(
            options, machine, [] { return false; }, messages) == 0);
}

TEST_CASE("a file that cannot be written ends the calibration at once") {
  CalibrationOptions options;
  options.output = "/nonexistent/folder/m.jsonl";
  std::ostringstream messages;
  CHECK(run_calibration(
            options, simulated_machine(CalibrationMode::quick), [] { return false; }, messages) ==
        4);
  CHECK(messages.str().find("/nonexistent/folder/m.jsonl: cannot be written") != std::string::npos);
}

TEST_CASE("options: all problems at once") {
  const auto good = read_calibration_options(
      {"--full", "--gpus", "0,2", "--budget", "90", "--output", "x.jsonl", "--only", "gemm"});
  REQUIRE(good);
  CHECK(good->mode == CalibrationMode::full);
  CHECK(good->gpus == std::vector<int>{0, 2});
  CHECK(good->budget == Seconds(90));
  CHECK(good->only == "gemm");
  const auto bad = read_calibration_options(
      {"--fast", "--gpus", "0,,1", "--budget", "-5", "--only", "", "--output"});
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().size() == 5);
  CHECK(bad.error()[0].where == "--fast");
  CHECK(bad.error()[1].what == "expected numbers of GPUs, as 0,1, found \"0,,1\"");
  CHECK(bad.error()[2].what == "expected whole seconds above 0, found \"-5\"");
  CHECK(bad.error()[4].what == "needs a value");
}

TEST_CASE("GPUs and benches can be chosen, and must be there") {
  CalibrationMachine machine = simulated_machine(CalibrationMode::quick);
  CalibrationOptions options;
  options.gpus = {1};
  options.only = "gemm";
  options.budget = Seconds(7);
  CHECK(restrict_subjects(options, machine).empty());
  REQUIRE(machine.subjects.size() == 1);
  CHECK(machine.subjects[0].gpu == 1);
  CHECK(machine.subjects[0].budget == Seconds(7));
  for (const BenchPoint& point : machine.subjects[0].plan) CHECK(point.bench == "gemm");
  options.gpus = {2};
  options.only = "gem";
  CHECK(restrict_subjects(options, machine).size() == 2);
}
