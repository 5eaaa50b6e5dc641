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
    cmake/stepgate_kernels.cmake cmake/stepgate_scenarios.cmake cmake/add_scenario_tests.cmake
  DESTINATION ${package_folder} COMPONENT stepgate)

install(FILES include/stepgate/kernel.h DESTINATION include/stepgate COMPONENT stepgate)

# Folders lie beside each other as they do here, so that links of pages lead somewhere.
install(DIRECTORY docs examples DESTINATION ${STEPGATE_DATA} COMPONENT stepgate PATTERN __pycache__ EXCLUDE)
install(DIRECTORY scenarios DESTINATION ${STEPGATE_DATA} COMPONENT stepgate FILES_MATCHING PATTERN *.toml PATTERN *.md
  PATTERN scenario.schema.json)
# Profiles and no stored runs, which are the user's.
install(DIRECTORY baselines DESTINATION ${STEPGATE_DATA} COMPONENT stepgate FILES_MATCHING PATTERN device.toml PATTERN *.md
  PATTERN suite EXCLUDE)
install(DIRECTORY python DESTINATION ${STEPGATE_DATA} COMPONENT stepgate FILES_MATCHING PATTERN *.py PATTERN *.toml PATTERN tests EXCLUDE)
install(FILES CHANGELOG.md LICENSE README.md SECURITY.md DESTINATION ${STEPGATE_DATA} COMPONENT stepgate)
install(FILES ci/WORKER.md DESTINATION ${STEPGATE_DATA}/ci COMPONENT stepgate)
install(PROGRAMS ci/recompute.py ci/compare_simulated.py ci/worker_example.py DESTINATION ${STEPGATE_DATA}/ci COMPONENT stepgate)
install(DIRECTORY ci/buildkite ci/github ci/gitlab ci/jenkins ci/jobs DESTINATION ${STEPGATE_DATA}/ci COMPONENT stepgate
  USE_SOURCE_PERMISSIONS)

# The program itself writes its manual page and the completions of shells.
set(described_files "")
foreach(described man=man/man1/stepgate.1 bash=bash-completion/completions/stepgate zsh=zsh/site-functions/_stepgate
    fish=fish/vendor_completions.d/stepgate.fish)
  string(REGEX MATCH "^([a-z]+)=(.+)/([^/]+)$" parts ${described})
  set(file ${PROJECT_BINARY_DIR}/described/${CMAKE_MATCH_1}/${CMAKE_MATCH_3})
  install(FILES ${file} DESTINATION share/${CMAKE_MATCH_2} COMPONENT stepgate)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/described/${CMAKE_MATCH_1})
  add_custom_command(OUTPUT ${file} COMMAND stepgate describe ${CMAKE_MATCH_1} > ${file} COMMENT "" VERBATIM)
  list(APPEND described_files ${file})
endforeach()
add_custom_target(stepgate_described ALL DEPENDS ${described_files})
