# shardwise_allocator: what programs link to get memory from tcmalloc, where it is there.
#
# A search lays tens of thousands of small graphs on all cores. tcmalloc (gperftools) keeps free
# blocks per thread, where glibc's threads wait for each other's arenas: see tests/bench/README.md.
# Statically where it can be, so that nothing is loaded at the start. Sanitizers bring their own.
add_library(shardwise_allocator INTERFACE)
find_library(TCMALLOC_LIBRARY NAMES libtcmalloc_minimal.a tcmalloc_minimal)
if(NOT TCMALLOC_LIBRARY)
  message(STATUS "No tcmalloc (libgoogle-perftools-dev): searches take half as long again")
elseif(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  find_package(Threads REQUIRED)
  # By its path alone the linker takes only what is asked for: the allocation functions are.
  target_link_libraries(shardwise_allocator INTERFACE "${TCMALLOC_LIBRARY}" Threads::Threads)
  # An object, not a library: nothing asks for it but tcmalloc, which has a weak one of its own.
  find_path(GPERFTOOLS_INCLUDE_DIR gperftools/malloc_extension.h)
  if(GPERFTOOLS_INCLUDE_DIR AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    add_library(shardwise_huge_pages OBJECT "${PROJECT_SOURCE_DIR}/planner/huge_pages.cpp")
    target_include_directories(shardwise_huge_pages SYSTEM PRIVATE "${GPERFTOOLS_INCLUDE_DIR}")
    target_link_libraries(shardwise_huge_pages PRIVATE shardwise_warnings)
    target_sources(shardwise_allocator INTERFACE "$<TARGET_OBJECTS:shardwise_huge_pages>")
  endif()
endif()
