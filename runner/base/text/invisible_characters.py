# SPDX-License-Identifier: MIT
# invisible_characters.py [--check]: writes invisible_characters.h beside it, or compares. Unicode data are Python's.
import pathlib
import re
import sys
import unicodedata

HEADER = pathlib.Path(__file__).with_suffix(".h")

# Controls, separators, and formats such as marks of text direction, by general category.
CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Zs"}
# Characters of other categories that show nothing: those with Default_Ignorable_Code_Point (Unicode's DerivedCoreProperties.txt), which
# Python does not tell, and blanks that are symbols or letters by category.
NAMES = re.compile(
    "VARIATION SELECTOR|(HANGUL|KHITAN).* FILLER$|COMBINING GRAPHEME JOINER|KHMER VOWEL INHERENT|BRAILLE PATTERN BLANK|NULL NOTEHEAD"
)
# Reserved for more of these, whatever version of Unicode Python knows, and Egyptian formats that came with version 15.
RESERVED = [(0x2065, 0x2065), (0xFFF0, 0xFFF8), (0x13430, 0x1343F), (0xE0000, 0xE0FFF)]
# XML does not allow these.
NO_CHARACTERS = [(0xFFFE, 0xFFFF)]


def is_invisible(code):
    if code == ord(" "):
        return False
    character = chr(code)
    return (
        unicodedata.category(character) in CATEGORIES
        or NAMES.search(unicodedata.name(character, ""))
        or any(first <= code <= last for first, last in RESERVED + NO_CHARACTERS)
    )


def ranges():
    found = []
    for code in filter(is_invisible, range(sys.maxunicode + 1)):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def header():
    rows = "".join(f"    {{0x{first:04x}, 0x{last:04x}}},\n" for first, last in ranges())
    return f"""// SPDX-License-Identifier: MIT
// Written by invisible_characters.py from Unicode data; a test compares.
#pragma once

#include <array>
#include <cstdint>

namespace stepgate {{

// Code points from `first` to `last`, both included.
struct CodePoints {{
  std::uint32_t first = 0;
  std::uint32_t last = 0;
}};

// Characters that show nothing, move the cursor, break a line or turn the direction of text, and
// every blank but the ordinary space. In order.
// clang-format off
constexpr auto invisible_characters = std::to_array<CodePoints>({{
{rows}}});
// clang-format on

}}  // namespace stepgate
"""


if sys.argv[1:] == ["--check"]:
    if HEADER.read_text() != header():
        sys.exit(f"{HEADER} is not what Unicode {unicodedata.unidata_version} says: run {HEADER.with_suffix('.py').name}")
else:
    HEADER.write_text(header())
