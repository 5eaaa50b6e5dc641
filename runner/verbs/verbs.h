// SPDX-License-Identifier: MIT
// The verbs. Each calls the stations in order and returns the exit code; throws RequestError and
// DeviceError. Verbs themselves compute and format nothing.
#pragma once

#include "verbs/arguments.h"

namespace stepgate {

struct AcceptTask;
struct StepChoice;

using Verb = int (*)(const Arguments&);

int list_scenarios(const Arguments&);
int check_scenarios(const Arguments&);
int mutate_scenarios(const Arguments&);
int print_plans(const Arguments&);
int print_fields(const Arguments&);
int new_scenario(const Arguments&);
int run_scenarios(const Arguments&);
int accept_runs(const Arguments&);
int show_history(const Arguments&);
int show_devices(const Arguments&);
int gate_programs(const Arguments&);
int keep_candidate(const Arguments&);
int compare_files(const Arguments&);
int look_at_kernels(const Arguments&);
int attach_program(const Arguments&);
int read_traces(const Arguments&);
int work_for_gate(const Arguments&);
int serve_job(const Arguments&);
int describe_itself(const Arguments&);

// The steps of a program that arguments choose. Throws RequestError.
StepChoice choice_of(const AttachArguments&);

// The task of a job that prints (line/job.h); line/serve.h has the others.
int accept_one_run(Arguments, const AcceptTask&);

}  // namespace stepgate
