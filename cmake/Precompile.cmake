# shardwise_precompile(<name> LIBRARIES <target>... HEADERS <header>...)
# shardwise_use_precompiled(<target> <name>)
#
# Where SHARDWISE_UNITY is on, headers that many small files include are parsed once for all of
# them: shardwise_precompile says which, with the libraries that are needed to see them, and
# shardwise_use_precompiled has the files of a target begin with them. For what is compiled with -O0
# and our warnings, as all tests are. Elsewhere the two do nothing, so that every file is seen to
# include what it needs.

function(shardwise_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;HEADERS")
  if(NOT SHARDWISE_UNITY)
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/precompiled/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "\n" @ONLY)
  add_library(${name} OBJECT "${source}")
  target_compile_options(${name} PRIVATE -O0)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} shardwise_warnings)
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

function(shardwise_use_precompiled target name)
  if(SHARDWISE_UNITY)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
