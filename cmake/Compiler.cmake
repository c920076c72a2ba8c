# Compiler settings that hold for every target, and `shardwise_warnings`, which every target of
# ours links. Warnings are errors; `cmake --compile-no-warning-as-error` lifts that for a compiler
# newer than the ones we test with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_COMPILE_WARNING_AS_ERROR ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# ccache takes up what was compiled with precompiled headers (cmake/Precompile.cmake) only where
# these two are said not to matter: nothing of ours asks for the time of its compilation.
find_program(SHARDWISE_CCACHE ccache)
if(SHARDWISE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${SHARDWISE_CCACHE}"
  )
endif()

# No fused multiply-add: it rounds differently, and the same request must give the same bytes with
# either compiler on any processor. The language guard keeps these flags away from nvcc.
add_library(shardwise_warnings INTERFACE)
target_compile_options(
  shardwise_warnings
  INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wsign-conversion;-Wshadow;-ffp-contract=off>"
)
