# SPDX-License-Identifier: MIT
# Run as `cmake -D FOLDER=<kernels> "-DFAMILIES=<family>;..." -D OUT=<file> -P write_kernel_words.cmake` when a header of a
# family has changed: puts the comments over the declarations of kernels into the program, which tells them to authors of
# kernels. A declaration without one shares that of the declaration before it.
set(delimiter "words")
set(rows "")
foreach(family IN LISTS FAMILIES)
  file(READ ${FOLDER}/${family}/${family}.h text)
  string(FIND "${text}" ")${delimiter}\"" end_of_literal)
  if(NOT end_of_literal EQUAL -1)
    message(FATAL_ERROR "${family}.h: has )${delimiter}\" in it, which ends a literal of C++; write something else")
  endif()
  set(comment "")
  set(words "")
  set(in_names OFF)
  while(NOT text STREQUAL "")
    string(FIND "${text}" "\n" end)
    string(SUBSTRING "${text}" 0 ${end} line)
    math(EXPR next "${end} + 1")
    string(SUBSTRING "${text}" ${next} -1 text)
    if(line MATCHES "^// ?(.*)$")
      string(APPEND comment "${CMAKE_MATCH_1}\n")
    elseif(line MATCHES "^struct [A-Za-z]+ {|^inline constexpr std::string_view [a-z_]+names")
      if(NOT comment STREQUAL "")
        set(words "${comment}")
      endif()
      set(comment "")
    elseif(NOT line MATCHES "^template ")
      set(comment "")
    endif()
    if(line MATCHES "string_view [a-z_]*name(s\\[\\])? = ")
      set(in_names ON)
    endif()
    if(in_names)
      string(REGEX MATCHALL "\"[a-z0-9_]+\"" names "${line}")
      foreach(name IN LISTS names)
        string(APPEND rows "    {${name}, R\"${delimiter}(${words})${delimiter}\"},\n")
      endforeach()
      if(line MATCHES "\;$")
        set(in_names OFF)
      endif()
    endif()
  endwhile()
endforeach()
file(WRITE ${OUT} "// Written by cmake/write_kernel_words.cmake from the headers of kernels.
#include \"kernels/kernel_words.h\"

namespace stepgate {

std::string_view words_of(const Kernel& kernel) {
  struct Declared {
    std::string_view name, words;
  };
  static constexpr Declared all[] = {
${rows}  };
  for (const auto& [name, words] : all)
    if (name == kernel.name) return words;
  return {};
}

}  // namespace stepgate
")
