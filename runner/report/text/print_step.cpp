// SPDX-License-Identifier: MIT
#include "report/text/print_step.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <span>

#include "base/text/visible_text.h"

namespace stepgate {

std::string variants_in_words(const ComparedThing& thing, const AlikeVariants& alike) {
  constexpr std::size_t most_named = 6;
  if (!thing.differs()) return "all";
  const std::span<const std::string> variants = alike.variants;
  if (variants.size() <= most_named) return fmt::format("{}", fmt::join(variants, ", "));
  return fmt::format("{} and {} more", fmt::join(variants.first(most_named), ", "),
                     variants.size() - most_named);
}

std::string described_in_words(const AlikeVariants& alike) {
  return alike.words.empty() ? "nothing else" : alike.words;
}

std::vector<std::string> steps_in_words(const std::vector<DescribedStep>& steps) {
  std::vector<std::string> lines;
  for (const ComparedThing& thing : compared_things(steps)) {
    std::vector<std::string> groups;
    for (const AlikeVariants& alike : thing.groups) {
      const std::string words = described_in_words(alike);
      groups.push_back(
          thing.differs() ? fmt::format("{} ({})", words, variants_in_words(thing, alike)) : words);
    }
    lines.push_back(fmt::format("{}: {}", thing.thing, fmt::join(groups, "; ")));
  }
  return lines;
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
