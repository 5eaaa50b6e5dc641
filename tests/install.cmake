# SPDX-License-Identifier: MIT
# Run as `cmake -D BUILD=<build folder> -D SOURCE=<sources> -D CONSUMER=<project> -D PLACE=<folder> [-D HARDENED=ON -D READELF=<program>]
# [-D CUDA=<nvcc> [-D CUDA_HOST=<compiler>]] -P install.cmake`: installs, moves what was
# installed to where no build has ever been, and has another project test its own scenarios with it.
file(REMOVE_RECURSE ${PLACE})
set(prefix "${PLACE}/moved to here")
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PLACE}/first --component stepgate
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${PLACE}/first "${prefix}")

# Everything that is installed is in this list, and the other way round.
set(expected bin/stepgate lib/stepgate/attach/libstepgate_attach.so lib/stepgate/attach/sitecustomize.py
  lib/cmake/stepgate/stepgateConfig.cmake lib/cmake/stepgate/stepgateConfigVersion.cmake lib/cmake/stepgate/stepgateTargets.cmake
  lib/cmake/stepgate/stepgate_kernels.cmake include/stepgate/kernel.h
  lib/cmake/stepgate/stepgate_scenarios.cmake lib/cmake/stepgate/add_scenario_tests.cmake
  share/man/man1/stepgate.1 share/bash-completion/completions/stepgate share/zsh/site-functions/_stepgate
  share/fish/vendor_completions.d/stepgate.fish)
file(GLOB_RECURSE data RELATIVE ${SOURCE} ${SOURCE}/docs/* ${SOURCE}/examples/* ${SOURCE}/python/stepgate/*.py ${SOURCE}/scenarios/*.toml
  ${SOURCE}/scenarios/*.md ${SOURCE}/scenarios/scenario.schema.json ${SOURCE}/baselines/device.toml ${SOURCE}/baselines/*.md
  ${SOURCE}/ci/buildkite/* ${SOURCE}/ci/github/* ${SOURCE}/ci/gitlab/* ${SOURCE}/ci/jenkins/* ${SOURCE}/ci/jobs/*)
list(FILTER data EXCLUDE REGEX "__pycache__")
list(APPEND data CHANGELOG.md LICENSE README.md SECURITY.md python/pyproject.toml ci/WORKER.md ci/worker_example.py ci/recompute.py ci/compare_simulated.py)
list(TRANSFORM data PREPEND share/stepgate/)
list(APPEND expected ${data})
file(GLOB_RECURSE found RELATIVE "${prefix}" "${prefix}/*")
list(FILTER found EXCLUDE REGEX "^lib/cmake/stepgate/stepgateTargets-[a-z]+\\.cmake$")  # of the kind of build
function(compare_installed found wrong_variable)
  set(missing ${expected})
  list(REMOVE_ITEM missing ${found})
  list(REMOVE_ITEM found ${expected})
  set(${wrong_variable} "not installed: [${missing}]; installed, and not in the list: [${found}]" PARENT_SCOPE)
endfunction()
compare_installed("${found}" wrong)
if(NOT wrong STREQUAL "not installed: []; installed, and not in the list: []")
  message(SEND_ERROR "${wrong}")
endif()
list(APPEND found share/stepgate/baselines/nvidia-h200/stored.toml)
list(REMOVE_ITEM found share/man/man1/stepgate.1)
compare_installed("${found}" wrong)
if(NOT wrong MATCHES "installed: .share/man/man1/stepgate.1.;.*list: .share/stepgate/baselines/nvidia-h200/stored.toml.$")
  message(SEND_ERROR "a page that is left out and a file too many are planted, and it says: ${wrong}")
endif()
# A link of an installed page leads to a file that is installed as well.
file(GLOB_RECURSE pages "${prefix}/share/stepgate/*.md")
foreach(page IN LISTS pages)
  cmake_path(GET page PARENT_PATH folder)
  file(READ "${page}" text)
  string(REPLACE ";" "," text "${text}")
  string(REGEX MATCHALL "\\]\\([^)#: ]+[)#]" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^..|.$" "" target "${link}")
    if(NOT EXISTS "${folder}/${target}")
      message(SEND_ERROR "${page}: ${target} is not installed")
    endif()
  endforeach()
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
file(READ ${PLACE}/own.toml own)
file(READ "${prefix}/share/stepgate/scenarios/start/sync.toml" starter)
if(NOT own STREQUAL "#:schema scenario.schema.json\n${starter}")
  message(SEND_ERROR "new --like sync writes something else than scenarios/start/sync.toml")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${PLACE}/scenario.schema.json "${prefix}/share/stepgate/scenarios/scenario.schema.json"
  COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${PLACE}/consumer "-DCMAKE_PREFIX_PATH=${prefix}"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${PLACE}/consumer OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${prefix}/bin/stepgate" kernel describe ${PLACE}/consumer/libown_kernels.so
  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "^libown_kernels.so [0-9a-f]+: exports layer_norm\n$")
  message(SEND_ERROR "kernel describe of a library of the package: ${output}")
endif()

# `kernel new` writes a project that builds with the package, and a step beside it that finds the library.
if(CUDA)
  set(kernel ${PLACE}/kernel)
  execute_process(COMMAND "${prefix}/bin/stepgate" kernel new swiglu --in ${kernel} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(compiler -DCMAKE_CUDA_COMPILER=${CUDA} -DCMAKE_CUDA_ARCHITECTURES=90)
  if(CUDA_HOST)
    list(APPEND compiler -DCMAKE_CUDA_HOST_COMPILER=${CUDA_HOST})
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${kernel} -B ${kernel}/build "-DCMAKE_PREFIX_PATH=${prefix}" ${compiler}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${kernel}/build OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${prefix}/bin/stepgate" check step.toml WORKING_DIRECTORY ${kernel}
    OUTPUT_VARIABLE output ERROR_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(output MATCHES "warning" OR NOT output MATCHES "step.toml: 2 variants")
    message(SEND_ERROR "check of the step of a new kernel: ${output}")
  endif()
endif()
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
