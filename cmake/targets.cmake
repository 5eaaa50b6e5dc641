# SPDX-License-Identifier: MIT
include(GoogleTest)

add_library(stepgate_options INTERFACE)
target_include_directories(stepgate_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runner)
target_compile_options(stepgate_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr>)
if(STEPGATE_SANITIZE)
  target_compile_options(stepgate_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${STEPGATE_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(stepgate_options INTERFACE -fsanitize=${STEPGATE_SANITIZE})
  target_compile_definitions(stepgate_options INTERFACE STEPGATE_SANITIZED)  # tests then simulate less
endif()

# Kernels keep names of their own file, such as block_threads, where CMake could put them together (3.31 and later).
function(stepgate_keep_kernels_apart)
  list(FILTER ARGN INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# stepgate_library(<name> SOURCES <file>... [USES <target>...])
function(stepgate_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  stepgate_keep_kernels_apart(${ARG_SOURCES})
  add_library(stepgate_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(stepgate_${name} PUBLIC stepgate_options ${ARG_USES})
endfunction()

# What every test begins with, read once for all that are compiled without optimization. A file that forgets an include
# would not show, so this is for those who build everything from nothing.
if(STEPGATE_TESTS AND STEPGATE_TEST_HEADERS_ONCE)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "")
  add_library(stepgate_test_headers STATIC ${PROJECT_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(stepgate_test_headers PRIVATE stepgate_options stepgate::GTest)
  target_compile_options(stepgate_test_headers PRIVATE -O0)
  target_precompile_headers(stepgate_test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <chrono> <cmath> <filesystem>
    <fstream> <functional> <map> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view> <variant> <vector>)
endif()

# stepgate_test(<name> [SIMULATES] SOURCES <file>... USES <target>... [LABELS <label>...])
# One program for the tests of one station; every GoogleTest case is a ctest of its own, or with STEPGATE_TEST_HALVES
# every half of a program is: a process a case is a fifth of the time of all tests. A test is compiled without
# optimization, which takes half the time, unless it computes much itself: it SIMULATES.
function(stepgate_test name)
  if(NOT STEPGATE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SIMULATES" "" "SOURCES;USES;LABELS" ${ARGN})
  if(STEPGATE_SANITIZE AND "power" IN_LIST ARG_LABELS)  # thousands of gates, whose code other tests run too
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stepgate_options ${ARG_USES} stepgate::GTest)
  target_compile_definitions(${name} PRIVATE STEPGATE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT ARG_SIMULATES)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
    if(STEPGATE_TEST_HEADERS_ONCE)
      target_precompile_headers(${name} REUSE_FROM stepgate_test_headers)
    endif()
  endif()
  set(properties "")
  if(ARG_LABELS)
    set(properties LABELS "${ARG_LABELS}")
    if("gpu" IN_LIST ARG_LABELS)  # memory and time of the GPU belong to one test at a time
      list(APPEND properties RESOURCE_LOCK gpu)
    endif()
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

# stepgate_fuzz(<name> SOURCES <file>... USES <target>...)
function(stepgate_fuzz name)
  if(NOT STEPGATE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stepgate_options ${ARG_USES})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
