# SPDX-License-Identifier: MIT
# cmake --install <build> --prefix <folder> --component stepgate: the program, what it reads, and a package for other
# projects. The folder may be moved afterwards. The component keeps out what downloaded packages would install.
include(CMakePackageConfigHelpers)
set(STEPGATE_DATA share/stepgate)  # where the program looks, seen from bin
set(package_folder lib/cmake/stepgate)

install(TARGETS stepgate EXPORT stepgateTargets RUNTIME DESTINATION bin COMPONENT stepgate)
set(STEPGATE_ATTACH lib/stepgate/attach)  # run_attached.h looks there, seen from bin
install(TARGETS stepgate_attach LIBRARY DESTINATION ${STEPGATE_ATTACH} COMPONENT stepgate)
install(FILES python/stepgate/hook/sitecustomize.py DESTINATION ${STEPGATE_ATTACH} COMPONENT stepgate)
install(EXPORT stepgateTargets NAMESPACE stepgate:: DESTINATION ${package_folder} COMPONENT stepgate)
configure_package_config_file(cmake/stepgateConfig.cmake.in ${PROJECT_BINARY_DIR}/stepgateConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stepgateConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stepgateConfig.cmake ${PROJECT_BINARY_DIR}/stepgateConfigVersion.cmake
    cmake/stepgate_scenarios.cmake cmake/add_scenario_tests.cmake
  DESTINATION ${package_folder} COMPONENT stepgate)

install(DIRECTORY scenarios DESTINATION ${STEPGATE_DATA} COMPONENT stepgate FILES_MATCHING PATTERN *.toml PATTERN *.md)
# Profiles and no stored runs, which are the user's.
install(DIRECTORY baselines DESTINATION ${STEPGATE_DATA} COMPONENT stepgate FILES_MATCHING PATTERN device.toml PATTERN *.md
  PATTERN suite EXCLUDE)
install(DIRECTORY python DESTINATION ${STEPGATE_DATA} COMPONENT stepgate FILES_MATCHING PATTERN *.py PATTERN *.toml PATTERN tests EXCLUDE)
install(FILES LICENSE docs/json_schema.json ci/recompute.py DESTINATION ${STEPGATE_DATA} COMPONENT stepgate)
