#include "planner/sweep/mpi/channel.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "catalog/require.hpp"

namespace shardwise {
namespace {

constexpr int tag_ask = 1, tag_done = 2, tag_leave = 3, tag_point = 4;
constexpr std::int64_t no_point = -1;
constexpr std::chrono::milliseconds between_looks{10};

int length(const std::string& text) {
  require(text.size() < (std::size_t{1} << 30), "a message is shorter than MPI can count");
  return static_cast<int>(text.size());
}

std::string packed_point(const FinishedPoint& done) {
  std::string bytes(sizeof(std::int64_t) + sizeof(double), '\0');
  std::memcpy(bytes.data(), &done.point, sizeof(std::int64_t));
  std::memcpy(bytes.data() + sizeof(std::int64_t), &done.took.value, sizeof(double));
  return bytes + packed(done.row);
}

FinishedPoint unpacked_point(const std::string& bytes) {
  constexpr std::size_t head = sizeof(std::int64_t) + sizeof(double);
  require(bytes.size() > head, "a finished point has a row");
  FinishedPoint done;
  std::memcpy(&done.point, bytes.data(), sizeof(std::int64_t));
  std::memcpy(&done.took.value, bytes.data() + sizeof(std::int64_t), sizeof(double));
  done.row = unpacked(std::string_view(bytes).substr(head));
  return done;
}

}  // namespace

Channel::Channel(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  require(provided >= MPI_THREAD_FUNNELED, "MPI lets one thread speak while others compute");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

// A rank that waits for the others leaves its core to them.
Channel::~Channel() {
  MPI_Request all_here = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &all_here);
  for (int here = 0;;) {
    MPI_Test(&all_here, &here, MPI_STATUS_IGNORE);
    if (here != 0) break;
    std::this_thread::sleep_for(between_looks);
  }
  MPI_Finalize();
}

void Channel::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

std::string Channel::from_first(const std::string& text) {
  int size = length(text);
  MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string all = text;
  all.resize(static_cast<std::size_t>(size));
  MPI_Bcast(all.data(), size, MPI_BYTE, 0, MPI_COMM_WORLD);
  return all;
}

std::vector<std::string> Channel::to_first(const std::string& text) {
  const auto ranks = static_cast<std::size_t>(size_);
  const int mine = length(text);
  std::vector<int> sizes(ranks), starts(ranks, 0);
  MPI_Gather(&mine, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank_ == 0)
    for (std::size_t i = 1; i < ranks; ++i) starts[i] = starts[i - 1] + sizes[i - 1];
  std::string all(rank_ == 0 ? static_cast<std::size_t>(starts.back() + sizes.back()) : 0, '\0');
  MPI_Gatherv(text.data(), mine, MPI_BYTE, all.data(), sizes.data(), starts.data(), MPI_BYTE, 0,
              MPI_COMM_WORLD);
  std::vector<std::string> texts;
  if (rank_ != 0) return texts;
  for (std::size_t i = 0; i < ranks; ++i)
    texts.push_back(
        all.substr(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(sizes[i])));
  return texts;
}

std::pair<std::vector<std::vector<bool>>, std::size_t> Channel::on_this_machine(
    const std::vector<bool>& cores) {
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
  int here = 0, mine = 0;
  MPI_Comm_size(machine, &here);
  MPI_Comm_rank(machine, &mine);
  std::vector<char> own(cores.begin(), cores.end());
  std::vector<char> all(own.size() * static_cast<std::size_t>(here));
  const int n = static_cast<int>(own.size());
  MPI_Allgather(own.data(), n, MPI_CHAR, all.data(), n, MPI_CHAR, machine);
  MPI_Comm_free(&machine);
  std::vector<std::vector<bool>> masks;
  for (auto at = all.begin(); at != all.end(); at += n) masks.emplace_back(at, at + n);
  return {std::move(masks), static_cast<std::size_t>(mine)};
}

void Channel::ask() { MPI_Send(nullptr, 0, MPI_BYTE, 0, tag_ask, MPI_COMM_WORLD); }

void Channel::leave() { MPI_Send(nullptr, 0, MPI_BYTE, 0, tag_leave, MPI_COMM_WORLD); }

void Channel::report(const FinishedPoint& done) {
  const std::string bytes = packed_point(done);
  MPI_Send(bytes.data(), length(bytes), MPI_BYTE, 0, tag_done, MPI_COMM_WORLD);
}

std::optional<std::int64_t> Channel::answered() {
  std::int64_t point = no_point;
  MPI_Recv(&point, 1, MPI_INT64_T, 0, tag_point, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (point == no_point) return std::nullopt;
  return point;
}

std::optional<RankWord> Channel::heard() {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  MPI_Recv(bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  RankWord word;
  word.rank = status.MPI_SOURCE;
  word.leaves = status.MPI_TAG == tag_leave;
  if (status.MPI_TAG == tag_done) word.done = unpacked_point(bytes);
  return word;
}

void Channel::answer(int rank, std::optional<std::int64_t> point) {
  const std::int64_t said = point.value_or(no_point);
  MPI_Send(&said, 1, MPI_INT64_T, rank, tag_point, MPI_COMM_WORLD);
}

}  // namespace shardwise
