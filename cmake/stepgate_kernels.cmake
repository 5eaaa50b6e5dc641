# SPDX-License-Identifier: MIT
# stepgate_add_kernel_library(<name> <source>...)
# A shared library of kernels for `stepgate kernel check` (include/stepgate/kernel.h). It hides all symbols but those with
# STEPGATE_EXPORT and has a CUDA runtime of its own, so that it can be opened from any folder. For .cu files the project
# enables CUDA and says for which GPUs (CMAKE_CUDA_ARCHITECTURES).
function(stepgate_add_kernel_library name)
  if(NOT ARGN)
    message(FATAL_ERROR "stepgate_add_kernel_library: ${name} has no sources")
  endif()
  cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH place)
  if(NOT EXISTS ${place}/include/stepgate/kernel.h)  # installed: lib/cmake/stepgate
    cmake_path(SET place NORMALIZE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../..)
  endif()
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} PRIVATE ${place}/include)
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static UNITY_BUILD OFF)
endfunction()
