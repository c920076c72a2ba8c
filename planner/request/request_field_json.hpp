// Request fields as JSON holds them, in request files and in studies.
#pragma once

#include <string>
#include <vector>

#include "catalog/json_reader.hpp"
#include "planner/request/request_field.hpp"

namespace shardwise {

// The field's value in an object; nothing where its key is absent. What is of the wrong kind or out
// of range is a problem of the reader. Where a list of texts is expected, one text will do.
FieldValue read_field(JsonReader& object, const RequestField& field);

// An array of values of a field whose kind is text, texts (each element is then one text of it),
// integer, number or size; empty where its key is absent. Ranges and closed sets are checked.
std::vector<FieldValue> read_field_list(JsonReader& object, const RequestField& field,
                                        Problems& problems);

// Keys that are flags' names where the field's key is another ("seq", which is "sequence") become
// problems that say so.
void refuse_flag_names(JsonReader& object, Problems& problems);

}  // namespace shardwise
