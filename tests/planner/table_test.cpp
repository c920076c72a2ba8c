// Tables for the terminal: aligned, and folded where the terminal is narrower than they are.
#include "planner/report/table.hpp"

#include <sstream>

#include "tests/catch.hpp"

namespace shardwise {
namespace {

const Table plans{
    {"plan", "step", "memory"},
    {{"1. dp=16,tp=8,schedule=interleaved", "1.5 s", "60 GiB"}, {"2. dp=8", "12 s", "7 GiB"}}};

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, shown_width(line));
  return longest;
}

}  // namespace

// 2 of indent + 35 + 2 + 5 + 2 + 6 = 52 columns.
TEST_CASE("A table that fits its terminal is one line a row") {
  const std::string whole =
      "  plan                                 step  memory\n"
      "  1. dp=16,tp=8,schedule=interleaved  1.5 s  60 GiB\n"
      "  2. dp=8                              12 s   7 GiB\n";
  CHECK(shown_table(plans) == whole);
  CHECK(shown_table(plans, "  ", 52) == whole);
}

TEST_CASE("In a narrower terminal the widest column has lines of its own") {
  CHECK(shown_table(plans, "  ", 40) ==
        "  plan\n"
        "       step  memory\n"
        "  1. dp=16,tp=8,schedule=interleaved\n"
        "      1.5 s  60 GiB\n"
        "  2. dp=8\n"
        "       12 s   7 GiB\n");
  const Table last{{"GPUs", "best plan"}, {{"8", "dp=8,tp=1,zero=3,recompute=none"}}};
  CHECK(shown_table(last, "  ", 38) ==
        "  GPUs\n"
        "      best plan\n"
        "  8\n"
        "      dp=8,tp=1,zero=3,recompute=none\n");
}

// Figures end in one column, words begin in one.
TEST_CASE("Columns of words stand to the left") {
  const Table offers{{"gpus", "how", "step"}, {{"a", "rent", "1.5 s"}, {"bb", "buy", "12 s"}}, {1}};
  CHECK(shown_table(offers) ==
        "  gpus  how    step\n"
        "  a     rent  1.5 s\n"
        "  bb    buy    12 s\n");
}

TEST_CASE("A cell that is wider than the terminal breaks after its commas") {
  CHECK(shown_table(plans, "  ", 30) ==
        "  plan\n"
        "       step  memory\n"
        "  1. dp=16,tp=8,\n"
        "      schedule=interleaved\n"
        "      1.5 s  60 GiB\n"
        "  2. dp=8\n"
        "       12 s   7 GiB\n");
  CHECK(longest_line(shown_table(plans, "  ", 30)) <= 30);
}

}  // namespace shardwise
