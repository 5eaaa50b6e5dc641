# SPDX-License-Identifier: MIT
# stepgate_add_scenarios(<folder> [LABELS <label>...] [PREFIX <text>] [ARGUMENTS <argument>...] [BASELINES <folder>]
#   [WORKING_DIRECTORY <folder>])
# Every scenario file of the folder is one ctest, named after the file and labelled with its tags and the labels given.
# The program itself says which tags a file has (`stepgate list --json`), when ctest starts: a regex would
# lose tests whose tags are written in another way, and the program is not there yet when CMake configures.
# ARGUMENTS go to `stepgate run`, such as --device simulated --seed 1; without a simulated device the tests run one at a
# time. BASELINES is --baselines: without it baselines/ of the working directory.
# WORKING_DIRECTORY is where scenarios run and what reports name files relative to: the current source directory.
# A file with faults is a test that fails, labelled with every tag of the others. A label that nothing has selects
# nothing, which ctest calls a success unless it is asked with --no-tests=error; this project's presets do.
set(STEPGATE_SCENARIO_TESTS_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/add_scenario_tests.cmake)

function(stepgate_add_scenarios folder)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PREFIX;BASELINES;WORKING_DIRECTORY" "LABELS;ARGUMENTS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stepgate_add_scenarios: not expected: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_WORKING_DIRECTORY)
    set(ARG_WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  cmake_path(ABSOLUTE_PATH folder NORMALIZE OUTPUT_VARIABLE absolute)
  if(NOT IS_DIRECTORY ${absolute})
    message(FATAL_ERROR "stepgate_add_scenarios: there is no folder ${absolute}")
  endif()
  # As short as it can be: names of files are in every report.
  cmake_path(RELATIVE_PATH absolute BASE_DIRECTORY ${ARG_WORKING_DIRECTORY} OUTPUT_VARIABLE shown)
  if(shown MATCHES "^\\.\\.")
    set(shown ${absolute})
  endif()
  string(MD5 id "${absolute} ${ARG_PREFIX}")
  set(script ${CMAKE_CURRENT_BINARY_DIR}/stepgate_scenarios_${id})
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  # Brackets: nothing of these values is taken for a variable or for two.
  file(GENERATE OUTPUT ${script}-$<CONFIG>.cmake CONTENT
"set(stepgate_program [==[$<TARGET_FILE:stepgate::stepgate>]==])
set(stepgate_folder [==[${shown}]==])
set(stepgate_working_directory [==[${ARG_WORKING_DIRECTORY}]==])
set(stepgate_prefix [==[${ARG_PREFIX}]==])
set(stepgate_labels [==[${ARG_LABELS}]==])
set(stepgate_arguments [==[${ARG_ARGUMENTS}]==])
set(stepgate_baselines [==[${ARG_BASELINES}]==])
include([==[${STEPGATE_SCENARIO_TESTS_SCRIPT}]==])
")
  if(multi_config)
    file(WRITE ${script}.cmake "include(\"${script}-\${CTEST_CONFIGURATION_TYPE}.cmake\")\n")
  else()
    file(WRITE ${script}.cmake "include(\"${script}-${CMAKE_BUILD_TYPE}.cmake\")\n")
  endif()
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script}.cmake)
endfunction()

# stepgate_add_gate(<name> BASE <program> | STORED | PROGRAM <scenario> BASE <folder>
#   [HEAD <program or folder>] [SCENARIOS <file or folder>...] [ARGUMENTS <argument>...] [LABELS <label>...]
#   [BASELINES <folder>] [WORKING_DIRECTORY <folder>] [UNDECIDED skip])
# One ctest that fails unless HEAD may be merged, labelled `gate` and with the labels given.
# BASE compares HEAD, which is stepgate::stepgate where it is left out, with another stepgate. STORED compares it with the
# runs that `stepgate accept` stored for this device. PROGRAM compares a program of your own in HEAD, the working directory
# where it is left out, with the same in the folder BASE.
# Whatever `stepgate gate` does not pass is a test that fails: 1 blocked, 4 not gated, because the machine is another or
# slower than its stored runs, and 77 undecided, which UNDECIDED skip shows as Skipped instead.
# ARGUMENTS go to `stepgate gate`. Without a simulated device the test runs alone. SCENARIOS, scenarios/ where it is left
# out, BASELINES and WORKING_DIRECTORY are as in stepgate_add_scenarios.
function(stepgate_add_gate name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "STORED" "BASE;HEAD;PROGRAM;BASELINES;WORKING_DIRECTORY;UNDECIDED"
    "SCENARIOS;ARGUMENTS;LABELS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "stepgate_add_gate: not expected: ${ARG_UNPARSED_ARGUMENTS}${ARG_KEYWORDS_MISSING_VALUES}")
  endif()
  if((ARG_STORED AND (ARG_BASE OR ARG_PROGRAM)) OR (NOT ARG_STORED AND NOT ARG_BASE) OR (ARG_PROGRAM AND ARG_SCENARIOS))
    message(FATAL_ERROR "stepgate_add_gate(${name}): compare with BASE <program>, or STORED, or PROGRAM <scenario> BASE <folder>")
  endif()
  if(ARG_UNDECIDED AND NOT ARG_UNDECIDED STREQUAL "skip")
    message(FATAL_ERROR "stepgate_add_gate(${name}): UNDECIDED may be skip; leave it out and an undecided gate fails")
  endif()
  if(NOT ARG_WORKING_DIRECTORY)
    set(ARG_WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  set(command stepgate::stepgate)
  if(ARG_BASELINES)
    list(APPEND command --baselines ${ARG_BASELINES})
  endif()
  list(APPEND command gate)
  if(ARG_STORED)
    list(APPEND command --stored)
  else()
    list(APPEND command --base ${ARG_BASE})
  endif()
  if(NOT ARG_HEAD AND ARG_PROGRAM)
    set(ARG_HEAD ${ARG_WORKING_DIRECTORY})
  elseif(NOT ARG_HEAD)
    set(ARG_HEAD $<TARGET_FILE:stepgate::stepgate>)
  endif()
  list(APPEND command --head ${ARG_HEAD})
  if(ARG_PROGRAM)
    list(APPEND command --program ${ARG_PROGRAM})
  endif()
  add_test(NAME ${name} COMMAND ${command} ${ARG_ARGUMENTS} ${ARG_SCENARIOS} WORKING_DIRECTORY ${ARG_WORKING_DIRECTORY})
  set_tests_properties(${name} PROPERTIES LABELS "gate;${ARG_LABELS}")
  if(NOT "${ARG_ARGUMENTS}" MATCHES "simulated")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if(ARG_UNDECIDED)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endfunction()
