#include "planner/serve/answer_desk.hpp"

#include <algorithm>
#include <utility>

namespace shardwise {
namespace {

std::shared_ptr<const ApiAnswer> problem(int status, const char* what) {
  return std::make_shared<const ApiAnswer>(api_problem(status, "server", what));
}

Bytes size_of(const std::string& question, const ApiAnswer& answer) {
  return Bytes(static_cast<std::int64_t>(2 * question.size() + answer.body.size() + 256));
}

// An answer as one text: the status, then the body.
std::string packed(const ApiAnswer& answer) {
  return std::to_string(answer.status) + '\n' + answer.body;
}
ApiAnswer unpacked(const std::string& text) {
  const std::size_t end = text.find('\n');
  return {std::stoi(text.substr(0, end)), text.substr(end + 1)};
}

}  // namespace

std::shared_ptr<const ApiAnswer> AnswerDesk::known(const std::string& question) {
  const std::lock_guard lock(mutex_);
  return found(question);
}

AnswerDesk::Answer AnswerDesk::found(const std::string& question) {
  const auto entry = entries_.find(question);
  if (entry == entries_.end() || !entry->second.answer) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, entry->second.used);
  return entry->second.answer;
}

std::shared_ptr<const ApiAnswer> AnswerDesk::answer(const std::string& question, const Work& work) {
  std::unique_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + limits_.time;
  const auto mine = waiting_.insert(waiting_.end(), &question);
  const auto left = [&](Answer with) {
    waiting_.erase(mine);
    changed_.notify_all();
    return with;
  };
  while (true) {
    if (Answer known = found(question)) return left(known);
    // First come, first served, among those whose question nobody works on yet.
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](const std::string* asked) {
      return entries_.count(*asked) == 0;
    });
    if (free_ > 0 && next == mine) break;
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout)
      return left(problem(503, "is too busy; ask again in a moment"));
  }
  waiting_.erase(mine);
  entries_[question];  // mine to work out
  if (--free_ > 0) changed_.notify_all();
  lock.unlock();
  Answer answer = worked_out(work);
  lock.lock();
  ++free_;
  entries_.erase(question);
  // What the server had no time or memory for may go well the next time.
  if (answer->status < 500) keep(question, answer);
  changed_.notify_all();
  return answer;
}

AnswerDesk::Answer AnswerDesk::worked_out(const Work& work) {
  const ProcessAnswer answer = answer_in_process([&] { return packed(work()); }, limits_);
  switch (answer.ending) {
    case ProcessAnswer::Ending::answered:
      return std::make_shared<const ApiAnswer>(unpacked(answer.text));
    case ProcessAnswer::Ending::too_long:
      return problem(504, "takes too long to answer this; the command line has no such limit");
    case ProcessAnswer::Ending::failed:
      break;
  }
  return problem(500, "failed to answer this");
}

void AnswerDesk::keep(const std::string& question, const Answer& answer) {
  const Bytes size = size_of(question, *answer);
  if (size > room_) return;
  by_use_.push_front(question);
  entries_[question] = {answer, by_use_.begin()};
  kept_ += size;
  while (kept_ > room_) drop_oldest();
}

void AnswerDesk::drop_oldest() {
  const auto oldest = entries_.find(by_use_.back());
  kept_ = kept_ - size_of(oldest->first, *oldest->second.answer);
  entries_.erase(oldest);
  by_use_.pop_back();
}

}  // namespace shardwise
