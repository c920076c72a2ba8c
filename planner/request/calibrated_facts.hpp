// The facts of a question with the device profiles of its GPUs laid over them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/facts.hpp"
#include "planner/request/request.hpp"

namespace shardwise {

// Whether a question's model is one by name, of which the file alone is read where the name leaves
// no doubt, or part of the names of many. With one, only the rows of frameworks_unnamed() are read,
// and the one whose id a framework's name is; all of them where it is another name.
enum class ModelsAsked { one, many };

// --profile as load_calibration takes it. The profile's provenance names, under the id of each GPU
// of the question that was measured, what the answer rests on.
Result<Facts> calibrated_facts(const std::filesystem::path& root, const Request& request,
                               ModelsAsked models = ModelsAsked::many);

// What answers about these clusters rest on beyond the published constants, in whole sentences.
std::vector<std::string> calibration_notes(const Profile& profile,
                                           const std::vector<Cluster>& clusters);

// The facts for many questions: constants of links, which serve one kind of GPU, stay as published.
Result<Profile> calibrated_profile(Catalog& catalog);

}  // namespace shardwise
