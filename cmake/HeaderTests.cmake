# shardwise_header_tests(<folder>)
#
# Every header of the folder is compiled alone (twice over, for its include guard) with nothing but
# the folder's own library in sight: a header that leans on its includer, or reaches against an
# arrow, fails to build. The objects are part of `all` and never linked.
#
# Where SHARDWISE_UNITY is on, the headers of the standard library that most of ours include are
# precompiled, as parsing them would take two thirds of the time. What a header lacks of those goes
# unnoticed then, so tests/architecture/check_std_includes.sh looks for it. Nothing of ours and no
# other library is precompiled.

set(precompiled_std
    algorithm
    array
    cmath
    cstddef
    cstdint
    cstdlib
    deque
    filesystem
    functional
    limits
    map
    memory
    mutex
    optional
    span
    string
    string_view
    unordered_map
    utility
    variant
    vector
)

# header_tests_std: where the above is compiled, once for all folders.
function(shardwise_header_tests_std)
  if(NOT SHARDWISE_UNITY OR TARGET header_tests_std)
    return()
  endif()
  list(TRANSFORM precompiled_std REPLACE "(.+)" "<\\1>" OUTPUT_VARIABLE headers)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/header_tests/std.cpp" CONTENT "\n" @ONLY)
  add_library(header_tests_std OBJECT "${PROJECT_BINARY_DIR}/header_tests/std.cpp")
  target_compile_options(header_tests_std PRIVATE -O0)
  target_link_libraries(header_tests_std PRIVATE shardwise_warnings)
  target_precompile_headers(header_tests_std PRIVATE ${headers})
endfunction()

function(shardwise_header_tests folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
  list(FILTER headers EXCLUDE REGEX "^calibrate/device/")
  if(NOT HTTPLIB_INCLUDE_DIR)
    list(FILTER headers EXCLUDE REGEX "^planner/serve/bounded_server")
  endif()
  if(NOT headers)
    return()
  endif()

  set(units)
  foreach(header IN LISTS headers)
    string(REPLACE ".hpp" ".cpp" unit "${PROJECT_BINARY_DIR}/header_tests/${header}")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"@header@\"\n#include \"@header@\"\n" @ONLY)
    list(APPEND units "${unit}")
  endforeach()

  add_library(header_tests_${folder} OBJECT ${units})
  target_compile_options(header_tests_${folder} PRIVATE -O0)
  target_link_libraries(header_tests_${folder} PRIVATE shardwise_${folder} shardwise_warnings)
  shardwise_header_tests_std()
  if(TARGET header_tests_std)
    target_precompile_headers(header_tests_${folder} REUSE_FROM header_tests_std)
  endif()
endfunction()
