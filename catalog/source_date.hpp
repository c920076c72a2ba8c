// The date of what a run was read in: in words that say so, or by its document or thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

// The first date in `text`, as the rows of frameworks are matched by it: "December 2024" for
// "11 December 2024", "Dec 11 2024", "2024-12-11", "12_2024" and "h100_202412"; "2024" where the
// year stands alone. Years are 2017 to 2029: what trains here is no older.
std::optional<std::string> date_told(std::string_view text);

// What a record says of where it was read.
struct RunSource {
  std::string repository, file, where, url;
};

struct DatedDocument {
  std::string repository, file;
  std::string date;  // "April 2024": when its figures were written
};

// Issues, pull requests and discussions of a repository share one row of numbers.
struct DatedThreads {
  std::vector<std::string> repositories;  // names of one
  int year = 0, month = 1;                // of the first entry
  std::vector<int> first;                 // the first number of each month; never falling
};

// The number of the thread that `text` names first: "issue #12", "PR 12", ".../pull/12".
std::optional<int> thread_told(std::string_view text);

// "June 2024"; none of a number older than the first month.
std::optional<std::string> date_of_thread(const DatedThreads& threads, int number);

std::optional<std::string> date_of_source(const std::vector<DatedDocument>& documents,
                                          const std::vector<DatedThreads>& threads,
                                          const RunSource& source);

}  // namespace shardwise
