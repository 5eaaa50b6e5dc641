# SPDX-License-Identifier: MIT
# Run as `cmake -D SCRIPT=<write_commit.cmake> -D PLACE=<folder> -P commit.cmake`.
file(REMOVE_RECURSE ${PLACE})
set(header ${PLACE}/commit.h)
function(expect_commit source pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -D SOURCE=${source} -D HEADER=${header} -P ${SCRIPT} COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${header} text)
  if(NOT text MATCHES "^#define STEPGATE_COMMIT \"${pattern}\"\n$")
    message(SEND_ERROR "not ${pattern}: ${text}")
  endif()
endfunction()
function(git)
  execute_process(COMMAND git -C ${PLACE}/sources -c user.name=a -c user.email=a@b -c commit.gpgsign=false -c tag.gpgsign=false ${ARGN}
    OUTPUT_QUIET ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(WRITE ${PLACE}/sources/file "one\n")
file(WRITE ${PLACE}/sources/copied/file "one\n")
# Nothing above the folder is asked: the build tree may lie in a repository.
set(ENV{GIT_CEILING_DIRECTORIES} ${PLACE})
expect_commit(${PLACE}/sources unknown)
git(init)
git(add .)
git(commit -m one)
git(tag v9)  # names nothing: what counts is the commit
set(twelve "[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]")
expect_commit(${PLACE}/sources "${twelve}")
file(TIMESTAMP ${header} before "%s")
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
expect_commit(${PLACE}/sources "${twelve}")
file(TIMESTAMP ${header} after "%s")
if(NOT before STREQUAL after)
  message(SEND_ERROR "the same commit was written anew, so everything is linked anew")
endif()
file(WRITE ${PLACE}/sources/file "two\n")
expect_commit(${PLACE}/sources "${twelve}-dirty")
expect_commit(${PLACE}/sources/copied unknown)  # somebody else's repository
file(REMOVE_RECURSE ${PLACE})
