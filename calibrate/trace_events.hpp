// TraceEvents: walks a Chrome trace of any size, one event at a time.
//
// A profiler's trace of a few steps is hundreds of megabytes, beyond what one JSON document may be
// here. The text is cut into the objects of "traceEvents" by counting braces outside of strings;
// each event is then a document of its own. A trace that a killed run left open ends with its last
// whole event.
#pragma once

#include <functional>
#include <string_view>

namespace shardwise {

struct TraceWalk {
  bool found = false;      // an array "traceEvents", or the file is an array itself
  bool whole = false;      // the array was closed
  std::string_view other;  // the text before the array: "schemaVersion", "deviceProperties", ...
};

// Calls `visit` with the text of each event in order.
TraceWalk walk_trace_events(std::string_view text,
                            const std::function<void(std::string_view event)>& visit);

}  // namespace shardwise
