#include "planner/progress_line.hpp"

#include <sstream>

#include "tests/catch.hpp"

using namespace shardwise;
using namespace std::chrono_literals;

TEST_CASE("a line of progress is written over and goes away") {
  std::ostringstream terminal;
  {
    ProgressLine line(&terminal, 0ms);
    line.tell([](Seconds) { return std::string("one"); });
    CHECK(terminal.str() == "\r\x1b[Kone");
    // Five times a second at most.
    for (int i = 0; i < 10; ++i) line.tell([](Seconds) { return std::string("more"); });
  }
  CHECK(terminal.str().starts_with("\r\x1b[Kone"));
  CHECK(terminal.str().ends_with("\r\x1b[K"));
}

TEST_CASE("short work and work without a terminal say nothing") {
  std::ostringstream terminal;
  {
    ProgressLine soon(&terminal, 1h), nobody(nullptr, 0ms);
    for (ProgressLine* line : {&soon, &nobody})
      line->tell([](Seconds) -> std::string { throw std::logic_error("nobody is told"); });
  }
  CHECK(terminal.str().empty());
}

// A quarter in 3 s: three quarters take 9 s.
TEST_CASE("what is left follows from what is done") {
  CHECK(shown_rest(Seconds(3), 25, 100) == "about 9.00 s left");
  CHECK(shown_rest(Seconds(3), 0, 100) == "how long is not known yet");
}
