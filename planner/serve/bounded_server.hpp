// An HTTP server whose clients have so long for a request, whatever they send meanwhile.
//
// cpp-httplib has a thread for each connection and bounds the wait for each piece of a request:
// somebody who sends a byte every few seconds holds a thread for as long as they like. Here
// connections wait in a room of their own, and the library sees a request when all of it is there.
// This is the one place where we derive from a class of a library: its server offers no other way
// to put a stream of ours between it and a socket.
#pragma once

#include <httplib.h>

#include "planner/serve/waiting_room.hpp"

namespace shardwise {

class BoundedServer : public httplib::Server {
 public:
  explicit BoundedServer(const ServerLimits& limits);

  // The port, or nothing where it cannot be had; 0 asks for any.
  std::optional<int> open(const std::string& host, int port);

  // For handlers: what waits for something else than the processor.
  void aside(const std::function<void()>& wait) { room_.aside(wait); }

 private:
  bool process_and_close_socket(socket_t socket) override;
  std::optional<std::size_t> answer(int socket, std::string_view text, bool last);

  ServerLimits limits_;
  WaitingRoom room_;
};

}  // namespace shardwise
