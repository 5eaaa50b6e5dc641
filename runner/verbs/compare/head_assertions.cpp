// SPDX-License-Identifier: MIT
#include "verbs/compare/head_assertions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/files/temporary_folder.h"
#include "base/process/child.h"
#include "base/text/units.h"
#include "compare/gate/run_reader.h"
#include "report/exit_code.h"
#include "scenario/read/bases.h"
#include "verbs/compare/workers.h"

namespace stepgate {
namespace {

// Highest exit code at which a run may have completed its output.
constexpr int highest_code_of_a_verdict = 77;
constexpr int failed_code = 1;
constexpr int not_trusted_code = 2;
// A suite of 69 scenarios writes 3 MB with rounds, at most 0.12 MB per line. Rounds are left out
// here, since with many variants or rounds they take more than 4 MB. A parsed line takes up to 27
// times its length in memory.
constexpr OutputLimits most_output{.line_bytes = std::size_t{4} << 20,
                                   .all_bytes = std::size_t{64} << 20};

bool any_is(const RunOfProgram& run, const std::optional<Outcome>& outcome) {
  return std::ranges::any_of(
      run.assertions, [&](const HeadAssertion& assertion) { return assertion.outcome == outcome; });
}

}  // namespace

std::string last_line_of(std::string_view errors) {
  while (errors.ends_with('\n')) errors.remove_suffix(1);
  return printable(errors.substr(errors.rfind('\n') + 1), 300);
}

RunOfProgram run_program_on(const Arguments& arguments, ComparisonSide side,
                            const std::string& program,
                            const std::vector<std::filesystem::path>& files, std::uint64_t seed,
                            const std::string& bases, const Command& options) {
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
  for (const Command& each : {own_knobs(arguments, side), options})
    more.insert(more.end(), each.begin(), each.end());
  if (!arguments.ledger.empty()) {
    // Each side writes its own folder, so that neither changes the other's evidence.
    const char* own = side == ComparisonSide::base ? "base" : "";
    more.insert(more.end(), {"--ledger", (arguments.ledger / own).string()});
  }
  const Command command = program_command(of_files, program, "run", more);
  ChildRequest request = worker_request(arguments, command, side);
  request.stall = of_seconds(arguments.gate.run_seconds);
  request.environment = environment;
  RunReader reader;
  ChildEnd end;
  bool is_stopped = false;
  try {
    end = Child(std::move(request)).run_to_end(most_output, [&](std::string_view line) {
      return reader.take(line);
    });
  } catch (const WaitStopped&) {
    is_stopped = true;
  }
  RunOfProgram run = reader.run();
  run.stopped = is_stopped;
  if (is_stopped) return run;
  const std::string last_line = last_line_of(end.errors);
  const std::string last_error = last_line.empty() ? "" : ": " + last_line;
  if (!end.wrong.empty()) {
    run.failure = end.wrong;
  } else if (!end.code) {
    run.failure = fmt::format("had not ended after {}, which is what --run-seconds gives it",
                              seconds_text(arguments.gate.run_seconds));
  } else if (*end.code > highest_code_of_a_verdict || *end.code == 3) {
    run.failure = fmt::format("ended with {}{}", *end.code, last_error);
  } else if (*end.code == not_trusted_code && !any_is(run, std::nullopt)) {
    run.refused = true;
    run.failure = "is not to be trusted: it ended with 2" + last_error;
  } else if (*end.code == failed_code && !run.suite_failed && !any_is(run, Outcome::fails)) {
    run.failure = "ended with 1, and nothing that it wrote fails";
  } else if (run.scenarios == 0) {
    run.gated_nothing = *end.code == status_of(ExitCode::not_gated);
    run.failure = fmt::format("decided nothing and ended with {}{}", *end.code, last_error);
  }
  return run;
}

}  // namespace stepgate
