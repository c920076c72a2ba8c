#include "planner/serve/bounded_server.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shardwise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int waiting_to_enter = 1024;

// A request that is there, and its reply, sent in one piece where it is short.
class RequestStream : public httplib::Stream {
 public:
  RequestStream(socket_t socket, std::string_view request, WaitingRoom& room,
                const ServerLimits& limits)
      : socket_(socket), request_(request), room_(room), limits_(limits) {}

  std::size_t bytes_read() const { return at_; }

  bool is_readable() const override { return at_ < request_.size(); }
  bool is_writable() const override { return true; }

  ssize_t read(char* to, size_t size) override {
    const std::size_t n = std::min(size, request_.size() - at_);
    std::memcpy(to, request_.data() + at_, n);
    at_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* from, size_t size) override {
    reply_.append(from, size);
    return reply_.size() < most_held || flush() ? static_cast<ssize_t>(size) : -1;
  }

  bool flush() {
    const auto deadline = Clock::now() + limits_.reply;
    std::size_t sent = 0;
    while (sent < reply_.size()) {
      const ssize_t n =
          send(socket_, reply_.data() + sent, reply_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        sent += static_cast<std::size_t>(n);
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN || !has_room(deadline)) return false;
    }
    reply_.clear();
    return true;
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "client";
    port = 0;
  }
  // Some versions of the library ask for this too, so that it cannot say whether it overrides.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winconsistent-missing-override"
#endif
  void get_local_ip_and_port(std::string& ip, int& port) const {
    ip = "server";
    port = 0;
  }
#ifdef __clang__
#pragma clang diagnostic pop
#endif
  socket_t socket() const override { return socket_; }

 private:
  static constexpr std::size_t most_held = std::size_t{1} << 20;

  // The client takes its time; others are served meanwhile.
  bool has_room(Clock::time_point deadline) {
    int ready = 0;
    room_.aside([&] {
      while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return;
        pollfd waiting{socket_, POLLOUT, 0};
        ready = poll(&waiting, 1, static_cast<int>(left.count()));
        if (ready >= 0 || errno != EINTR) return;
      }
    });
    return ready > 0;
  }

  socket_t socket_;
  std::string_view request_;
  std::size_t at_ = 0;
  WaitingRoom& room_;
  const ServerLimits& limits_;
  std::string reply_;
};

}  // namespace

BoundedServer::BoundedServer(const ServerLimits& limits)
    : limits_(limits), room_(limits, [this](int socket, std::string_view text, bool last) {
        return answer(socket, text, last);
      }) {
  // The library's own threads do nothing but show clients in.
  new_task_queue = [] { return new httplib::ThreadPool(1); };
}

std::optional<int> BoundedServer::open(const std::string& host, int port) {
  if (port == 0)
    port = bind_to_any_port(host);
  else if (!bind_to_port(host, port))
    port = -1;
  if (port < 0) return std::nullopt;
  // Clients that come at once wait their turn. The library lets five of them wait, and those whom
  // the system turns away try again after a second; how many is fixed where it is compiled.
  ::listen(svr_sock_, waiting_to_enter);
  return port;
}

std::optional<std::size_t> BoundedServer::answer(int socket, std::string_view text, bool last) {
  RequestStream stream(socket, text, room_, limits_);
  bool closed = false;
  const bool answered = process_request(stream, last, closed, nullptr);
  if (!stream.flush() || !answered || closed) return std::nullopt;
  return stream.bytes_read();
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  room_.enter(socket);
  return true;
}

}  // namespace shardwise
