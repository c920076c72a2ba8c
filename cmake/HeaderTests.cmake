# shardwise_header_tests(<folder>...)
#
# Every header of a folder is compiled alone (twice over, for its include guard) with nothing but
# the folder's own library in sight: a header that leans on its includer, or reaches against an
# arrow, fails to build. The objects are part of `all` and never linked.
#
# That is 400 files, so where SHARDWISE_UNITY is on, two things make it four times faster:
#
# - The headers of the standard library that most of ours include are precompiled. What a header
#   lacks of those goes unnoticed then, so tests/architecture/check_std_includes.sh looks for it.
#   Nothing of ours and no other library is precompiled.
# - A header is compiled behind one that it includes, where that one is not yet behind another: what
#   it then finds before it is what it brings along anyway. Who includes whom is read when
#   configuring, as ./tests/run does each time.

set(header_tests_std
    <algorithm>
    <array>
    <cmath>
    <cstddef>
    <cstdint>
    <cstdlib>
    <deque>
    <filesystem>
    <functional>
    <limits>
    <map>
    <memory>
    <mutex>
    <optional>
    <span>
    <string>
    <string_view>
    <unordered_map>
    <utility>
    <variant>
    <vector>
)

# shardwise_include_chains(<headers> <out>): lists of headers, "first|second|third", each of which
# includes the one before it. Every header is in one of them.
function(shardwise_include_chains headers out)
  foreach(header IN LISTS headers)
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines REGEX "^#include \"[^\"]+\"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    foreach(included IN LISTS lines)
      if(included IN_LIST headers AND NOT DEFINED "behind_${included}")
        set("behind_${included}" "${header}")
        set("before_${header}" "${included}")
        break()
      endif()
    endforeach()
  endforeach()

  set(chains)
  set(left "${headers}")
  foreach(header IN LISTS headers)
    if(NOT DEFINED "before_${header}")
      set(chain "${header}")
      list(REMOVE_ITEM left "${header}")
      while(DEFINED "behind_${header}")
        set(header "${behind_${header}}")
        string(APPEND chain "|${header}")
        list(REMOVE_ITEM left "${header}")
      endwhile()
      list(APPEND chains "${chain}")
    endif()
  endforeach()
  if(left)
    message(FATAL_ERROR "These headers include each other: ${left}")
  endif()
  set(${out} "${chains}" PARENT_SCOPE)
endfunction()

function(shardwise_header_tests)
  shardwise_precompile(header_tests_std HEADERS ${header_tests_std})
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
         "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
    list(FILTER headers EXCLUDE REGEX "^calibrate/device/")
    if(NOT HTTPLIB_INCLUDE_DIR)
      list(FILTER headers EXCLUDE REGEX "^planner/serve/bounded_server")
    endif()

    set(chains "${headers}")
    if(SHARDWISE_UNITY)
      shardwise_include_chains("${headers}" chains)
    endif()
    set(units)
    foreach(chain IN LISTS chains)
      string(REGEX REPLACE "^.*[|]" "" unit "${chain}")
      string(REPLACE ".hpp" ".cpp" unit "${PROJECT_BINARY_DIR}/header_tests/${unit}")
      string(REGEX REPLACE "([^|]+)[|]?" "#include \"\\1\"\n#include \"\\1\"\n" text "${chain}")
      file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}" @ONLY)
      list(APPEND units "${unit}")
    endforeach()

    add_library(header_tests_${folder} OBJECT ${units})
    target_compile_options(header_tests_${folder} PRIVATE -O0)
    target_link_libraries(header_tests_${folder} PRIVATE shardwise_${folder} shardwise_warnings)
    shardwise_use_precompiled(header_tests_${folder} header_tests_std)
  endforeach()
endfunction()
