# SPDX-License-Identifier: MIT
# Run as `cmake -D BUILD=<build folder> -D CONSUMER=<project> -D PLACE=<folder> [-D HARDENED=ON -D READELF=<program>] -P install.cmake`: installs, moves what was
# installed to where no build has ever been, and has another project test its own scenarios with it.
file(REMOVE_RECURSE ${PLACE})
set(prefix "${PLACE}/moved to here")
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PLACE}/first --component stepgate
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${PLACE}/first "${prefix}")

foreach(file bin/stepgate share/stepgate/baselines/nvidia-h200/device.toml share/stepgate/scenarios/sync_every_step.toml
    lib/stepgate/attach/libstepgate_attach.so lib/stepgate/attach/sitecustomize.py share/stepgate/LICENSE share/stepgate/json_schema.json share/stepgate/python/pyproject.toml share/stepgate/python/stepgate/__main__.py lib/cmake/stepgate/stepgateConfig.cmake)
  if(NOT EXISTS "${prefix}/${file}")
    message(SEND_ERROR "${file} is not installed")
  endif()
endforeach()
# Neither program nor package may look for anything in the folder that they were built in or first installed to.
file(GLOB_RECURSE installed "${prefix}/bin/*" "${prefix}/lib/*")
foreach(file IN LISTS installed)
  foreach(folder "${BUILD}" "${PLACE}/first")
    file(STRINGS "${file}" found REGEX "${folder}/" LIMIT_COUNT 1)
    if(found)
      message(SEND_ERROR "${file} names ${folder}: ${found}")
    endif()
  endforeach()
endforeach()
# hardened_test.cmake plants what this finds.
if(HARDENED)
  foreach(file bin/stepgate lib/stepgate/attach/libstepgate_attach.so)
    string(COMPARE EQUAL ${file} bin/stepgate fortified)
    execute_process(COMMAND ${CMAKE_COMMAND} -D "FILE=${prefix}/${file}" -D READELF=${READELF} -D FORTIFIED=${fortified}
      -P ${CMAKE_CURRENT_LIST_DIR}/hardened.cmake COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()
execute_process(COMMAND "${prefix}/bin/stepgate" --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
if(NOT version MATCHES "^stepgate [0-9.]+, commit ")
  message(SEND_ERROR "--version says ${version}")
endif()

# The installed program finds the library that it attaches: a program without CUDA is attached to, and nothing is counted.
execute_process(COMMAND "${prefix}/bin/stepgate" attach -- ${CMAKE_COMMAND} -E true ERROR_VARIABLE attached RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT attached MATCHES "no process used CUDA")
  message(SEND_ERROR "stepgate attach ends with ${result}: ${attached}")
endif()

# The files that `new` writes are in the program: it needs nothing that lies beside it.
execute_process(COMMAND ${CMAKE_COMMAND} -E copy "${prefix}/bin/stepgate" ${PLACE}/alone COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PLACE}/alone new --like sync ${PLACE}/own.toml OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${PLACE}/own.toml "${prefix}/share/stepgate/scenarios/start/sync.toml"
  COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${PLACE}/consumer "-DCMAKE_PREFIX_PATH=${prefix}"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
function(expect_ctest expected words)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${PLACE}/consumer --no-tests=error --output-on-failure ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(result passes)
  else()
    set(result fails)
  endif()
  if(NOT result STREQUAL expected OR NOT output MATCHES "${words}")
    message(SEND_ERROR "ctest ${ARGN} ${result}:\n${output}")
  endif()
endfunction()
expect_ctest(passes "steps.own_step [. ]*Passed" -L good)
expect_ctest(fails "steps.slow_step [. ]*\\*\\*\\*Failed.*slow_step: .*failed" -L bad)
expect_ctest(fails "1 tests failed out of 2" -L steps)
expect_ctest(fails "No tests were found" -L godo)
file(REMOVE_RECURSE ${PLACE})
