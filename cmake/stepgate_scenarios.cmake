# SPDX-License-Identifier: MIT
# stepgate_add_scenarios(<folder> [LABELS <label>...] [PREFIX <text>] [ARGUMENTS <argument>...] [BASELINES <folder>]
#   [WORKING_DIRECTORY <folder>])
# Every scenario file of the folder is one ctest, named after the file and labelled with its tags and the labels given.
# The program itself says which tags a file has (`stepgate list --json`), when ctest starts: a regex would
# lose tests whose tags are written in another way, and the program is not there yet when CMake configures.
# ARGUMENTS go to `stepgate run`, such as --device simulated --seed 1; without a simulated device the tests run one at a
# time. BASELINES is --baselines: without it the package's own, unless the working directory has a folder of that name.
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
  if(NOT ARG_BASELINES AND NOT EXISTS ${ARG_WORKING_DIRECTORY}/baselines)
    set(ARG_BASELINES ${STEPGATE_PACKAGE_BASELINES})  # empty outside a package: the program's own choice
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
