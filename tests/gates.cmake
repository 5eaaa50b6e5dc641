# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D PROGRAM=<stepgate> -D PLACE=<folder> -P gates.cmake`: a project whose ctest
# blocks by stepgate_add_gate: a HEAD that waits in every step, a step slower than its stored runs, a machine slower than
# they were stored on, also for a step whose anchor is not, a device without stored runs, and a gate without an answer.
file(REMOVE_RECURSE ${PLACE})
file(WRITE ${PLACE}/scenarios/step.toml "claim = \"a step\"\n[model]\nlayers = 4\nhidden = 512\n[batch]\nsize = 256\n"
  "[variant.base]\n[expect]\nl = \"base.host_waits_per_step == 0\"\n")
file(WRITE ${PLACE}/scenarios/copies.toml "claim = \"a step of which copies take half\"\n[model]\nlayers = 4\nhidden = 512\n"
  "[batch]\nsize = 256\nsample_bytes = \"64 KiB\"\n[transfer]\nhost = \"pinned\"\n"
  "[variant.base]\n[expect]\nl = \"base.host_waits_per_step == 0\"\n")
file(WRITE ${PLACE}/waits "#!/bin/sh\nfor word; do\n  shift\n  set -- \"$@\" \"$word\"\n"
  "  case $word in worker | run) set -- \"$@\" --set sync.where=step ;; esac\ndone\nexec \"${PROGRAM}\" \"$@\"\n")
file(WRITE ${PLACE}/says "#!/bin/sh\necho \"asked: $*\"\nexit 77\n")
file(CHMOD ${PLACE}/waits ${PLACE}/says PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(COPY ${SOURCE}/tests/baselines/round-numbers DESTINATION ${PLACE}/baselines)
function(project_with program gates)
  file(WRITE ${PLACE}/CMakeLists.txt
"cmake_minimum_required(VERSION 3.25)
project(gates LANGUAGES NONE)
enable_testing()
add_executable(stepgate::stepgate IMPORTED)
set_target_properties(stepgate::stepgate PROPERTIES IMPORTED_LOCATION \"${program}\")
include(${SOURCE}/cmake/stepgate_scenarios.cmake)
${gates}")
  file(REMOVE_RECURSE ${PLACE}/build)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${PLACE} -B ${PLACE}/build OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
# How ctest must show the test, and what the gate must say in it.
function(expect_of name ended said)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${PLACE}/build -V -L gate -R "^${name}$"
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT output MATCHES "${name} [. ]*(\\*\\*\\*)?${ended}" OR NOT output MATCHES "${said}")
    message(SEND_ERROR "${name} is not ${ended} with '${said}':\n${output}")
  endif()
endfunction()

set(simulated "ARGUMENTS --device simulated:round-numbers --seed 1 --only counts")
project_with(${PROGRAM} "
stepgate_add_gate(equal BASE ${PROGRAM} ${simulated})
stepgate_add_gate(waits BASE ${PROGRAM} HEAD ${PLACE}/waits ${simulated})
stepgate_add_gate(stored STORED ARGUMENTS --device simulated:round-numbers --seed 4 LABELS mine)
stepgate_add_gate(stored_waits STORED HEAD ${PLACE}/waits ARGUMENTS --device simulated:round-numbers --seed 4)
")
expect_of(equal Passed PASSED)
expect_of(waits Failed "BLOCKED")
expect_of(stored Failed "NOT GATED")
foreach(seed RANGE 1 8)
  execute_process(COMMAND ${PROGRAM} accept scenarios --device simulated:round-numbers --seed ${seed} --runs 1
    WORKING_DIRECTORY ${PLACE} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
expect_of(stored Passed PASSED)
expect_of(stored_waits Failed "BLOCKED")
# A machine on which everything but copies takes a quarter more.
file(READ ${PLACE}/baselines/round-numbers/device.toml profile)
foreach(rate 4e.12=3.2e12 5e.13=4e13 4e.14=3.2e14 8e.14=6.4e14 "launch_ns = 3000=launch_ns = 3750" "product_ns = 5000=product_ns = 6250"
    "launch_latency_ns = 2000=launch_latency_ns = 2500" "kernel_floor_ns = 1500=kernel_floor_ns = 1875")
  string(REGEX REPLACE "^(.*)=(.*)$" "\\1" from "${rate}")
  string(REGEX REPLACE "^(.*)=(.*)$" "\\2" to "${rate}")
  string(REGEX REPLACE "${from}" "${to}" profile "${profile}")
endforeach()
file(WRITE ${PLACE}/baselines/round-numbers/device.toml "${profile}")
expect_of(stored Failed "copies/base.*anchor h2d_pinned.*explain it.*NOT GATED")
expect_of(stored_waits Failed "BLOCKED")

project_with(${PLACE}/says "
stepgate_add_gate(open BASE old)
stepgate_add_gate(skipped BASE old UNDECIDED skip)
stepgate_add_gate(program PROGRAM train.toml BASE ../before ARGUMENTS --margin 3%)
stepgate_add_gate(files STORED SCENARIOS a.toml b BASELINES kept)
")
expect_of(open Failed "asked: gate --base old --head ${PLACE}/says")
expect_of(skipped Skipped "asked")
expect_of(program Failed "asked: gate --base ../before --head ${PLACE} --program train.toml --margin 3%")
expect_of(files Failed "asked: --baselines kept gate --stored --head ${PLACE}/says a.toml b")

# A gate that says too little or too much is refused when the project is configured.
foreach(wrong "x" "x STORED BASE old" "x PROGRAM train.toml" "x BASE old UNDECIDED pass" "x STORED SCENARIO a.toml")
  file(WRITE ${PLACE}/wrong/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES NONE)\n"
    "include(${SOURCE}/cmake/stepgate_scenarios.cmake)\nstepgate_add_gate(${wrong})\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${PLACE}/wrong -B ${PLACE}/wrong/build OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE result)
  if(result EQUAL 0 OR NOT said MATCHES "stepgate_add_gate")
    message(SEND_ERROR "stepgate_add_gate(${wrong}) is taken:\n${said}")
  endif()
endforeach()
file(REMOVE_RECURSE ${PLACE})
