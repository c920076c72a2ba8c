// The waiting room: connections whose next request is not there yet, without a thread each.
//
// A few threads take the connections in the order in which something arrives on them (epoll) and
// serve a request once the whole of it is there, so that a slow client costs a place and no thread,
// and it is not the scheduler that picks among hundreds of threads who comes next. Measured once
// with 200 clients of wrk on two busy cores against a thread for each: 1.5 to 2 times the answers,
// p99 12 instead of 49 ms for answers of 88 kB and 6 instead of 8 ms for those of 2 kB.
// Who takes too long over a request, or asks nothing more, is shown out.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace shardwise {

struct ServerLimits {
  std::chrono::milliseconds request{5'000};  // from its first byte to its last
  std::chrono::milliseconds idle{10'000};    // between two requests of a connection
  std::chrono::milliseconds reply{10'000};   // for the client to take the answer
  int requests = 100'000;                    // of one connection
  std::size_t bytes = 512 << 10;             // of a request, headers and body
  std::size_t connections = 800;             // at the same time
  int threads = 256;                         // in all: those that serve and those that wait aside
};

class WaitingRoom {
 public:
  // Answers the request at the beginning of `text` on `socket`: the bytes that were read, or
  // nothing where the connection is to end. `last`: no other request of it will be served.
  using Serve =
      std::function<std::optional<std::size_t>(int socket, std::string_view text, bool last)>;

  WaitingRoom(const ServerLimits& limits, Serve serve);
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  // Takes the socket over, and closes it in the end. Where all places are taken, the slowest of
  // those who wait makes room.
  void enter(int socket);

  // For work of Serve that waits for something else than the processor: others are served
  // meanwhile.
  void aside(const std::function<void()>& wait);

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest {
    int socket;
    std::atomic<Clock::rep> out_by;  // while it waits; else never
    std::string text;
    Clock::time_point begun;  // where there is text
    int served = 0;
    bool told_to_send = false, ended = false;  // `ended`: the client sends no more
  };

  void work();
  void attend(Guest& guest);
  bool receive(Guest& guest);
  bool serve_those_there(Guest& guest);
  void wait_for_more(Guest& guest);
  void dismiss(Guest& guest);
  void watch_the_clock();
  void show_out_the_slowest();  // with mutex_ held

  ServerLimits limits_;
  Serve serve_;
  int epoll_;
  std::mutex mutex_;
  std::condition_variable closes_, left_;
  std::map<int, std::unique_ptr<Guest>> guests_;  // by socket
  bool closing_ = false;
  std::counting_semaphore<> turns_;  // as many as serve at the same time
  std::vector<std::thread> threads_;
};

}  // namespace shardwise
