// An HTTP server whose clients have so long for a request, whatever they send meanwhile.
//
// cpp-httplib bounds the wait for each piece of a request; somebody who sends a byte every few
// seconds holds a thread for as long as they like. Here a request has to be there, headers and
// body, by a deadline. This is the one place where we derive from a class of a library: its server
// offers no other way to put a stream of ours between it and a socket.
#pragma once

// Clients that come at once wait their turn; the library would have five of them wait.
#ifndef CPPHTTPLIB_LISTEN_BACKLOG
#define CPPHTTPLIB_LISTEN_BACKLOG 512
#endif
#include <httplib.h>

#include <chrono>

namespace shardwise {

struct ServerLimits {
  std::chrono::milliseconds request{5'000};  // from its first byte to its last
  std::chrono::milliseconds idle{10'000};    // between two requests of a connection
  std::chrono::milliseconds reply{10'000};   // for the client to take the answer
  int requests = 100'000;                    // of one connection
  std::size_t bytes = 512 << 10;             // of a request, headers and body
};

class BoundedServer : public httplib::Server {
 public:
  explicit BoundedServer(const ServerLimits& limits) : limits_(limits) {}

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool serve_one(httplib::Stream& stream, bool last, bool& closed);

  ServerLimits limits_;
};

}  // namespace shardwise
