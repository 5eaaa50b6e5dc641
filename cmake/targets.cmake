# SPDX-License-Identifier: MIT
include(GoogleTest)

add_library(stepgate_options INTERFACE)
target_include_directories(stepgate_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runner)
# Members are given by name and the others keep their defaults, of which g++ alone complains. Several files in a unit see
# each other's names, which shadow nothing in a build of single files.
target_compile_options(stepgate_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-shadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers --expt-relaxed-constexpr>)
# A bound that is exceeded ends the process, where it would else read or write what lies behind. Sanitizers check more.
set(hardens $<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>)
if(STEPGATE_HARDENED AND NOT STEPGATE_SANITIZE)
  target_compile_options(stepgate_options INTERFACE $<${hardens}:-fstack-protector-strong>)
  target_compile_definitions(stepgate_options INTERFACE $<${hardens}:_GLIBCXX_ASSERTIONS>)
  target_link_options(stepgate_options INTERFACE $<$<CONFIG:Release>:LINKER:-z,relro,-z,now>)
endif()
# stepgate_harden(<target>): checks calls of the C library too, which needs optimization and so is not for tests.
function(stepgate_harden target)
  set(hardens $<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>)
  if(STEPGATE_HARDENED AND NOT STEPGATE_SANITIZE)
    target_compile_options(${target} PRIVATE $<${hardens}:-U_FORTIFY_SOURCE> $<${hardens}:-D_FORTIFY_SOURCE=3>)
  endif()
endfunction()

if(STEPGATE_SANITIZE)
  target_compile_options(stepgate_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${STEPGATE_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(stepgate_options INTERFACE -fsanitize=${STEPGATE_SANITIZE})
  if(STEPGATE_SANITIZE MATCHES "integer")
    target_compile_options(stepgate_options INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/integers.txt>)
  endif()
  target_compile_definitions(stepgate_options INTERFACE STEPGATE_SANITIZED)  # tests then simulate less
endif()
if(STEPGATE_FUZZ)
  target_compile_definitions(stepgate_options INTERFACE STEPGATE_FUZZING)  # a digest of zero fits then
  file(WRITE ${PROJECT_BINARY_DIR}/fuzz_targets.txt "")
endif()

# Kernels keep names of their own file, such as block_threads, where CMake could put them together (3.31 and later).
function(stepgate_keep_kernels_apart)
  list(FILTER ARGN INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Code in which no time is spent is compiled in half the time.
function(stepgate_optimize_little target)
  if(STEPGATE_FUZZ)  # where readers are all that runs
    return()
  endif()
  if(STEPGATE_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  endif()
endfunction()

# stepgate_library(<name> [READS_OR_WRITES] SOURCES <file>... [USES <target>...])
# One that only reads what somebody wrote, or writes what others found, is optimized little.
function(stepgate_library name)
  cmake_parse_arguments(ARG "READS_OR_WRITES" "" "SOURCES;USES" ${ARGN})
  stepgate_keep_kernels_apart(${ARG_SOURCES})
  add_library(stepgate_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(stepgate_${name} PUBLIC stepgate_options ${ARG_USES})
  stepgate_harden(stepgate_${name})
  if(ARG_READS_OR_WRITES)
    stepgate_optimize_little(stepgate_${name})
  endif()
endfunction()

# Headers that every test begins with, read once for all that are compiled without optimization. A
# file that forgets an include would not show, so this is for those who build everything from
# nothing.
if(STEPGATE_TESTS AND STEPGATE_TEST_HEADERS_ONCE)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "")
  add_library(stepgate_test_headers STATIC ${PROJECT_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(stepgate_test_headers PRIVATE stepgate_options stepgate::GTest)
  target_compile_options(stepgate_test_headers PRIVATE -O0)
  target_precompile_headers(stepgate_test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <chrono> <cmath> <filesystem>
    <fstream> <functional> <map> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view> <variant> <vector>)
endif()

# Files that tests read beside their programs.
if(STEPGATE_TESTS)
  set(folders scenarios baselines tests runner kernels docs ci)
  list(TRANSFORM folders REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/\\1/*.OF_KIND" OUTPUT_VARIABLE patterns)
  set(every_pattern "")
  foreach(kind toml json jsonl txt md py svg)
    list(TRANSFORM patterns REPLACE "OF_KIND" ${kind} OUTPUT_VARIABLE of_kind)
    list(APPEND every_pattern ${of_kind})
  endforeach()
  file(GLOB_RECURSE stepgate_test_data CONFIGURE_DEPENDS ${every_pattern})
  list(APPEND stepgate_test_data ${PROJECT_SOURCE_DIR}/README.md)
  add_custom_target(passed)  # every test program has passed
  add_custom_target(test_programs)
endif()

# A program that passed is run again when it is another one, or the program that it runs, or what it reads.
function(stepgate_pass_once name labels)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${name}.passed)
  set(runs "")
  if("cli" IN_LIST labels)
    set(runs stepgate)
  endif()
  add_custom_command(OUTPUT ${stamp} COMMAND ${name} --gtest_brief=1 COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${name} ${runs} ${stepgate_test_data} COMMENT "Testing ${name}" VERBATIM)
  add_custom_target(passed_${name} DEPENDS ${stamp})
  add_dependencies(passed passed_${name})
endfunction()

# stepgate_test(<name> [READS] [SIMULATES] [AS_RELEASED] [TIMES] SOURCES <file>... USES <target>... [LABELS <label>...])
# One program for the tests of one station; every GoogleTest case is a ctest of its own, or with STEPGATE_TEST_HALVES
# every half of a program is: a process a case is a fifth of the time of all tests. READS marks tests of what parses, owns
# memory or starts processes, which ci/test runs under sanitizers; the others run as released there, and under every sanitizer
# at night (STEPGATE_TESTS_OF). A test is compiled without optimization, which takes half the time, or with little where it
# computes much itself: it SIMULATES. One that runs the whole suite many times runs AS_RELEASED only: under a sanitizer it would take
# minutes to say no more. One that TIMES processes against each other has fewer tests beside it.
function(stepgate_test name)
  if(NOT STEPGATE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "READS;SIMULATES;AS_RELEASED;TIMES" "" "SOURCES;USES;LABELS" ${ARGN})
  if((ARG_READS AND STEPGATE_TESTS_OF STREQUAL "rest") OR (NOT ARG_READS AND STEPGATE_TESTS_OF STREQUAL "readers"))
    return()
  endif()
  if("power" IN_LIST ARG_LABELS AND (STEPGATE_SANITIZE OR NOT STEPGATE_POWER_TESTS))
    return()
  endif()
  if(STEPGATE_SANITIZE AND ARG_AS_RELEASED)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stepgate_options ${ARG_USES} stepgate::GTest)
  target_compile_definitions(${name} PRIVATE STEPGATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_dependencies(test_programs ${name})
  if(ARG_SIMULATES)
    stepgate_optimize_little(${name})
  else()
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
    if(STEPGATE_TEST_HEADERS_ONCE)
      target_precompile_headers(${name} REUSE_FROM stepgate_test_headers)
    endif()
  endif()
  if(NOT ARG_LABELS MATCHES "gpu|power")
    stepgate_pass_once(${name} "${ARG_LABELS}")
  endif()
  set(properties "")
  if(ARG_LABELS)
    set(properties LABELS "${ARG_LABELS}")
    if("gpu" IN_LIST ARG_LABELS)  # memory and time of the GPU belong to one test at a time
      list(APPEND properties RESOURCE_LOCK gpu)
    endif()
  endif()
  if(ARG_TIMES)
    list(APPEND properties PROCESSORS 2)
  endif()
  if(STEPGATE_TEST_HALVES)
    foreach(half 0 1)
      add_test(NAME ${name}.half_${half} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}.half_${half} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${half}" TIMEOUT 3600 ${properties})
    endforeach()
    return()
  endif()
  if(properties)
    list(PREPEND properties PROPERTIES)
  endif()
  # Parameters in names would be bytes and addresses that change from run to run.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES TEST_PREFIX "${name}." ${properties})
endfunction()

# stepgate_benchmark(<name> SOURCES <file>... USES <target>...)
function(stepgate_benchmark name)
  if(NOT STEPGATE_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stepgate_options ${ARG_USES} stepgate::benchmark)
endfunction()

# stepgate_fuzz(<name> SOURCES <file>... USES <target>... [MOST_BYTES <number>] [SEEDS <form> <pattern>])
# An input has at most so many bytes, or as many as the fuzzer thinks right.
# A fuzzer begins with what tests/fuzz/seeds.py makes of files of the tree in that form. ci/fuzz
# reads which targets there are, a line each as given here, from fuzz_targets.txt in the build
# folder.
function(stepgate_fuzz name)
  if(NOT STEPGATE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "MOST_BYTES" "SOURCES;USES;SEEDS" ${ARGN})
  if(NOT ARG_MOST_BYTES)
    set(ARG_MOST_BYTES 0)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stepgate_options ${ARG_USES})
  target_compile_definitions(${name} PRIVATE STEPGATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  list(JOIN ARG_SEEDS " " seeds)
  file(APPEND ${PROJECT_BINARY_DIR}/fuzz_targets.txt "${name} ${ARG_MOST_BYTES} ${seeds}\n")
endfunction()
