// SPDX-License-Identifier: MIT
// `stepgate serve`: reads a job of line/job.h and carries it out.
#include <iostream>
#include <string>

#include "line/job.h"
#include "line/serve.h"
#include "verbs/verbs.h"

namespace stepgate {

int serve_job(const Arguments&) {
  std::string line;
  std::getline(std::cin, line);
  const Job job = read_job(line);
  Arguments arguments;
  static_cast<LineArguments&>(arguments) = arguments_of(job);
  if (const auto* rank = std::get_if<RankTask>(&job.task)) return serve_as_rank(arguments, *rank);
  if (const auto* run = std::get_if<AcceptTask>(&job.task)) return accept_one_run(arguments, *run);
  return trace_for_run(arguments);
}

}  // namespace stepgate
