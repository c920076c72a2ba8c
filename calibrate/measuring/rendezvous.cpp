#include "calibrate/measuring/rendezvous.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

namespace shardwise {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
constexpr char greeting[] = "shardwise-calibrate 1";

[[noreturn]] void broken(const std::string& why) { throw RendezvousBroken{why}; }

void send_all(int socket, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent <= 0) broken("another process of the calibration is gone");
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int socket, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, at, size, 0);
    if (got <= 0) broken("another process of the calibration is gone");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

void send_text(int socket, const std::string& text) {
  const std::uint64_t size = text.size();
  send_all(socket, &size, sizeof size);
  send_all(socket, text.data(), text.size());
}

std::string receive_text(int socket) {
  std::uint64_t size = 0;
  receive_all(socket, &size, sizeof size);
  if (size > most_bytes) broken("what came is no message of a calibration");
  std::string text(size, '\0');
  receive_all(socket, text.data(), text.size());
  return text;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolved(const RankPlace& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(place.port);
  if (getaddrinfo(place.address.c_str(), port.c_str(), &hints, &list) != 0)
    broken("MASTER_ADDR cannot be resolved: " + place.address);
  return Addresses(list);
}

void without_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int listening(const RankPlace& place) {
  const Addresses addresses = resolved(place);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const int made = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (made < 0) continue;
    const int on = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(made, a->ai_addr, a->ai_addrlen) == 0 && listen(made, place.world) == 0) return made;
    close(made);
  }
  broken("cannot listen on " + place.address + ", port " + std::to_string(place.port) + ": " +
         std::strerror(errno));
}

// Tries until rank 0 listens.
int connected(const RankPlace& place, Clock::time_point until) {
  const Addresses addresses = resolved(place);
  do {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      const int made = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
      if (made < 0) continue;
      if (connect(made, a->ai_addr, a->ai_addrlen) == 0) return made;
      close(made);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (Clock::now() < until);
  broken("rank 0 does not answer at " + place.address + ", port " + std::to_string(place.port));
}

std::string bytes_of(const std::vector<double>& values) {
  std::string bytes(values.size() * sizeof(double), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<double> values_of(const std::string& bytes, std::size_t count) {
  if (bytes.size() != count * sizeof(double)) broken("the processes are not at the same point");
  std::vector<double> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

Rendezvous::Rendezvous(const RankPlace& place, Seconds patience) : place_(place) {
  if (place.rank == 0) {
    const int listener = listening(place);
    try {
      gather(listener, patience);
    } catch (...) {
      close(listener);
      throw;
    }
    close(listener);
    return;
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(patience.value));
  peers_.push_back(connected(place, until));
  without_delay(peers_[0]);
  send_text(peers_[0], greeting);
  send_text(peers_[0], std::to_string(place.rank));
}

void Rendezvous::gather(int listener, Seconds patience) {
  const auto wanted = static_cast<std::size_t>(place_.world - 1);
  peers_.assign(wanted, -1);
  for (std::size_t here = 0; here < wanted;) {
    pollfd waiting{listener, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(patience.value * 1000)) <= 0)
      broken(std::to_string(here + 1) + " of " + std::to_string(place_.world) +
             " processes have come");
    const int peer = accept(listener, nullptr, nullptr);
    if (peer < 0) continue;
    without_delay(peer);
    std::size_t rank = 0;
    if (receive_text(peer) == greeting) rank = std::stoul("0" + receive_text(peer));
    if (rank < 1 || rank > wanted || peers_[rank - 1] >= 0) {
      close(peer);
      continue;
    }
    peers_[rank - 1] = peer;
    ++here;
  }
}

Rendezvous::~Rendezvous() {
  for (const int peer : peers_)
    if (peer >= 0) close(peer);
}

std::string Rendezvous::from_first(const std::string& mine) {
  if (place_.rank > 0) return receive_text(peers_[0]);
  for (const int peer : peers_) send_text(peer, mine);
  return mine;
}

std::vector<double> Rendezvous::greatest(const std::vector<double>& mine) {
  if (place_.rank > 0) {
    send_text(peers_[0], bytes_of(mine));
    return values_of(receive_text(peers_[0]), mine.size());
  }
  std::vector<double> most = mine;
  for (const int peer : peers_) {
    const auto theirs = values_of(receive_text(peer), mine.size());
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], theirs[i]);
  }
  const std::string answer = bytes_of(most);
  for (const int peer : peers_) send_text(peer, answer);
  return most;
}

}  // namespace shardwise
