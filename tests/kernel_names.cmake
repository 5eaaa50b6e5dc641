# SPDX-License-Identifier: MIT
# Run as `cmake -D SOURCE=<repository> -D PLACE=<folder> -P kernel_names.cmake`: what is true of a kernel stands in its
# declaration (kernels/kernel.h), so that nothing compares a launch's kernel with a name. Tests may. A comparison that is
# planted is found.
set(pattern "[.>]kernel *[!=]= *\"|[.>]kernel[.]starts_with|[.>]kernel[.]find")

function(find_comparisons folders found)
  set(all "")
  foreach(folder IN LISTS folders)
    file(GLOB_RECURSE files ${folder}/*.h ${folder}/*.cpp ${folder}/*.cu ${folder}/*.cuh)
    list(FILTER files EXCLUDE REGEX "_test[.](cpp|cu)$|/testing/")
    foreach(file IN LISTS files)
      file(STRINGS ${file} lines REGEX "${pattern}")
      foreach(line IN LISTS lines)
        set(all "${all}\n  ${file}: ${line}")
      endforeach()
    endforeach()
  endforeach()
  set(${found} "${all}" PARENT_SCOPE)
endfunction()

find_comparisons("${SOURCE}/runner;${SOURCE}/kernels" found)
if(found)
  message(FATAL_ERROR "These compare a kernel with a name; say what is true of it in kernels/kernel.h:${found}")
endif()
file(WRITE ${PLACE}/planted.cpp "if (launch.kernel == \"matmul\") {}\nif (launch->kernel.starts_with(\"attention\")) {}\n")
find_comparisons("${PLACE}" found)
string(REGEX MATCHALL "planted" planted "${found}")
list(LENGTH planted count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "planted comparisons with a name went unnoticed:${found}")
endif()
