// The catalog as Markdown pages: their sources lead to where the numbers were read.
#include "planner/report/catalog_pages.hpp"

#include <algorithm>
#include <sstream>

#include "planner/report/catalog_tables.hpp"
#include "tests/catch.hpp"
#include "tests/planner/known_facts.hpp"

using namespace shardwise;

TEST_CASE("sources become links where they name a file or a paper", "[pages]") {
  const std::string commit = "77fae385d42ae29bf88773355c51acda1450c1c0";
  CHECK(linked_source("a/b-c:d/e_f.json@" + commit + " (copy of it); x") ==
        "[a/b-c:d/e\\_f.json](https://github.com/a/b-c/blob/" + commit +
            "/d/e_f.json) (copy of it); x");
  CHECK(linked_source("arXiv 2104.04473, table 1") ==
        "arXiv [2104.04473](https://arxiv.org/abs/2104.04473), table 1");
  // Neither a commit nor a repository: text, and none of it is Markdown or HTML.
  CHECK(linked_source("NVIDIA: a|b <b>x</b> @ 12:30/4@home") ==
        "NVIDIA: a\\|b \\<b>x\\</b> @ 12:30/4@home");
  CHECK(linked_source("") == "");
}

TEST_CASE("a page has a row and a source for every entry of its kind", "[pages]") {
  const Catalog& c = known_facts().catalog;
  const auto calibration = load_calibration(c, std::nullopt);
  REQUIRE(bool(calibration));
  const auto pages = catalog_pages(c, *calibration);
  REQUIRE(pages.size() == catalog_listings().size() + 1);
  std::size_t i = 0;
  for (const CatalogListing& listing : catalog_listings()) {
    INFO(listing.name);
    const Table table = listing.table(c);
    CHECK(listing.sources(c).size() == table.rows.size());
    CHECK(pages[i].entries == table.rows.size());
    // Every line of its table has as many bars as the header, so that no name breaks a row, and
    // each but the header and the rule below it ends in a source.
    std::istringstream lines(pages[i++].text);
    std::string line;
    while (std::getline(lines, line) && !line.starts_with("| ")) {
    }
    const auto bars = std::count(line.begin(), line.end(), '|');
    std::size_t rows = 0;
    for (std::getline(lines, line); std::getline(lines, line) && line.starts_with('|'); ++rows) {
      CHECK(std::count(line.begin(), line.end(), '|') == bars);
      CHECK(line.ends_with("](#sources) |"));
    }
    CHECK(rows == table.rows.size());
  }
  CHECK(pages.back().file == "profiles.md");
}
