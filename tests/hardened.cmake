# SPDX-License-Identifier: MIT
# Run as `cmake -D FILE=<program or library> -D READELF=<program> [-D FORTIFIED=ON] -P hardened.cmake`: fails where the file was built
# without a check that releases have (STEPGATE_HARDENED). FORTIFIED: it is a program of the C++ library and of checked
# calls of the C library too.
execute_process(COMMAND ${READELF} --wide --file-header --program-headers --dynamic --dyn-syms ${FILE}
  OUTPUT_VARIABLE told COMMAND_ERROR_IS_FATAL ANY)
function(expect what pattern)
  if(NOT told MATCHES "${pattern}")
    message(SEND_ERROR "${FILE} has ${what}")
  endif()
endfunction()
expect("a fixed address" "Type: +DYN")
expect("tables of functions that stay writable: no RELRO" "GNU_RELRO")
expect("tables of functions that stay writable: no BIND_NOW" "BIND_NOW|FLAGS_1\\)[^\n]*NOW")
expect("a stack whose contents can run" "GNU_STACK[^\n]* RW ")
expect("no protection of its stack" "UND __stack_chk_fail")
if(FORTIFIED)
  expect("unchecked calls of the C library" "UND __[a-z]+_chk@")
  expect("unchecked containers" "UND _ZSt[0-9a-z_]*assert")
endif()
