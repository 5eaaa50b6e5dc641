// SPDX-License-Identifier: MIT
// libFuzzer: reads lines as what HEAD's `run --json` writes. Whatever they are, texts are short and
// printable, and a gate passes only where the lines say of every assertion of its scenarios that it
// passes.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/random.h"
#include "compare/gate/run_reader.h"
#include "report/testing/reports.h"
#include "report/writers.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = [] {
    std::vector<Scenario> made(2);
    for (Scenario& scenario : made) {
      scenario.name = &scenario == made.data() ? "first" : "second";
      scenario.expect.resize(2);
      scenario.expect[0].name = "faster";
      scenario.expect[1].name = "exact";
    }
    return made;
  }();
  return all;
}

void check(std::string_view text) {
  require(text.size() <= longest_text_of_run + 3, "a text is short");
  require(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }),
          "a text is printable");
}

void check(const RunOfProgram& run) {
  for (const HeadAssertion& assertion : run.assertions) {
    for (const std::string* text :
         {&assertion.scenario, &assertion.name, &assertion.reason, &assertion.place.file})
      check(*text);
    require(assertion.place.line >= 0, "a file has no negative lines");
  }
  if (!judge_run(run, scenarios()).empty()) return;
  for (const Scenario& scenario : scenarios()) {
    for (const Expectation& wanted : scenario.expect) {
      require(std::ranges::any_of(run.assertions,
                                  [&](const HeadAssertion& assertion) {
                                    return assertion.scenario == scenario.name &&
                                           assertion.name == wanted.name &&
                                           assertion.outcome == Outcome::passes;
                                  }),
              "nothing passes by silence");
    }
  }
}

std::string_view next_line(std::string_view& lines) {
  const std::string_view line = lines.substr(0, lines.find('\n'));
  lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  return line;
}

RunOfProgram read(std::string_view lines) {
  RunReader reader;
  while (!lines.empty()) {
    const std::string_view line = next_line(lines);
    if (!line.empty() && reader.take(line)) break;
  }
  return reader.run();
}

// The first input is a run of the two scenarios that stepgate itself wrote, and is read as such.
std::string lines_to_begin_with() {
  std::vector<Verdict> verdicts;
  for (const Scenario& scenario : scenarios()) {
    Verdict& verdict = verdicts.emplace_back();
    verdict.scenario = scenario.name;
    verdict.device.name = "NVIDIA H200";
    verdict.outcome = Outcome::passes;
    for (const Expectation& wanted : scenario.expect) {
      AssertionVerdict& assertion = verdict.assertions.emplace_back();
      assertion.name = wanted.name;
      assertion.outcome = Outcome::passes;
      assertion.reason = "1.36x in a typical round";
      assertion.timed.emplace().smallest_seen = 0.01;
      assertion.timed->rounds_missing = 3;
    }
  }
  const Report report = report_of(ended_run(verdicts));
  std::ostringstream lines;
  for (const ReportedScenario& scenario : report.scenarios)
    write_json(lines, report.run, scenario, {}, {});
  write_json(lines, report, {}, {});
  const RunOfProgram run = read(lines.str());
  require(run.failure.empty() && judge_run(run, scenarios()).empty(), "a run that passes does");
  return lines.str();
}

// Puts something else in the place of one value in one of the lines, where they are JSON.
std::string with_another_value(std::string_view lines, Random& random) {
  using Json = nlohmann::json;
  static const Json others = Json::parse(
      R"([null, true, false, 0, -1, 1e300, 18446744073709551615, "", "passes", "fails", "undecided",)"
      R"( "first", "\u0007", "\u00a0", "::error", {}, [{}]])");
  std::string changed;
  const std::int64_t chosen = random.below(1 + std::ranges::count(lines, '\n'));
  for (std::int64_t number = 0; !lines.empty(); ++number) {
    const std::string_view line = next_line(lines);
    Json json = number == chosen ? Json::parse(line, nullptr, false) : Json();
    if (json.is_object() && !json.empty()) {
      const Json leaves = json.flatten();
      const auto leaf = std::next(leaves.begin(), random.below(std::ssize(leaves)));
      Json::json_pointer place(leaf.key());
      while (!place.parent_pointer().empty() && random.below(3) == 0)
        place = place.parent_pointer();
      json[place] = others.at(random.below(others.size()));
      changed += json.dump();
    } else {
      changed += line;
    }
    changed += '\n';
  }
  return changed;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  static const std::string first = lines_to_begin_with();
  Random random(seed);
  std::string text = first;
  if (size > 1) {
    if (random.below(2) == 0) return LLVMFuzzerMutate(data, size, most);
    text = with_another_value(fuzzed_text(data, size), random);
  }
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(read(fuzzed_text(data, size)));
  return 0;
}
