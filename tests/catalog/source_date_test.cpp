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

}  // namespace shardwise
