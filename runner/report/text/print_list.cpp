// SPDX-License-Identifier: MIT
#include "report/text/print_list.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>

#include "base/text/visible_text.h"
#include "report/text/print_step.h"

namespace stepgate {
namespace {

std::string counted_noun(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

void print_listed(std::ostream& out, const Scenario& scenario) {
  fmt::print(out, "{}  [{}]\n  {}\n", scenario.name, fmt::join(scenario.tags, ", "),
             one_line(scenario.claim));
  print_steps(out, described_steps(scenario.variants));
  std::vector<std::string_view> variants;
  for (const Variant& variant : scenario.variants) variants.push_back(variant.name);
  std::vector<std::string_view> assertions;
  for (const Expectation& expectation : scenario.expect) assertions.push_back(expectation.name);
  fmt::print(out, "  variants: {}\n  expects:  {}\n", fmt::join(variants, ", "),
             fmt::join(assertions, ", "));
}

void print_checked(std::ostream& out, const Scenario& scenario,
                   std::span<const Diagnostic> warnings) {
  fmt::print(out, "{}: {}, {}\n", one_line(scenario.file),
             counted_noun(scenario.variants.size(), "variant"),
             counted_noun(scenario.expect.size(), "assertion"));
  for (const Diagnostic& warning : warnings) fmt::print(out, "warning: {}\n", to_string(warning));
}

void print_devices(std::ostream& out, std::span<const DeviceRow> rows) {
  std::size_t width = 0;
  for (const DeviceRow& row : rows) width = std::max(width, one_line(row.spec).size());
  for (const DeviceRow& row : rows) {
    fmt::print(out, "{:<{}}  {}{}\n", one_line(row.spec), width,
               row.available ? "" : "not available: ", one_line(row.description));
  }
}

}  // namespace stepgate
