# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D PLACE=<folder> -P plant_include.cmake`: copies the sources, plants one include
# that points to the right in each of several ways, and fails unless check_layers.cmake names every one of them.
set(planted_in runner/stats/moments.h runner/allocators/block_pool.h runner/scenario/scenario.h runner/judge/words.cpp kernels/kernel.h)
set(planted
  "#include \"judge/verdict.h\""
  "#include \"scenario/scenario.h\""
  "#  include \"device/device.h\""
  "#include \"runner/report/table.h\""
  "#include \"support/units.h\"")

file(REMOVE_RECURSE ${PLACE})
file(COPY ${SOURCE}/runner ${SOURCE}/kernels DESTINATION ${PLACE})
foreach(file include IN ZIP_LISTS planted_in planted)
  file(APPEND ${PLACE}/${file} "${include}\n")
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE=${PLACE} -P ${PLACE}/runner/check_layers.cmake
  RESULT_VARIABLE result ERROR_VARIABLE report OUTPUT_QUIET)
file(REMOVE_RECURSE ${PLACE})
if(result EQUAL 0)
  message(FATAL_ERROR "includes that point to the right went unnoticed")
endif()
foreach(file include IN ZIP_LISTS planted_in planted)
  string(FIND "${report}" "${file}: ${include}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${include}' in ${file} is not reported:\n${report}")
  endif()
endforeach()
