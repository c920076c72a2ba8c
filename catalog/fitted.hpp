// A constant of the catalog that rests on published training runs, because nothing smaller was
// measured: which one, the runs, and what stands in its place without them.
#pragma once

#include <string>
#include <vector>

namespace shardwise {

class JsonReader;

struct FittedField {
  std::string field;            // as its row spells it
  std::vector<std::string> on;  // files of catalog/runs
  double without = 0;           // the value where those runs are not known, in the field's unit
};

// The array "fitted" of a row; empty where there is none.
std::vector<FittedField> fitted_fields(JsonReader& row);

}  // namespace shardwise
