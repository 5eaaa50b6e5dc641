# SPDX-License-Identifier: MIT
# cmake -D SOURCE=<repository> -P: what cmake/architectures.cmake chooses and refuses.
if(DEFINED ASKED)
  string(REPLACE "," ";" CMAKE_CUDA_ARCHITECTURES "${ASKED}")
  include(${SOURCE}/cmake/architectures.cmake)
  stepgate_choose_architectures()
  message("chosen: ${CMAKE_CUDA_ARCHITECTURES}")
  return()
endif()

function(expect asked words)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PATH=/nowhere ${CMAKE_COMMAND} -D SOURCE=${SOURCE} "-DASKED=${asked}"
    -P ${CMAKE_CURRENT_LIST_FILE} OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")
  string(FIND "${out}" "${words}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "asked for '${asked}', expected '${words}', got: ${out}")
  endif()
endfunction()

expect("" "chosen: 80-real;86-real;89-real;90;100-real;120")  # no GPU is found
expect("90" "chosen: 90")
expect("native" "chosen: native")
expect("75,90" "asks for 75: stepgate needs compute capability 8.0")
expect("90,70-real" "asks for 70-real: stepgate needs")
