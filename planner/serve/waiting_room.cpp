#include "planner/serve/waiting_room.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr auto never = std::numeric_limits<std::chrono::steady_clock::rep>::max();
constexpr std::string_view end_of_headers = "\r\n\r\n";

// The turn that this thread gave to another while it waited aside.
thread_local bool turn_is_given = false;

bool same_letters(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() &&
         std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
         });
}

// The value of a header among `lines`, or nothing.
std::optional<std::string_view> header(std::string_view lines, std::string_view name) {
  for (std::size_t at = lines.find("\r\n"); at != std::string_view::npos;
       at = lines.find("\r\n", at)) {
    at += 2;
    const std::string_view line = lines.substr(at, lines.find("\r\n", at) - at);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !same_letters(line.substr(0, colon), name)) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? std::string_view{} : line.substr(value);
  }
  return std::nullopt;
}

// After its headers; a length that is no number is none, and refused by who reads the request.
std::size_t body_size(std::string_view headers) {
  const auto text = header(headers, "content-length");
  std::size_t size = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), size);
  return size;
}

// Where the chunked body that begins at `at` ends: chunks behind their sizes in hex, an empty one,
// trailers, an empty line (RFC 9112 section 7.1); nothing while some of it is missing. One that is
// broken ends where the text does: whoever reads the request refuses it.
std::optional<std::size_t> end_of_chunks(std::string_view text, std::size_t at) {
  constexpr std::string_view end_of_line = "\r\n";
  bool all_chunks_read = false;
  while (true) {
    const std::size_t end = text.find(end_of_line, at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(at, end - at);
    at = end + end_of_line.size();
    if (all_chunks_read && line.empty()) return at;
    if (all_chunks_read) continue;  // a trailer
    std::size_t size = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), size, 16).ec != std::errc())
      return text.size();
    all_chunks_read = size == 0;
    if (all_chunks_read) continue;
    const std::size_t there = text.size() - at;
    if (size > there || there - size < end_of_line.size()) return std::nullopt;
    if (text.substr(at + size, end_of_line.size()) != end_of_line) return text.size();
    at += size + end_of_line.size();
  }
}

// How much of `text` is its first request, headers and body; nothing while some of it is missing.
std::optional<std::size_t> request_size(std::string_view text) {
  const std::size_t end = text.find(end_of_headers);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view headers = text.substr(0, end + 2);
  const std::size_t begin = end + end_of_headers.size();
  if (header(headers, "transfer-encoding")) return end_of_chunks(text, begin);
  const std::size_t body = body_size(headers);
  if (body > text.size() - begin) return std::nullopt;
  return begin + body;
}

}  // namespace

WaitingRoom::WaitingRoom(const ServerLimits& limits, Serve serve)
    : limits_(limits),
      serve_(std::move(serve)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      turns_(static_cast<std::ptrdiff_t>(std::max(2U, std::thread::hardware_concurrency()))) {
  require(epoll_ >= 0, "a process may have an epoll instance");
  for (int i = 0; i < limits_.threads; ++i) threads_.emplace_back([this] { work(); });
  threads_.emplace_back([this] { watch_the_clock(); });
}

WaitingRoom::~WaitingRoom() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const auto& [socket, guest] : guests_) shutdown(socket, SHUT_RDWR);
  }
  closes_.notify_all();
  left_.notify_all();
  turns_.release(limits_.threads);
  for (std::thread& t : threads_) t.join();
  for (const auto& [socket, guest] : guests_) close(socket);
  close(epoll_);
}

void WaitingRoom::enter(int socket) {
  std::unique_lock lock(mutex_);
  if (guests_.size() >= limits_.connections) show_out_the_slowest();
  const bool has_place = left_.wait_for(
      lock, limits_.request, [this] { return closing_ || guests_.size() < limits_.connections; });
  if (closing_ || !has_place) {
    close(socket);
    return;
  }
  auto guest = std::make_unique<Guest>();
  guest->socket = socket;
  guest->out_by = (Clock::now() + limits_.idle).time_since_epoch().count();
  epoll_event event{EPOLLIN | EPOLLONESHOT, {.ptr = guest.get()}};
  guests_.emplace(socket, std::move(guest));
  epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
}

void WaitingRoom::aside(const std::function<void()>& wait) {
  if (!std::exchange(turn_is_given, true)) turns_.release();
  wait();
}

void WaitingRoom::work() {
  turns_.acquire();
  while (true) {
    epoll_event event{};
    const int n = epoll_wait(epoll_, &event, 1, 500);
    if (n == 1) attend(*static_cast<Guest*>(event.data.ptr));
    if (std::exchange(turn_is_given, false)) turns_.acquire();
    const std::lock_guard lock(mutex_);
    if (closing_) return;
  }
}

void WaitingRoom::attend(Guest& guest) {
  guest.out_by = never;
  if (!receive(guest) || !serve_those_there(guest)) return dismiss(guest);
  wait_for_more(guest);
}

// What has arrived. False where nothing more will come of this connection.
bool WaitingRoom::receive(Guest& guest) {
  std::array<char, 16384> buffer;
  const ssize_t n = recv(guest.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (guest.text.empty()) guest.begun = Clock::now();
  guest.text.append(buffer.data(), static_cast<std::size_t>(n));
  guest.ended = n == 0;
  return !guest.ended || !guest.text.empty();
}

bool WaitingRoom::serve_those_there(Guest& guest) {
  while (!guest.text.empty()) {
    const auto size = request_size(guest.text);
    // What will never be whole is for the reader to refuse.
    const bool hopeless = guest.ended || guest.text.size() > limits_.bytes;
    if (!size && !hopeless) return true;
    const auto read = serve_(guest.socket, guest.text, ++guest.served == limits_.requests);
    if (!read || read != size) return false;
    guest.text.erase(0, *read);
    guest.told_to_send = false;
    guest.begun = Clock::now();
  }
  return !guest.ended;
}

void WaitingRoom::wait_for_more(Guest& guest) {
  if (!guest.text.empty() && !guest.told_to_send &&
      guest.text.find(end_of_headers) != guest.text.npos && header(guest.text, "expect")) {
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    send(guest.socket, go_on.data(), go_on.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    guest.told_to_send = true;
  }
  const auto out_by =
      guest.text.empty() ? Clock::now() + limits_.idle : guest.begun + limits_.request;
  guest.out_by = out_by.time_since_epoch().count();
  // From here on another thread may attend to it.
  epoll_event event{EPOLLIN | EPOLLONESHOT, {.ptr = &guest}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, guest.socket, &event);
}

void WaitingRoom::dismiss(Guest& guest) {
  // An answering process may hold the socket open as well: closing alone would not end the watch.
  const int socket = guest.socket;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
  shutdown(socket, SHUT_RDWR);
  {
    const std::lock_guard lock(mutex_);
    guests_.erase(socket);
  }
  left_.notify_one();
  close(socket);
}

void WaitingRoom::watch_the_clock() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    closes_.wait_for(lock, std::chrono::milliseconds(200));
    const auto now = Clock::now().time_since_epoch().count();
    // Its end is an event of the socket, and whoever attends to that closes it.
    for (const auto& [socket, guest] : guests_)
      if (guest->out_by < now) shutdown(socket, SHUT_RDWR);
  }
}

void WaitingRoom::show_out_the_slowest() {
  const auto slowest = std::min_element(
      guests_.begin(), guests_.end(),
      [](const auto& a, const auto& b) { return a.second->out_by < b.second->out_by; });
  if (slowest == guests_.end() || slowest->second->out_by == never) return;
  slowest->second->out_by = never;
  shutdown(slowest->first, SHUT_RDWR);
}

}  // namespace shardwise
