# shardwise_folder_library(<folder> SOURCES <file>... [LIGHT <file>...]
#                          [PUBLIC <target>...] [PRIVATE <target>...])
#
# Declares `shardwise_<folder>`, a static library of the sources given, or an INTERFACE library
# while the folder holds headers only. Sources after LIGHT are optimised lightly.
#
# Includes are written from the repository root ("catalog/units.hpp"), but no target has the
# repository root on its include path: that would let every folder include every other. Instead
# each folder gets an include root of its own that holds nothing but a link to it, and a target
# sees it by linking the folder's library. Installed (cmake/Install.cmake) all share one root. What
# stands in BUILD_INTERFACE is nobody's business who uses the library from there.

function(shardwise_include_root folder out)
  set(root "${PROJECT_BINARY_DIR}/include_roots/${folder}")
  file(MAKE_DIRECTORY "${root}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}" "${root}/${folder}" SYMBOLIC)
  set(${out} "${root}" PARENT_SCOPE)
endfunction()

function(shardwise_folder_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIGHT;PUBLIC;PRIVATE")
  set(library shardwise_${folder})
  shardwise_include_root(${folder} include_root)

  if(arg_SOURCES)
    add_library(${library} STATIC ${arg_SOURCES})
    target_include_directories(
      ${library} PUBLIC "$<BUILD_INTERFACE:${include_root}>" "$<INSTALL_INTERFACE:include/shardwise>"
    )
    target_link_libraries(
      ${library}
      PUBLIC ${arg_PUBLIC}
      PRIVATE ${arg_PRIVATE} "$<BUILD_INTERFACE:shardwise_warnings>"
    )
    shardwise_compile_together(${library})
    if(arg_LIGHT)
      add_library(${library}_light OBJECT ${arg_LIGHT})
      target_include_directories(${library}_light PRIVATE "${include_root}")
      target_link_libraries(
        ${library}_light PRIVATE ${arg_PUBLIC} ${arg_PRIVATE} shardwise_warnings
      )
      shardwise_optimise_lightly(${library}_light)
      # Mostly headers: twice as many files take little longer after a change, and less from nothing.
      math(EXPR SHARDWISE_UNITY_FILES "2 * ${SHARDWISE_UNITY_FILES}")
      shardwise_compile_together(${library}_light)
      target_sources(${library} PRIVATE "$<TARGET_OBJECTS:${library}_light>")
    endif()
  else()
    add_library(${library} INTERFACE)
    target_include_directories(${library} INTERFACE "${include_root}")
    target_link_libraries(${library} INTERFACE ${arg_PUBLIC})
  endif()
endfunction()

# shardwise_link_optimised_first(<target> <folder>...)
#
# Of an inline function that several files bring, the linker keeps the copy that it sees first: here
# that of these folders' libraries. Else a target that is optimised less runs what it shares with
# them as slowly: the tests spent a third of their time so.
function(shardwise_link_optimised_first target)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_FILE:shardwise_\\1>" OUTPUT_VARIABLE files)
  list(JOIN files "," files)
  target_link_options(${target} PRIVATE "LINKER:--whole-archive,${files},--no-whole-archive")
endfunction()
