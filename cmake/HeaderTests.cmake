# shardwise_header_tests(<folder>)
#
# Every header of the folder is compiled alone (twice over, for its include guard) with nothing but
# the folder's own library in sight: a header that leans on its includer, or reaches against an
# arrow, fails to build. The objects are part of `all` and never linked.

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
endfunction()
