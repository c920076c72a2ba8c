// The answer desk: answers by question, the same one worked out once, so many at a time.
//
// The same request gives the same bytes, so an answer is kept until newer ones need the room. Those
// who ask what is being worked out already wait for it; those who would have to queue for longer
// than an answer may take are turned away.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "planner/commands/api.hpp"
#include "planner/serve/answer_process.hpp"

namespace shardwise {

class AnswerDesk {
 public:
  using Work = std::function<ApiAnswer()>;

  AnswerDesk(int at_once, AnswerLimits limits, Bytes kept)
      : free_(at_once), limits_(limits), room_(kept) {}

  // What is known already, at once; else nothing.
  std::shared_ptr<const ApiAnswer> known(const std::string& question);

  // `question` names what `work` answers, wholly. 503: too busy; 504: too long; 500: it failed.
  std::shared_ptr<const ApiAnswer> answer(const std::string& question, const Work& work);

 private:
  using Answer = std::shared_ptr<const ApiAnswer>;
  struct Entry {
    Answer answer;  // empty while somebody works on it
    std::list<std::string>::iterator used;
  };

  Answer found(const std::string& question);  // with mutex_ held
  Answer worked_out(const Work& work);
  void keep(const std::string& question, const Answer& answer);
  void drop_oldest();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, Entry> entries_;  // looked up by name only, never walked
  std::list<std::string> by_use_;                   // answered ones, the latest first
  std::list<const std::string*> waiting_;           // questions, the first one first
  int free_;
  AnswerLimits limits_;
  Bytes room_, kept_;
};

}  // namespace shardwise
