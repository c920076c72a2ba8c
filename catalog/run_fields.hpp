// RunFields: reads the members of a published run as leniently as the field spells them, and tells
// in words what it could not read.
//
//   "seq_len": "4,096 tokens"   4096          "zero": "ZeRO-3"        3
//   "compile": "yes", 1         true          "offload": false        "false", which rows translate
//   "lora_targets": ["q", "v"]  "q, v"        "lora_rank": [8]        8
//   "pp": 0, "grad_accum": -1   not stated: what configuration files write for "none" of a plan's
//                               degrees, of grad_accum and of lora_rank; elsewhere with a note
//   "compile": "None", -1       not stated
//   "micro_batch_size": 2       micro_batch, where that is not stated: what configuration files say
//   "step_time_s": "350 ms"     not stated, with a note: a text may name its key's own unit alone
//
// What says nothing that is asked for ("seq_len": "long") is taken as not stated, with a note; a
// number that no run can have ("layers": -3) is a problem of its record, as JsonReader words it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/json_reader.hpp"

namespace shardwise {

// The one number in `text`: "4,096 tokens", "ZeRO-3", "1e-4". Nothing where there are two, as in
// "1,5" and "512,1024", for a mark parts groups of three; where a letter follows it ("8x8",
// "70B"), or a multiple ("4 k", "3 million", "10 %").
std::optional<double> number_told(std::string_view text);

constexpr int many_of_them = 100'000'000;  // more GPUs, layers or sequences than anything has

class RunFields {
 public:
  // `object` names the reader's object in the notes, "training"; empty for the record itself.
  RunFields(JsonReader& reader, Problems& problems, std::vector<std::string>& notes,
            std::string object);

  std::optional<int> count(std::string_view key);  // from 1
  std::optional<int> integer(std::string_view key, int low, int high);
  std::optional<std::int64_t> integer64(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<double> measurement(std::string_view key);  // zero: there was none
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string> text(std::string_view key);  // an array's texts are joined by ", "
  std::vector<std::string> texts(std::string_view key);   // a text is an array of one
  std::optional<JsonReader> object(std::string_view key);

  JsonReader& reader() { return reader_; }
  JsonKind kind(std::string_view key) const;  // null where it is not stated
  // The member is not stated, and a note says what was expected.
  void unclear(std::string_view key, const std::string& expected);
  // The keys that nobody asked for, as notes.
  void keep_unread();

 private:
  // The key as this record spells it: configuration files call "micro_batch" something else.
  std::string_view spelled(std::string_view key) const;
  std::optional<double> told(std::string_view key);  // a number that is spelled as something else
  std::string in_its_unit(std::string_view key, const std::string& expected) const;
  bool may_be_none(std::string_view key) const;
  template <class Read>
  auto silently(Read read);  // nothing where `read` finds a problem, which is forgotten
  std::string called(std::string_view key) const;

  JsonReader& reader_;
  Problems& problems_;
  std::vector<std::string>& notes_;
  std::string object_;
};

}  // namespace shardwise
