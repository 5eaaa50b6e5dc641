# SPDX-License-Identifier: MIT
# Run as `cmake -D FOLDER=<scenarios/start> "-DWORDS=<word>;..." -D OUT=<file> -P write_starters.cmake` when a starter
# has changed: puts the scenarios that `stepgate new` writes into the program, which may be installed without them.
set(delimiter "starter")
set(rows "")
foreach(word IN LISTS WORDS)
  file(READ ${FOLDER}/${word}.toml text)
  string(FIND "${text}" ")${delimiter}\"" end_of_literal)
  if(NOT end_of_literal EQUAL -1)
    message(FATAL_ERROR "${FOLDER}/${word}.toml: has )${delimiter}\" in it, which ends a literal of C++; write something else")
  endif()
  string(APPEND rows "    {\"${word}\", R\"${delimiter}(${text})${delimiter}\"},\n")
endforeach()
file(WRITE ${OUT} "// Written by cmake/write_starters.cmake from scenarios/start.
#include \"verbs/starters.h\"

#include <algorithm>
#include <array>

#include \"scenario/knobs/described_step.h\"

namespace stepgate {

std::span<const Starter> starters() {
  static constexpr auto all = std::to_array<Starter>({
${rows}  });
  static_assert(std::ranges::equal(all, five_things, {}, &Starter::word),
                \"a starter for each of the five things, in their order\");
  return all;
}

}  // namespace stepgate
")
