# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D PLACE=<folder> -P plant_include.cmake`: copies the sources, plants one include
# that nobody may have in each of several ways, plans where subjects are judged, a floor of too many files and a family that no list has, and
# fails unless check_layers.cmake names every one of them.
set(planted_in runner/base/stats/moments.h runner/plan/allocators/caching/block_pool.h runner/scenario/scenario.h runner/judge/verdict/words.cpp kernels/kernel.h
  runner/base/text/units.cpp runner/judge/verdict/words.cpp runner/plan/compose/build_mlp.cpp kernels/gemm/gemm.cpp
  runner/judge/judge.cpp runner/judge/stored/baseline.cpp runner/measure/schedule.cpp runner/report/text/print_plan.cpp
  runner/report/ci/write_junit.cpp runner/report/html/html.h
  runner/device/ranked/child_link.h runner/line/decide.cpp runner/line/line_arguments.h runner/line/trace/trace_all.h runner/ledger/runs/ledger.h)
set(planted
  "#include \"judge/verdict/verdict.h\""
  "#include \"plan/analyse/access.h\""
  "#  include \"device/device.h\""
  "#include \"runner/report/text/table.h\""
  "#include \"base/text/units.h\""
  # Between the rooms of a station, and of a fixture.
  "#include \"base/toml/toml.h\""
  "#include \"judge/stored/baseline.h\""
  "#include \"plan/testing/plan_by_hand.h\""
  "#include \"kernels/testing/bench_shapes.h\""
  # At an analysis of what comes with the plan.
  "#include \"plan/count/facts_of.h\""
  "#include \"plan/derive/anchors.h\""
  "#include \"plan/analyse/access.h\""
  "#include \"runner/plan/allocate/pack_arena.h\""
  # At a writer of reports.
  "#include \"judge/verdict/verdict.h\""
  "#include \"runner/compare/gate/judge_gate.h\""
  # From the ranks as a device up to who launches them.
  "#include \"line/job.h\""
  # From the line to who prints, to who reads command lines, and from its traces to its ranks.
  "#include \"report/text/table.h\""
  "#include \"verbs/arguments.h\""
  "#include \"line/ranks/rank_team.h\""
  "#include \"line/planned.h\"")

file(REMOVE_RECURSE ${PLACE})
file(COPY ${SOURCE}/runner ${SOURCE}/kernels DESTINATION ${PLACE})
foreach(file include IN ZIP_LISTS planted_in planted)
  file(APPEND ${PLACE}/${file} "${include}\n")
endforeach()
# A plan where subjects are judged, in a test too, and where they are measured.
set(names_a_plan runner/judge/judge.h runner/judge/judge_test.cpp runner/measure/rounds/measure.h runner/measure/schedule.cpp)
set(plans_named "class PlannedStep" "#include \"plan/testing/plan_by_hand.h\"" "#include \"plan/step_plan.h\"" "struct StepPlan")
foreach(file plan IN ZIP_LISTS names_a_plan plans_named)
  file(APPEND ${PLACE}/${file} "${plan}\n")
endforeach()
file(APPEND ${PLACE}/runner/measure/rounds/measure_test.cpp "#include \"plan/step_plan.h\"\n")
file(WRITE ${PLACE}/runner/judge/shed/shed.h "")
file(WRITE ${PLACE}/runner/verbs/x1.h "")
file(WRITE ${PLACE}/kernels/lost/lost.cpp "")
file(APPEND ${PLACE}/runner/base/require.h "#include \"verbs/x1.h\"\n")
foreach(number RANGE 40)
  file(WRITE ${PLACE}/runner/base/stats/many/${number}.h "")
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE=${PLACE} -P ${PLACE}/runner/check_layers.cmake
  RESULT_VARIABLE result ERROR_VARIABLE report OUTPUT_QUIET)
file(REMOVE_RECURSE ${PLACE})
if(result EQUAL 0)
  message(FATAL_ERROR "planted includes went unnoticed")
endif()
foreach(told "kernels/lost/lost.cpp: no family of kernels/kernels.h"
    "runner/judge/shed/shed.h: lies in a room that rooms_judge does not list" "runner/base/require.h: #include \"verbs/x1.h\"")
  string(FIND "${report}" "${told}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${told}' is not reported:\n${report}")
  endif()
endforeach()
if(NOT report MATCHES "runner/base/stats/many: 41 files on one floor")
  message(FATAL_ERROR "a floor of 41 files is not reported:\n${report}")
endif()
foreach(file plan IN ZIP_LISTS names_a_plan plans_named)
  string(FIND "${report}" "${file}: names a plan: ${plan}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${plan}' in ${file} is not reported:\n${report}")
  endif()
endforeach()
if(report MATCHES "measure_test.cpp: names a plan")
  message(FATAL_ERROR "a test of the measuring may have plans:\n${report}")
endif()
foreach(file include IN ZIP_LISTS planted_in planted)
  string(FIND "${report}" "${file}: ${include}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${include}' in ${file} is not reported:\n${report}")
  endif()
endforeach()
