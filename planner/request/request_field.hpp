// Request fields: one row for each thing that can be asked. A row is at once the flag of the
// command line, the key of a request file and the key of the request that every answer echoes.
//
//   --seq 4096   =   {"sequence": 4096}   =   Request::sequence
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "catalog/result.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

enum class FieldKind { text, texts, integer, number, size, flag };

// A value of one of the kinds above; nothing where the request leaves the field open.
using FieldValue = std::variant<std::monostate, std::string, std::vector<std::string>, std::int64_t,
                                double, Bytes, bool>;

// What may stand behind a number on the command line; in JSON a number is a number.
enum class NumberLetters {
  none,
  binary,   // of lengths, which are powers of two and their multiples: 4k = 4,096, 1m = 1,048,576
  decimal,  // of amounts: 10k = 10,000, m, b and g, t = 10^12
  watts,    // 300W
  percent,  // of shares: 90% = 0.9
  seconds,  // 3.2s/it, 450ms
};

struct RequestField {
  std::string_view key;
  std::string_view flag;         // "--seq"; "MODEL" for the positional
  std::string_view placeholder;  // what the help text calls the value
  std::string_view help;
  FieldKind kind;
  std::int64_t low, high;                      // integers, sizes in bytes, numbers in thousandths
  std::vector<std::string_view> (*choices)();  // of a closed set of texts; else nullptr
  void (*set)(Request&, const FieldValue&);    // REQUIRES a value that field_problem accepts
  FieldValue (*get)(const Request&);
  // Those that ask it, by a space; empty: all do but those that ask only few (request_field.cpp).
  std::string_view commands = {};
  NumberLetters letters = NumberLetters::none;

  bool belongs_to(std::string_view asking) const;
};

// "plan", "fit, simulate or compare": the commands of a row that not all of them ask.
std::string commands_asking(const RequestField& field);

std::span<const RequestField> request_fields();
const RequestField* request_field(std::string_view key);  // nullptr: no such key

// What is wrong with `value` of the right kind, or nothing. `where`: the flag or the JSON pointer.
Problems field_problems(const RequestField& field, const FieldValue& value,
                        const std::string& where);

// A value of a closed set in the set's own spelling, where it differs from it in case alone: QLoRA.
FieldValue as_spelled(const RequestField& field, FieldValue value);

// Reads the words of the command line into the request. Every text is one use of the flag.
Problems set_from_flag(const RequestField& field, const std::vector<std::string>& texts,
                       Request& request);

}  // namespace shardwise
