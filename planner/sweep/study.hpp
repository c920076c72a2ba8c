// A study: many requests in one file, as a product of lists.
//
//   {"name": "8b on rented boxes",
//    "base":  {"model": "8b", "batch": 64},                 what all points share
//    "cases": [{"gpus": "8xA100-80GB", "framework": "nanotron"}, {"gpus": "8xH100-SXM"}],
//    "axes":  {"method": ["full", "lora"], "sequence": [2048, 4096]}}
//
// Keys and values are those of a request file. Points are numbered from 0: cases first, then the
// axes in the order of request_fields(), the last of them running fastest; so neither the order of
// the keys nor the number of workers moves a point. A range on the axis of GPUs that doubles, such
// as "8..64xH100-SXM", is all its sizes. `plans` takes a plan or one of two words:
// `fit`, what `shardwise fit` would choose, which is also meant where there is none; `best`, the
// first of `shardwise plan`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/result.hpp"
#include "planner/request/request.hpp"
#include "planner/request/request_field.hpp"

namespace shardwise {

inline constexpr std::int64_t study_max_points = 1'000'000;

struct StudyValue {
  const RequestField* field = nullptr;
  FieldValue value;
};

struct StudyAxis {
  const RequestField* field = nullptr;
  std::vector<FieldValue> values;  // at least one, no two alike
};

struct Study {
  std::string name;
  std::vector<StudyValue> base;
  std::vector<std::vector<StudyValue>> cases;  // at least one, which may be empty
  std::vector<StudyAxis> axes;                 // in the order of request_fields()

  std::int64_t points() const;
  Request request_of(std::int64_t point) const;  // REQUIRES 0 <= point < points()
  // The same for two studies whose points are the same, name apart; 16 hexadecimal digits.
  std::string fingerprint() const;
};

// Problems say file, JSON pointer, the value found and what was expected. Whether the catalog knows
// a name is not asked here: a point that cannot be answered becomes a row that says why.
Result<Study> read_study_text(std::string_view text, const std::string& name);

}  // namespace shardwise
