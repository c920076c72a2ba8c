# shardwise_embed_files(<output.cpp> <name>=<file>...)
#
# Files as bytes in a C++ source, made when building: embedded_file("name") of
# planner/report/embedded_files.hpp gives each as it is. Run as a script (cmake -P) by the command
# that the function adds.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(shardwise_embed_script "${CMAKE_CURRENT_LIST_FILE}")
  function(shardwise_embed_files output)
    set(files)
    foreach(entry IN LISTS ARGN)
      string(REGEX REPLACE "^[^=]*=" "" file "${entry}")
      list(APPEND files "${file}")
    endforeach()
    string(REPLACE ";" "|" entries "${ARGN}")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DENTRIES=${entries}" -P
              "${shardwise_embed_script}"
      DEPENDS ${files} "${shardwise_embed_script}"
      COMMENT "Embedding the report's page"
      VERBATIM
    )
  endfunction()
  return()
endif()

set(arrays "")
set(rows "")
set(number 0)
string(REPLACE "|" ";" ENTRIES "${ENTRIES}")
foreach(entry IN LISTS ENTRIES)
  string(REGEX MATCH "^([^=]*)=(.*)$" matched "${entry}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char file_${number}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", file_${number}, sizeof file_${number} - 1},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(
  WRITE "${OUTPUT}"
  "// Made when building by cmake/EmbedFiles.cmake.
#include \"planner/report/embedded_files.hpp\"

#include \"catalog/require.hpp\"

namespace shardwise {
namespace {

${arrays}
struct EmbeddedFile {
  std::string_view name;
  const unsigned char* bytes;
  std::size_t size;
};
constexpr EmbeddedFile files[] = {
${rows}};

}  // namespace

std::string_view embedded_file(std::string_view name) {
  for (const EmbeddedFile& f : files)
    if (f.name == name) return {reinterpret_cast<const char*>(f.bytes), f.size};
  require(false, \"only files that planner/CMakeLists.txt names are embedded\");
  return {};
}

}  // namespace shardwise
"
)
