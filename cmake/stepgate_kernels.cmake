# SPDX-License-Identifier: MIT
# stepgate_add_kernel_library(<name> <source>...)
# A shared library of kernels for `stepgate kernel check` (include/stepgate/kernel.h). It hides all symbols but those with
# STEPGATE_EXPORT and has a CUDA runtime of its own, so that it can be opened from any folder. For .cu files the project
# enables CUDA and says for which GPUs (CMAKE_CUDA_ARCHITECTURES).
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH STEPGATE_KERNEL_INCLUDES)
if(NOT EXISTS ${STEPGATE_KERNEL_INCLUDES}/include/stepgate/kernel.h)  # installed: lib/cmake/stepgate
  cmake_path(SET STEPGATE_KERNEL_INCLUDES NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../..)
endif()
string(APPEND STEPGATE_KERNEL_INCLUDES /include)

function(stepgate_add_kernel_library name)
  if(NOT ARGN)
    message(FATAL_ERROR "stepgate_add_kernel_library: ${name} has no sources")
  endif()
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} PRIVATE ${STEPGATE_KERNEL_INCLUDES})
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static UNITY_BUILD OFF)
endfunction()
