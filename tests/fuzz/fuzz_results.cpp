// SPDX-License-Identifier: MIT
// libFuzzer: reads text as two results of a run or a gate, with an empty line between them, and
// compares them. They are refused. Else a result does not differ from itself, two of them differ as
// much the other way round, every number is finite, and what is printed is JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compare/results/compare_results.h"
#include "report/text/print_results.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

void check_times(const ComparedResults& compared) {
  for (const TimeOfBoth& time : compared.times) {
    require(std::isfinite(time.ratio) && time.ratio > 0, "a ratio is a positive number");
    if (!time.has_interval) continue;
    require(time.low <= time.ratio && time.ratio <= time.high, "an interval has its ratio in it");
    require(time.low > 0 && std::isfinite(time.high), "an interval has two ends");
  }
}

void check_same(const ComparedResults& compared) {
  require(compared.provenance.empty() && compared.facts.empty() && compared.same_device,
          "a result does not differ from itself");
  for (const TimeOfBoth& time : compared.times)
    require(time.ratio == 1, "a step takes the time that it takes");
  for (const MatchedPoints& sweep : compared.sweeps)
    require(sweep.before.empty() && sweep.after.empty(), "all points are matched");
}

void check_turned(const ComparedResults& compared, const ComparedResults& turned) {
  require(compared.provenance.size() == turned.provenance.size() &&
              compared.facts.size() == turned.facts.size() &&
              compared.times.size() == turned.times.size() &&
              compared.same_device == turned.same_device,
          "as much differs the other way round");
}

void check_printed(const ComparedResults& compared) {
  std::ostringstream text, json;
  print_results(text, compared);
  write_results_json(json, compared);
  require(nlohmann::json::accept(json.str()), "what is printed is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzedFile first, second;
  const std::string_view text = fuzzed_text(data, size);
  const std::size_t gap = std::min(text.find("\n\n"), size);
  const auto& before = first.with(text.substr(0, gap));
  const auto& after = second.with(gap < size ? text.substr(gap + 2) : text);
  (void)unless_refused([&] {
    check_same(compare_results(before, before));
    const ComparedResults compared = compare_results(before, after);
    check_times(compared);
    check_printed(compared);
    check_turned(compared, compare_results(after, before));
    return std::string();
  });
  return 0;
}
