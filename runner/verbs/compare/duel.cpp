// SPDX-License-Identifier: MIT
// `stepgate duel`: two programs, launch against launch.
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "duel/gate/judge_duel.h"
#include "report/text/print_duel.h"
#include "report/text/progress_line.h"
#include "support/files/write_file.h"
#include "support/interruption.h"
#include "verbs/compare/workers.h"
#include "verbs/outputs.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// A stepgate becomes a worker on the scenarios; a command line is one already.
Command worker_command(const Arguments& arguments, const std::string& given) {
  return arguments.duel.commands ? split_command_line(given)
                                 : program_command(arguments, given, "worker");
}

// A stepgate that was not told where to run and simulates had no GPU; one of before does not say
// so.
void note_stand_ins(Introduction& both, const Arguments& arguments) {
  if (!arguments.duel.commands && arguments.device.spec.empty()) {
    for (Hello* hello : {&both.base, &both.head}) hello->stand_in = hello->simulated;
  }
  if (!gates(both)) check_device(arguments.device);
}

}  // namespace

int duel_programs(const Arguments& arguments) {
  stop_when_interrupted();
  const DuelSettings settings{.margin = margin_of(arguments.duel.margin)};
  const std::uint64_t seed = seed_of(arguments);
  const Command base = worker_command(arguments, arguments.duel.base);
  const Command head = worker_command(arguments, arguments.duel.head);
  std::vector<std::filesystem::path> inputs(base.begin(), base.end());
  inputs.insert(inputs.end(), head.begin(), head.end());
  check_outputs(arguments, inputs);
  const LaunchWorker launch =
      worker_launcher(arguments, base, head,
                      arguments.duel.commands ? LaunchSeeds::none : LaunchSeeds::of_launches, seed);
  auto both = introduce(launch);
  if (!both) return say_interrupted("the duel is not decided");
  note_stand_ins(*both, arguments);
  DuelSubject subject = duel_subject(*both, arguments.duel.works);
  if (run_same_bytes(base, head)) subject.notes.push_back(same_bytes_note());
  const std::int64_t pairs = most_pairs(arguments.duel.pairs, subject.works.size(), settings);
  print_duel_terms(std::cout, *both, subject, settings, pairs);
  ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
  DuelRequest request = duel_request(arguments, *both, subject, settings, launch, seed, pairs);
  request.progress = [&](std::int64_t done, std::chrono::nanoseconds spent) {
    line.show("duel", done, spent);
  };
  const DuelMeasurement measured = measure_duel(request);
  line.clear();
  if (measured.stopped) return say_interrupted("the duel is not decided");
  const DuelVerdict verdict = judge_duel(*both, subject, measured, settings);
  print_duel(std::cout, verdict, style_of(descriptor_of_text()));
  std::ostringstream json;
  write_duel_json(json, verdict, measured);
  if (!arguments.json.empty()) write_file(arguments.json, json.str());
  const ExitCode code = exit_code(verdict.outcome, arguments.undecided);
  return status_of(gates(*both) ? code : gravest(code, ExitCode::not_gated));
}

}  // namespace stepgate
