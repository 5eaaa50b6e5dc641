// SPDX-License-Identifier: MIT
// `stepgate duel`: two programs, launch against launch.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <sstream>

#include "judge/judge_duel.h"
#include "report/print_duel.h"
#include "report/progress_line.h"
#include "support/random.h"
#include "support/write_file.h"
#include "verbs/interruption.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

nanoseconds of_seconds(double seconds) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds));
}

// A stepgate becomes a worker on the scenarios; a command line is one already.
Command worker_command(const Arguments& arguments, const std::string& given) {
  if (arguments.duel.commands) return split_command_line(given);
  Command command{given.find('/') == std::string::npos ? "./" + given : given};
  command.insert(command.end(), {"--baselines", arguments.device.baselines.string(), "worker"});
  for (const auto& file : arguments.files) command.push_back(file.string());
  if (!arguments.device.spec.empty())
    command.insert(command.end(), {"--device", arguments.device.spec});
  for (const std::string& knob : arguments.overrides)
    command.insert(command.end(), {"--set", knob});
  return command;
}

// Contents and simulated noise are new at every launch, or the launches would not be independent.
LaunchWorker launcher(const Arguments& arguments, Command base, Command head, std::uint64_t seed) {
  return [=, stall = of_seconds(arguments.duel.stall_seconds), seeded = !arguments.duel.commands](
             DuelSide side, std::int64_t launch) {
    ChildRequest request{.command = side == DuelSide::base ? base : head,
                         .name = side == DuelSide::base ? "BASE" : "HEAD",
                         .stall = stall,
                         .stopped = [] { return interrupted != 0; }};
    if (seeded) {
      request.command.insert(
          request.command.end(),
          {"--seed", std::to_string(random_bits(seed, static_cast<std::uint64_t>(launch)))});
    }
    return start_worker(std::move(request));
  };
}

int say_interrupted() {
  std::cerr << "interrupted: the duel is not decided, nothing was written\n";
  return interrupted_exit_code(interrupted);
}

DuelMeasurement measure(const Arguments& arguments, const Introduction& both,
                        const DuelSubject& subject, const DuelSettings& settings,
                        const LaunchWorker& launch, std::uint64_t seed, std::int64_t pairs) {
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  DuelRequest request;
  request.works = subject.works;
  request.introduction = both;
  request.launch = launch;
  request.seed = seed;
  request.most_pairs = pairs;
  request.fewest_pairs = fewest_pairs_to_hold(settings);
  if (arguments.budget_seconds) request.budget = of_seconds(*arguments.budget_seconds);
  request.clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  request.undecided = undecided_works(subject.works.size(), settings);
  request.progress = [&](std::int64_t done, nanoseconds spent) { line.show("duel", done, spent); };
  return measure_duel(request);
}

}  // namespace

int duel_programs(const Arguments& arguments) {
  const DuelSettings settings{.margin = margin_of(arguments.duel.margin)};
  const std::uint64_t seed = seed_of(arguments);
  const Command base = worker_command(arguments, arguments.duel.base);
  const Command head = worker_command(arguments, arguments.duel.head);
  if (!arguments.json.empty()) check_writable(arguments.json);
  const LaunchWorker launch = launcher(arguments, base, head, seed);
  const auto both = introduce(launch);
  if (!both) return say_interrupted();
  DuelSubject subject = duel_subject(*both, arguments.duel.works);
  if (run_same_bytes(base, head)) subject.notes.push_back(same_bytes_note());
  const std::int64_t pairs = most_pairs(arguments.duel.pairs, subject.works.size(), settings);
  print_duel_terms(std::cout, *both, subject, settings, pairs);
  const DuelMeasurement measured =
      measure(arguments, *both, subject, settings, launch, seed, pairs);
  if (measured.stopped) return say_interrupted();
  const DuelVerdict verdict = judge_duel(*both, subject, measured, settings);
  print_duel(std::cout, verdict, isatty(STDOUT_FILENO) ? Style::terminal : Style::plain);
  std::ostringstream json;
  write_duel_json(json, verdict, measured);
  if (!arguments.json.empty()) write_file(arguments.json, json.str());
  return exit_code(verdict.outcome, arguments.undecided);
}

}  // namespace stepgate
