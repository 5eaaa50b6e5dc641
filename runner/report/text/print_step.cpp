// SPDX-License-Identifier: MIT
#include "report/text/print_step.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "support/text/visible_text.h"

namespace stepgate {

std::string variants_in_words(const ComparedThing& thing, const AlikeVariants& alike) {
  return thing.differs() ? fmt::format("{}", fmt::join(alike.variants, ", ")) : "all";
}

std::string described_in_words(const AlikeVariants& alike) {
  return alike.words.empty() ? "nothing else" : alike.words;
}

void print_steps(std::ostream& out, const std::vector<DescribedStep>& steps) {
  for (const ComparedThing& thing : compared_things(steps)) {
    std::size_t width = 0;
    for (const AlikeVariants& alike : thing.groups)
      width = std::max(width, variants_in_words(thing, alike).size());
    for (const AlikeVariants& alike : thing.groups) {
      const bool first = &alike == &thing.groups.front();
      const std::string words = one_line(described_in_words(alike));
      fmt::print(out, "  {:<9}{}", first ? thing.thing : "",
                 thing.differs() && first ? "* " : "  ");
      if (thing.differs()) fmt::print(out, "{:<{}}  ", variants_in_words(thing, alike), width);
      fmt::print(out, "{}\n", words);
    }
  }
}

}  // namespace stepgate
