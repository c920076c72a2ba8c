# shardwise::yaml_cpp, the library alone: here and where the installed libraries are used from.
if(NOT TARGET shardwise::yaml_cpp)
  find_library(YAML_CPP_LIBRARY NAMES libyaml-cpp.a yaml-cpp REQUIRED)
  add_library(shardwise::yaml_cpp UNKNOWN IMPORTED)
  set_target_properties(shardwise::yaml_cpp PROPERTIES IMPORTED_LOCATION "${YAML_CPP_LIBRARY}")
endif()
