# SPDX-License-Identifier: MIT
# Read by ctest, for every folder that stepgate_add_scenarios was called with: asks the program which scenarios there
# are. Whatever goes wrong is a test that fails or an error of ctest, never fewer tests.
set(timeout_seconds 300)  # ten times the budget of a file that says nothing: only what hangs takes so long

function(stepgate_add_scenario_test name file tags)
  set(test "${stepgate_prefix}${name}")
  set(global_arguments "")
  if(stepgate_baselines)
    set(global_arguments --baselines "${stepgate_baselines}")
  endif()
  add_test("${test}" "${stepgate_program}" ${global_arguments} run "${file}" ${stepgate_arguments})
  set_tests_properties("${test}" PROPERTIES
    LABELS "${stepgate_labels};${tags}"
    WORKING_DIRECTORY "${stepgate_working_directory}"
    SKIP_RETURN_CODE 77
    TIMEOUT ${timeout_seconds}
    # Whoever runs ctest in a CI system reads ctest's report: no test adds a page of its own.
    ENVIRONMENT "GITHUB_ACTIONS=;GITHUB_STEP_SUMMARY=")
  if(NOT "${stepgate_arguments}" MATCHES "simulated|reference")  # two scenarios at once would time each other
    set_tests_properties("${test}" PROPERTIES RESOURCE_LOCK gpu RUN_SERIAL ON)
  endif()
endfunction()

function(stepgate_add_listed_scenarios)
  if(NOT EXISTS "${stepgate_program}")
    set(test "${stepgate_prefix}scenarios_NOT_BUILT")  # as ctest says it of other tests
    add_test("${test}" "${stepgate_program}")
    set_tests_properties("${test}" PROPERTIES LABELS "${stepgate_labels}")
    return()
  endif()
  execute_process(COMMAND "${stepgate_program}" list --json "${stepgate_folder}"
    WORKING_DIRECTORY "${stepgate_working_directory}"
    OUTPUT_VARIABLE listed ERROR_VARIABLE faults RESULT_VARIABLE result)
  if("${listed}" STREQUAL "" OR NOT "${result}" MATCHES "^[02]$")  # 2: some have faults
    message(SEND_ERROR "stepgate list --json ${stepgate_folder} ended with ${result}: ${faults}")
    return()
  endif()
  string(REPLACE ";" "\\u003b" listed "${listed}")  # which would end an item of a list of CMake's

  set(fault_count 0)
  set(every_tag "")
  while(NOT "${listed}" STREQUAL "")
    string(FIND "${listed}" "\n" end)
    string(SUBSTRING "${listed}" 0 ${end} line)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${listed}" ${end} -1 listed)
    string(JSON name GET "${line}" name)
    string(JSON file GET "${line}" file)
    string(JSON count ERROR_VARIABLE no_tags LENGTH "${line}" tags)
    if(no_tags)
      set(fault_${fault_count}_name "${name}")
      set(fault_${fault_count}_file "${file}")
      math(EXPR fault_count "${fault_count} + 1")
      continue()
    endif()
    set(tags "")
    set(index 0)
    while(index LESS count)
      string(JSON tag GET "${line}" tags ${index})
      list(APPEND tags "${tag}")
      math(EXPR index "${index} + 1")
    endwhile()
    list(APPEND every_tag ${tags})
    stepgate_add_scenario_test("${name}" "${file}" "${tags}")
  endwhile()

  # Nobody knows their tags, and no selection may be smaller for that.
  list(REMOVE_DUPLICATES every_tag)
  set(index 0)
  while(index LESS fault_count)
    stepgate_add_scenario_test("${fault_${index}_name}" "${fault_${index}_file}" "${every_tag}")
    math(EXPR index "${index} + 1")
  endwhile()
endfunction()

stepgate_add_listed_scenarios()
