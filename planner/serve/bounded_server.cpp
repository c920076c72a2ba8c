#include "planner/serve/bounded_server.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace shardwise {
namespace {

using Clock = std::chrono::steady_clock;

// The end of an answering process may interrupt a wait; that is no reason to hang up.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

bool ready(socket_t socket, short event, Clock::time_point deadline) {
  return uninterrupted([&] {
           const auto left =
               std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
           if (left.count() <= 0) return 0;
           pollfd waiting{socket, event, 0};
           return poll(&waiting, 1, static_cast<int>(left.count()));
         }) > 0;
}

// One request and its reply on a socket. What arrives is read in pieces, not byte by byte.
class TimedStream : public httplib::Stream {
 public:
  TimedStream(socket_t socket, const ServerLimits& limits) : socket_(socket), limits_(limits) {}

  void begin() {
    read_by_ = Clock::now() + limits_.request;
    bytes_ = 0;
    written_ = false;
  }
  bool holds_more() const { return at_ < end_; }

  bool is_readable() const override { return holds_more() || ready(socket_, POLLIN, read_by_); }
  bool is_writable() const override {
    return ready(socket_, POLLOUT, Clock::now() + limits_.reply);
  }

  ssize_t read(char* to, size_t size) override {
    if (!holds_more()) {
      if (bytes_ > limits_.bytes || !ready(socket_, POLLIN, read_by_)) return -1;
      const ssize_t n =
          uninterrupted([&] { return recv(socket_, buffer_.data(), buffer_.size(), 0); });
      if (n <= 0) return n;
      bytes_ += static_cast<std::size_t>(n);
      at_ = 0;
      end_ = static_cast<std::size_t>(n);
    }
    const std::size_t n = std::min(size, end_ - at_);
    std::memcpy(to, buffer_.data() + at_, n);
    at_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* from, size_t size) override {
    if (!written_) write_by_ = Clock::now() + limits_.reply;
    written_ = true;
    if (!ready(socket_, POLLOUT, write_by_)) return -1;
    return uninterrupted([&] { return send(socket_, from, size, MSG_NOSIGNAL); });
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
  socket_t socket_;
  const ServerLimits& limits_;
  Clock::time_point read_by_, write_by_;
  bool written_ = false;
  std::array<char, 4096> buffer_{};
  std::size_t at_ = 0, end_ = 0, bytes_ = 0;
};

}  // namespace

bool BoundedServer::serve_one(httplib::Stream& stream, bool last, bool& closed) {
  return process_request(stream, last, closed, nullptr);
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  TimedStream stream(socket, limits_);
  for (int i = 1; i <= limits_.requests; ++i) {
    if (!stream.holds_more() && !ready(socket, POLLIN, Clock::now() + limits_.idle)) break;
    stream.begin();
    bool closed = false;
    if (!serve_one(stream, i == limits_.requests, closed) || closed) break;
  }
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return true;
}

}  // namespace shardwise
