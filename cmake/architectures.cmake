# SPDX-License-Identifier: MIT
# For which GPUs the kernels are compiled. `stepgate_choose_architectures()` sets CMAKE_CUDA_ARCHITECTURES where nobody has:
# to the GPU of this machine, or where there is none to all that a released program runs on. Refuses what is too old.

# Code for A100, RTX 30, RTX 40 and L4, H100 and H200, B200, RTX 50; what is later compiles the PTX of the last when it starts.
set(STEPGATE_RELEASE_ARCHITECTURES 80-real 86-real 89-real 90 100-real 120)
# cp.async, ldmatrix and mma of bf16 are of 8.0.
set(STEPGATE_LEAST_ARCHITECTURE 80)

macro(stepgate_choose_architectures)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE has_no_gpu)
    if(has_no_gpu OR NOT gpus)
      set(CMAKE_CUDA_ARCHITECTURES ${STEPGATE_RELEASE_ARCHITECTURES})
    else()
      set(CMAKE_CUDA_ARCHITECTURES native)
    endif()
  endif()
  foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
    string(REGEX MATCH "^[0-9]+" number "${architecture}")
    if(architecture MATCHES "^all" OR number AND number LESS STEPGATE_LEAST_ARCHITECTURE)
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES asks for ${architecture}: stepgate needs compute capability 8.0 (A100, RTX 30 series) or newer")
    endif()
  endforeach()
endmacro()
