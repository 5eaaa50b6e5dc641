# SPDX-License-Identifier: MIT
# Third-party packages: an installed CMake package first, a plain header folder from CMAKE_PREFIX_PATH second, a pinned
# download third. Each is included in one kind of file only: toml++ in support, Boost in stats, CLI11 in main,
# nlohmann/json where JSON is written, fmt for text.
include(FetchContent)

# stepgate_package(<name> TARGET <t> HEADER <h> [COMPILE <file>] GIT <repository> <tag>)
# After the call stepgate::<name> exists, whichever of the three ways found it. The alias keeps the target names of
# packagers out of the rest of the build. With COMPILE only the headers are taken from the package, and the file, which
# includes what of them need not be compiled by everyone, is a static library.
function(stepgate_package name)
  cmake_parse_arguments(ARG "" "TARGET;HEADER;COMPILE" "GIT" ${ARGN})
  find_package(${name} QUIET)
  if(ARG_COMPILE)
    set(scope PUBLIC)
    add_library(stepgate_package_${name} STATIC ${ARG_COMPILE})
    target_link_libraries(stepgate_package_${name} PRIVATE stepgate_options)
  else()
    set(scope INTERFACE)
    add_library(stepgate_package_${name} INTERFACE)
  endif()
  add_library(stepgate::${name} ALIAS stepgate_package_${name})
  if(NOT TARGET ${ARG_TARGET})
    string(MAKE_C_IDENTIFIER "STEPGATE_${name}_INCLUDE_DIR" directory)
    find_path(${directory} ${ARG_HEADER})
    mark_as_advanced(${directory})
    if(${directory})
      target_include_directories(stepgate_package_${name} SYSTEM ${scope} ${${directory}})
      message(STATUS "${name}: headers in ${${directory}}")
      return()
    endif()
    list(GET ARG_GIT 0 repository)
    list(GET ARG_GIT 1 tag)
    message(STATUS "${name}: not installed, downloading ${tag} from ${repository}")
    FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
    FetchContent_MakeAvailable(${name})
  endif()
  if(ARG_COMPILE)
    target_include_directories(stepgate_package_${name} SYSTEM PUBLIC
      $<TARGET_PROPERTY:${ARG_TARGET},INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    target_link_libraries(stepgate_package_${name} INTERFACE ${ARG_TARGET})
  endif()
endfunction()

stepgate_package(tomlplusplus TARGET tomlplusplus::tomlplusplus HEADER toml++/toml.h
  GIT https://github.com/marzer/tomlplusplus.git v3.4.0)
stepgate_package(fmt TARGET fmt::fmt-header-only HEADER fmt/format.h COMPILE cmake/fmt.cpp
  GIT https://github.com/fmtlib/fmt.git 9.1.0)
stepgate_package(nlohmann_json TARGET nlohmann_json::nlohmann_json HEADER nlohmann/json.hpp
  GIT https://github.com/nlohmann/json.git v3.11.2)
stepgate_package(CLI11 TARGET CLI11::CLI11 HEADER CLI/CLI.hpp
  GIT https://github.com/CLIUtils/CLI11.git v2.1.2)
stepgate_package(Boost TARGET Boost::boost HEADER boost/math/distributions.hpp
  GIT https://github.com/boostorg/boost.git boost-1.83.0)
find_package(Threads REQUIRED)
if(STEPGATE_TESTS)
  stepgate_package(GTest TARGET GTest::gtest_main HEADER gtest/gtest.h
    GIT https://github.com/google/googletest.git v1.12.1)
endif()
if(STEPGATE_BENCHMARKS)
  stepgate_package(benchmark TARGET benchmark::benchmark HEADER benchmark/benchmark.h
    GIT https://github.com/google/benchmark.git v1.7.1)
endif()
