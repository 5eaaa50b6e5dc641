# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D PLACE=<folder> -D COMPILER=<c++> -D INCLUDES=<folders> -D CUDA=<bool> -P all_headers.cmake`:
# one file that includes every header compiles, so that no name means two things; and it does not when a second meaning is
# planted. Without CUDA the kernels' headers and the CUDA device's are left out.
file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/runner/*.h ${SOURCE}/kernels/*.h)
if(NOT CUDA)
  list(FILTER headers EXCLUDE REGEX "^kernels/|^runner/device/cuda/")
endif()
set(text "")
foreach(header IN LISTS headers)
  string(APPEND text "#include \"${header}\"\n")
endforeach()
set(options "")
list(REMOVE_ITEM INCLUDES "")
foreach(folder IN LISTS INCLUDES)
  list(APPEND options -idirafter ${folder})
endforeach()

function(compile name more result output)
  file(WRITE ${PLACE}/${name}.cpp "${text}${more}")
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I ${SOURCE}/runner -I ${SOURCE} ${options} ${PLACE}/${name}.cpp
    RESULT_VARIABLE code ERROR_VARIABLE errors)
  set(${result} ${code} PARENT_SCOPE)
  set(${output} "${errors}" PARENT_SCOPE)
endfunction()

compile(all_headers "" code errors)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "one file cannot include all headers:\n${errors}")
endif()
compile(planted "namespace stepgate {\nstruct Verdict {\n  int other;\n};\n}  // namespace stepgate\n" code errors)
if(code EQUAL 0 OR NOT errors MATCHES "redefinition of [^\n]*Verdict")
  message(FATAL_ERROR "a second meaning of a name went unnoticed:\n${errors}")
endif()
