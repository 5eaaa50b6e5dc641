// SPDX-License-Identifier: MIT
#include "verbs/compare/head_assertions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files/temporary_folder.h"
#include "base/process/child.h"
#include "base/text/json_nesting.h"
#include "base/text/units.h"
#include "device/device.h"
#include "judge/verdict/words.h"
#include "report/exit_code.h"
#include "scenario/read/bases.h"
#include "verbs/compare/workers.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

// Highest exit code at which a run may have completed its output.
constexpr int highest_code_of_a_verdict = 77;
constexpr std::uint64_t most_lines = 100'000'000;  // of a file with assertions
constexpr int failed_code = 1;
// Longest text of a reason. Reasons about stored runs have three intervals and advice.
constexpr std::size_t longest_text = 2000;
constexpr int not_trusted_code = 2;
// A suite of 69 scenarios writes 3 MB with rounds, at most 0.12 MB per line. Rounds are left out
// here, since with many variants or rounds they take more than 4 MB. A parsed line takes up to 27
// times its length in memory.
constexpr OutputLimits most_output{.line_bytes = std::size_t{4} << 20,
                                   .all_bytes = std::size_t{64} << 20};
// Limit in bytes for all assertions together, including their overhead, since every report copies
// them.
constexpr std::int64_t most_assertion_bytes = 4 << 20;

bool any_is(const RunOfProgram& run, const std::optional<Outcome>& outcome) {
  return std::ranges::any_of(
      run.assertions, [&](const HeadAssertion& assertion) { return assertion.outcome == outcome; });
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string()
             ? printable(found->get_ref<const std::string&>(), longest_text)
             : std::string();
}

void read_device(const Json& line, RunOfProgram& run) {
  const auto device = line.find("device");
  if (device == line.end() || !device->is_object()) return;
  run.simulated = text_of(*device, "kind") == name_of(DeviceKind::simulated);
  run.device = run.simulated ? "a simulated " + text_of(*device, "name") + " (no measurement)"
                             : text_of(*device, "name") + ", driver " + text_of(*device, "driver");
}

// Returns whether a comparison had enough rounds to estimate the missing ones, and these are too
// many.
bool is_out_of_reach(const Json& assertion) {
  const auto timed = assertion.find("timed");
  if (timed == assertion.end() || !timed->is_object()) return false;
  const auto seen = timed->find("smallest_seen");
  if (seen == timed->end() || !seen->is_number()) return false;
  const auto missing = timed->find("rounds_missing");
  return missing == timed->end() || !missing->is_number() ||
         missing->get<double>() > most_within_reach;
}

std::int64_t bytes_of(const HeadAssertion& assertion) {
  return static_cast<std::int64_t>(sizeof assertion + assertion.scenario.size() +
                                   assertion.name.size() + assertion.reason.size() +
                                   assertion.place.file.size());
}

// Assertions of a broken scenario do not count. Stops at the limit in bytes.
void read_scenario_line(const Json& line, RunOfProgram& run, std::int64_t& bytes) {
  const std::string scenario = text_of(line, "scenario");
  if (scenario.empty()) {
    const auto suite = line.find("suite");
    const bool has = suite != line.end() && suite->is_object();
    const auto failed =
        has ? suite->find(suite->contains("fails") ? "fails" : "refuted") : line.end();
    if (has && failed != suite->end() && failed->is_boolean())
      run.suite_failed = failed->get<bool>();
    return;
  }
  ++run.scenarios;
  read_device(line, run);
  if (const std::string broken = text_of(line, "broken"); !broken.empty()) {
    run.assertions.push_back({scenario, "scenario", std::nullopt, broken});
    bytes += bytes_of(run.assertions.back());
    return;
  }
  const auto expect = line.find("expect");
  if (expect == line.end() || !expect->is_array()) return;
  for (const Json& assertion : *expect) {
    if (bytes > most_assertion_bytes) return;
    if (!assertion.is_object()) continue;
    const auto number = assertion.find("line");
    const bool has_line = number != assertion.end() && number->is_number_unsigned() &&
                          number->get<std::uint64_t>() <= most_lines;
    const auto outcome = outcome_in(text_of(assertion, "outcome"));
    run.assertions.push_back(
        {.scenario = scenario,
         .name = text_of(assertion, "name"),
         .outcome = outcome,
         .reason = outcome ? text_of(assertion, "reason") : "its outcome is none",
         .place = {text_of(assertion, "file"), has_line ? number->get<int>() : 0, 1},
         .out_of_reach = outcome == Outcome::undecided && is_out_of_reach(assertion)});
    bytes += bytes_of(run.assertions.back());
  }
}

std::string last_line_of(std::string_view errors) {
  while (errors.ends_with('\n')) errors.remove_suffix(1);
  if (errors.empty()) return "";
  return ": " + printable(errors.substr(errors.rfind('\n') + 1), 300);
}

}  // namespace

RunOfProgram run_program_on(const Arguments& arguments, ComparisonSide side,
                            const std::string& program,
                            const std::vector<std::filesystem::path>& files, std::uint64_t seed,
                            const std::string& bases) {
  Arguments of_files = arguments;
  of_files.files = files;
  const TemporaryFolder folder;
  // The program's temporary files are removed with our own folder, even if it is killed.
  // Command lines are not passed in arguments, which every user of the machine can read.
  std::vector<std::string> environment = environment_of(arguments, side);
  set_variable(environment, "TMPDIR", folder.path().string());
  if (!bases.empty()) {
    const char* given = std::getenv(bases_variable);
    set_variable(environment, std::string(bases_variable), bases + (given == nullptr ? "" : given));
  }
  set_variable(environment, json_rounds_variable, "none");
  std::vector<std::string> more{"--seed", std::to_string(seed), "--json", "/dev/stdout"};
  if (!arguments.ledger.empty()) {
    // Each side writes its own folder, so that neither changes the other's evidence.
    const char* own = side == ComparisonSide::base ? "base" : "";
    more.insert(more.end(), {"--ledger", (arguments.ledger / own).string()});
  }
  const Command command = program_command(of_files, program, "run", more);
  ChildRequest request = worker_request(arguments, command, side);
  request.stall = of_seconds(arguments.gate.run_seconds);
  request.environment = environment;
  RunOfProgram run;
  std::string no_json;
  std::int64_t assertion_bytes = 0;
  ChildEnd end;
  try {
    end = Child(std::move(request))
              .run_to_end(most_output, [&](std::string_view line) -> std::optional<std::string> {
                const Json parsed =
                    nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
                if (!parsed.is_object()) no_json = "wrote a line that is no JSON";
                if (parsed.is_object()) read_scenario_line(parsed, run, assertion_bytes);
                if (assertion_bytes <= most_assertion_bytes) return std::nullopt;
                return "wrote more than " + bytes_text(most_assertion_bytes) + " of assertions";
              });
  } catch (const WaitStopped&) {
    run.stopped = true;
    return run;
  }
  const std::string last_error = last_line_of(end.errors);
  if (!end.wrong.empty()) {
    run.failure = end.wrong;
  } else if (!end.code) {
    run.failure = fmt::format("had not ended after {}, which is what --run-seconds gives it",
                              seconds_text(arguments.gate.run_seconds));
  } else if (*end.code > highest_code_of_a_verdict || *end.code == 3) {
    run.failure = fmt::format("ended with {}{}", *end.code, last_error);
  } else if (*end.code == not_trusted_code && !any_is(run, std::nullopt)) {
    run.failure = "is not to be trusted: it ended with 2" + last_error;
  } else if (*end.code == failed_code && !run.suite_failed && !any_is(run, Outcome::fails)) {
    run.failure = "ended with 1, and nothing that it wrote fails";
  } else if (run.scenarios == 0) {
    run.gated_nothing = *end.code == status_of(ExitCode::not_gated);
    run.failure = fmt::format("decided nothing and ended with {}{}", *end.code, last_error);
  } else {
    run.failure = no_json;
  }
  return run;
}

}  // namespace stepgate
