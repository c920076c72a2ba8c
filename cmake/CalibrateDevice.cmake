# `shardwise-calibrate`, the CUDA program that measures the GPUs of this machine. Absent, with one
# line that says so, where no CUDA toolkit is found; without its collectives where NCCL's header is
# not. cuBLAS, NCCL and NVML are looked for when the program runs, and the C++ runtime is linked
# statically, so that the program can be carried to another machine.

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "No CUDA compiler: shardwise-calibrate is left out")
  return()
endif()

# Machine code for the GPUs of this machine, as far as the toolkit knows them; where there is none,
# for Ampere and Hopper, with PTX that the driver compiles for what is newer. A package is built
# with -DSHARDWISE_CUDA_ARCHITECTURES="75;80;86;89;90;100;120", as far as its toolkit goes.
function(shardwise_local_architectures out)
  execute_process(
    COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE here ERROR_QUIET RESULT_VARIABLE failed
  )
  execute_process(
    COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET
  )
  set(found)
  if(NOT failed)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${here}")
    foreach(capability IN LISTS capabilities)
      string(REPLACE "." "" architecture "${capability}")
      if(known MATCHES "compute_${architecture}\n")
        list(APPEND found "${architecture}-real")
      else()
        list(APPEND found "90")
      endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
  endif()
  if(NOT found)
    set(found "80-real" "90")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

shardwise_local_architectures(architectures)
set(SHARDWISE_CUDA_ARCHITECTURES
    "${architectures}"
    CACHE STRING "Architectures that shardwise-calibrate has machine code for"
)
set(CMAKE_CUDA_ARCHITECTURES "${SHARDWISE_CUDA_ARCHITECTURES}")
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# CMake 3.25 knows no dialect of nvcc beyond C++17.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(SHARDWISE_CCACHE AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${SHARDWISE_CCACHE}")
endif()

add_executable(shardwise-calibrate ${device_sources})
target_include_directories(shardwise-calibrate SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_definitions(
  shardwise-calibrate PRIVATE SHARDWISE_VERSION="${PROJECT_VERSION}"
)
target_link_options(shardwise-calibrate PRIVATE -static-libstdc++ -static-libgcc)
target_link_libraries(
  shardwise-calibrate
  PRIVATE shardwise_calibrate shardwise_warnings CUDA::cudart_static ${CMAKE_DL_LIBS}
)
shardwise_compile_together(shardwise-calibrate)
set_target_properties(
  shardwise-calibrate PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
                                 LINKER_LANGUAGE CXX
)

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NCCL_INCLUDE_DIR)
  target_include_directories(shardwise-calibrate SYSTEM PRIVATE "${NCCL_INCLUDE_DIR}")
  target_compile_definitions(shardwise-calibrate PRIVATE SHARDWISE_WITH_NCCL)
else()
  message(STATUS "No nccl.h: shardwise-calibrate measures no collectives")
endif()
