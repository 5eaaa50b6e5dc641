# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D HEADER=<file> -P write_commit.cmake` whenever something is built: the header
# says of which commit the sources are, "unknown" where they are not a git repository of their own. It is written only
# when that has changed, so that a build of the same commit links nothing anew.
set(commit unknown)
find_program(git git)
if(git)
  # No lock is taken and no program of the repository's configuration is started.
  set(ask ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 ${git} -c core.fsmonitor=false -C ${SOURCE})
  execute_process(COMMAND ${ask} rev-parse --show-prefix OUTPUT_VARIABLE inside RESULT_VARIABLE failed
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${ask} describe --always --dirty --abbrev=12 "--exclude=*" OUTPUT_VARIABLE described
    RESULT_VARIABLE undescribed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0 AND undescribed EQUAL 0 AND inside STREQUAL "")  # else they lie in somebody else's repository
    set(commit ${described})
  endif()
endif()
set(text "#define STEPGATE_COMMIT \"${commit}\"\n")
set(written "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} written)
endif()
if(NOT written STREQUAL text)
  file(WRITE ${HEADER} "${text}")
endif()
