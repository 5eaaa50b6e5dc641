# SPDX-License-Identifier: MIT
# Run as `cmake -D LIBRARY=<file> -D OBJDUMP=<program> -D MOST=2.28 -P glibc.cmake`: fails where the file needs a symbol of
# a later glibc, or any of the C++ library.
execute_process(COMMAND ${OBJDUMP} -T ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "GLIBC_[0-9.]+" versions "${symbols}")
list(REMOVE_DUPLICATES versions)
if(NOT versions)
  message(SEND_ERROR "${LIBRARY}: no symbol of glibc is listed, so nothing is checked")
endif()
foreach(version IN LISTS versions)
  string(REPLACE "GLIBC_" "" number "${version}")
  if(number VERSION_GREATER MOST)
    message(SEND_ERROR "${LIBRARY} needs ${version}, and ${MOST} is the newest that it may")
  endif()
endforeach()
if(symbols MATCHES "GLIBCXX|CXXABI")
  message(SEND_ERROR "${LIBRARY} needs the C++ library: ${CMAKE_MATCH_0}")
endif()
