# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D PROGRAM=<stepgate> -D PLACE=<folder> -P labels.cmake`: a project with six
# scenarios, all tagged nightly and each in another way that TOML allows, of which ctest -L nightly must run all six; and
# what it must do with faults and with labels that there are not.
file(REMOVE_RECURSE ${PLACE})
set(step "[variant.a]\nmodel = { kind = \"spin\", kernels = 1 }\n[expect]\nl = \"a.host_waits_per_step == 0\"\n")
function(plant name text)
  file(WRITE "${PLACE}/scenarios/${name}.toml" "claim = \"no waits\"\n${text}\n${step}")
endfunction()
plant(plain "tags = [\"nightly\", \"other\"]")
plant(two_lines "tags = [\"other\",\n  \"nightly\"]  # as many lines as one likes")
plant(quoted_key "\"tags\" = [\"nightly\"]")
plant(single_quotes "tags = ['nightly']")
plant(indented "   tags = [\"nightly\"]")
plant(with_hyphen "tags = [\"nightly-gpu\"]")
plant(daytime "# tags = [\"nightly\"]\ntags = [\"other\"]")
plant("semi;colon" "source = \"[;\"\ntags = [\"other\"]")
file(WRITE ${PLACE}/CMakeLists.txt
"cmake_minimum_required(VERSION 3.25)
project(labels LANGUAGES NONE)
enable_testing()
add_executable(stepgate::stepgate IMPORTED)
set_target_properties(stepgate::stepgate PROPERTIES IMPORTED_LOCATION \"${PROGRAM}\")
include(${SOURCE}/cmake/stepgate_scenarios.cmake)
stepgate_add_scenarios(scenarios LABELS mine PREFIX p. ARGUMENTS --device simulated:round-numbers --seed 1
  BASELINES ${SOURCE}/tests/baselines)
")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${PLACE} -B ${PLACE}/build OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

# Runs ctest with these arguments; its output, and how it ends.
function(ask result_variable output_variable)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${PLACE}/build ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  set(${result_variable} "${result}" PARENT_SCOPE)
  set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()
function(expect_selected count)
  ask(result output -N ${ARGN})
  if(NOT output MATCHES "Total Tests: ${count}\n")
    message(SEND_ERROR "not ${count} tests with ${ARGN}:\n${output}")
  endif()
endfunction()

expect_selected(8 -L mine)
expect_selected(6 -L nightly)
expect_selected(4 -L other)
ask(result output -L nightly -j 2 --timeout 60)
foreach(name plain two_lines quoted_key single_quotes indented with_hyphen)
  if(NOT output MATCHES "p\\.${name} [. ]*Passed")
    message(SEND_ERROR "${name} did not run:\n${output}")
  endif()
endforeach()

# A label that nothing has.
expect_selected(0 -L nihgtly)
ask(result output -L nihgtly --no-tests=error)
if(result EQUAL 0)
  message(SEND_ERROR "no test was found, and that was a success")
endif()

# Files that nobody can read are in every selection, new ones without configuring anew, and fail.
file(WRITE ${PLACE}/scenarios/broken.toml "claim = \"x\"\ntags = [\"nightly\"\n")
expect_selected(9 -L mine)
expect_selected(7 -L nightly)
ask(result output -L nightly -R broken)
if(result EQUAL 0 OR NOT output MATCHES "p\\.broken \\(Failed\\)")
  message(SEND_ERROR "a file with a fault did not fail:\n${output}")
endif()

# A program that says nothing is no reason for a selection of nothing.
file(REMOVE_RECURSE ${PLACE}/scenarios)
file(MAKE_DIRECTORY ${PLACE}/scenarios)
ask(result output -L nightly)
if(result EQUAL 0 OR NOT output MATCHES "no scenario files")
  message(SEND_ERROR "a folder without scenarios was a success:\n${output}")
endif()
file(REMOVE_RECURSE ${PLACE})
