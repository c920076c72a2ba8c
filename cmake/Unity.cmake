# shardwise_compile_together(<target>)
#
# Most of the time that a small file takes to compile goes into the headers it includes. Where
# SHARDWISE_UNITY is on, files of one folder are compiled together, SHARDWISE_UNITY_FILES at most, so
# that they share that time. Folders stay apart, unless the whole target is as small as that: a name
# in an unnamed namespace has to be the only one in its folder (tests/architecture), and no file
# added elsewhere changes what it stands next to.
#
# Files with compile options of their own are compiled alone (CMake sees to that). So is every file
# where the option is off, as in all presets but `release`: there a file lacks the includes that a
# neighbour lent it.

option(SHARDWISE_UNITY "Compile files of a folder together: several times faster from nothing" OFF)
# With 16 files a build from nothing takes 8 % less, but those of planner/search 34 s instead of 21
# after a change.
set(SHARDWISE_UNITY_FILES 12 CACHE STRING "How many files are compiled together at most")

function(shardwise_compile_together target)
  if(NOT SHARDWISE_UNITY)
    return()
  endif()

  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  if(count LESS_EQUAL SHARDWISE_UNITY_FILES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
    return()
  endif()

  set(folders)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    list(APPEND folders ${folder})
    list(APPEND sources_in_${folder} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES folders)

  foreach(folder IN LISTS folders)
    list(LENGTH sources_in_${folder} count)
    math(EXPR units "(${count} + ${SHARDWISE_UNITY_FILES} - 1) / ${SHARDWISE_UNITY_FILES}")
    set(position 0)
    foreach(source IN LISTS sources_in_${folder})
      math(EXPR unit "${position} * ${units} / ${count} + 1")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${unit}")
      math(EXPR position "${position} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# shardwise_optimise_lightly(<target>)
#
# For what runs once in an answer, or only writes it down: a release spends half the time of its
# compilation on optimising, which is not noticed there.
function(shardwise_optimise_lightly target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-Og>")
endfunction()
