// Dates in the words that say where a run was read.
#include "catalog/source_date.hpp"

#include <string>

#include "tests/catch.hpp"

namespace shardwise {

TEST_CASE("A date is found in every form that titles, comments and file names have") {
  const auto told = [](std::string_view text) { return date_told(text).value_or("none"); };
  CHECK(told("issue 474, comment of 11 June 2024, table") == "June 2024");
  CHECK(told("wiki: Performance comparison (Apr 15 2024)") == "April 2024");
  CHECK(told("Sept 3, 2025") == "September 2025");
  CHECK(told("author comment 2023-08-19") == "August 2023");
  CHECK(told("benchmarks/llama3_h100_202412_torchtitan.md") == "December 2024");
  CHECK(told("asyncTP_llama3_h100_2025-06_torchtitan.md") == "June 2025");
  CHECK(told("run of 20250131") == "January 2025");
  CHECK(told("benchmarks_03_2024.md") == "March 2024");
  CHECK(told("images/cases_april2021.png") == "April 2021");
  CHECK(told("the 2024 edition") == "2024");
  CHECK(told("7 July 2023, read again 2024-01-02") == "July 2023");  // the first of two
}

TEST_CASE("Numbers that are no date are none") {
  CHECK(!date_told("sequence 2048, 2016 steps, 20240 tokens"));
  CHECK(!date_told("seed2024x and 12024"));
  CHECK(!date_told("stored file id 61392202455009"));
  CHECK(!date_told(""));
  // A month that there is not leaves the year.
  CHECK(date_told("13_2024") == std::optional<std::string>("2024"));
}

TEST_CASE("A thread is told by its kind and its number") {
  const auto told = [](std::string_view text) { return thread_told(text).value_or(0); };
  CHECK(told("issue #4447: issue text") == 4447);
  CHECK(told("issue 781, description") == 781);
  CHECK(told("pull request #1000 and its README") == 1000);
  CHECK(told("PR 2512, examples/llama-4/README.md") == 2512);
  CHECK(told("https://github.com/pytorch/torchtitan/pull/1690") == 1690);
  CHECK(told("comment 3 of issue #88") == 88);
  CHECK(told("line 35 of README.md, 14GB") == 0);
  CHECK(told("tissue 12, TPR 4, issue12 and issues") == 0);  // no kind, or no number apart from it
}

TEST_CASE("A thread is of the last month that began before it") {
  // Numbers 30 to 39 are of December 2023, 40 of January 2024, none of February, 41 on of March.
  const DatedThreads threads{{"A/b", "A/B2"}, 2023, 12, {30, 40, 41, 41}};
  CHECK(!date_of_thread(threads, 29));
  CHECK(date_of_thread(threads, 30) == "December 2023");
  CHECK(date_of_thread(threads, 39) == "December 2023");
  CHECK(date_of_thread(threads, 40) == "January 2024");
  CHECK(date_of_thread(threads, 41) == "March 2024");
  CHECK(date_of_thread(threads, 999) == "March 2024");

  const std::vector<DatedDocument> documents{{"a/b", "docs/memory.md", "May 2024"}};
  const auto date = [&](const RunSource& source) {
    return date_of_source(documents, {threads}, source).value_or("none");
  };
  CHECK(date({"A/B", "docs/memory.md", "", ""}) == "May 2024");
  CHECK(date({"A/c", "docs/memory.md", "", ""}) == "none");  // another repository's
  CHECK(date({"a/B2", "", "comment", "https://github.com/A/b/issues/31"}) == "December 2023");
  CHECK(date({"a/b", "README.md", "issue #40", ""}) == "January 2024");
  CHECK(date({"A/c", "", "issue #40", ""}) == "none");
}

}  // namespace shardwise
