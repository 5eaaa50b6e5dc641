// SPDX-License-Identifier: MIT
#include "verbs/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/process/command.h"
#include "base/text/diagnostic.h"
#include "base/text/nearest.h"
#include "base/text/units.h"
#include "compare/gate/gate_timing.h"
#include "compare/gate/judge_comparison.h"
#include "device/baselines.h"
#include "program/count_steps.h"
#include "report/exit_code.h"
#include "scenario/scenario.h"
#include "verbs/starters.h"
#include "verbs/version.h"

namespace stepgate {
namespace {

UndecidedPolicy undecided_policy(const std::string& name) {
  const auto policies = undecided_policies();
  const auto found = policies.find(name);
  if (found != policies.end()) return found->second;
  throw RequestError("there is no --undecided '" + name + "'", "say skip, fail or pass");
}

Annotations annotation_choice(const std::string& name) {
  const auto choices = annotation_choices();
  const auto found = choices.find(name);
  if (found != choices.end()) return found->second;
  throw RequestError("there is no --annotations '" + name + "'", "say github or none");
}

GatePart gate_part(const std::string& name) {
  for (const GatePart part : gate_parts) {
    if (name == name_of(part)) return part;
  }
  throw RequestError("a gate has no part '" + name + "'", "say counts, time or assertions");
}

// GitHub's runner sets this variable for every step.
bool is_github_workflow() {
  const char* set = std::getenv("GITHUB_ACTIONS");
  return set != nullptr && std::string_view(set) == "true";
}

// Validators return what is wrong with a text; nothing when it is right. CLI11 itself would take
// -1 for the largest seed, and 010 for 8.
std::string is_seconds(const std::string& text) {
  constexpr double least = 0.001, most = 1e7;
  const auto seconds = parse_number(text);
  return seconds && *seconds >= least && *seconds <= most
             ? ""
             : fmt::format("must be a number of seconds from {} to {:.0f}, not '{}'", least, most,
                           text);
}

// Takes the unit from a time such as "60s".
std::string without_seconds(const std::string& text) {
  const auto quantity = parse_quantity(text);
  return quantity && quantity->dimension == Dimension::seconds ? fmt::format("{}", quantity->value)
                                                               : text;
}

CLI::Validator is_whole(std::uint64_t least, std::uint64_t most, std::string in_help) {
  return {[=](const std::string& text) -> std::string {
            const auto number = parse_whole_number(text);
            if (number && *number >= least && *number <= most) return "";
            return fmt::format("must be a whole number from {} to {}, not '{}'", least, most, text);
          },
          std::move(in_help)};
}

CLI::Validator is_whole(std::uint64_t least, std::uint64_t most) {
  return is_whole(least, most, fmt::format("{} to {}", least, most));
}

// Reports have seeds in both forms.
CLI::Validator is_seed() {
  return {[](const std::string& text) -> std::string {
            constexpr std::size_t most_digits = 16;
            const std::string_view digits =
                std::string_view(text).substr(std::min<std::size_t>(2, text.size()));
            const bool is_hexadecimal =
                text.starts_with("0x") && !digits.empty() && digits.size() <= most_digits &&
                digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
            if (is_hexadecimal || parse_whole_number(text)) return "";
            return fmt::format(
                "must be a whole number from 0 to {}, or 0x and at most {} digits, not '{}'",
                std::numeric_limits<std::uint64_t>::max(), most_digits, text);
          },
          ""};
}

// Rejects an empty name: a job's variable for the folder may be unset, and the run must not
// silently go without a ledger.
std::string is_folder_name(const std::string& text) {
  return text.empty() ? "is empty; name a folder, or leave the option out" : "";
}

std::string is_file_name(const std::string& text) {
  return text.empty() ? "is empty; name a file" : "";
}

std::string is_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  return equals == 0 || equals == std::string::npos ? "must be NAME=VALUE, not '" + text + "'" : "";
}

// Says in --help, the manual page and completions what holds where the option is left out. The
// value is made of the constant that the code uses.
template <class Value>
CLI::Option* defaults_to(CLI::Option* option, const Value& value) {
  return option->description(fmt::format("{} [default: {}]", option->get_description(), value));
}

// Names the value of a file with its place, and the built-in one where no file has one.
std::string otherwise(const std::optional<RepositorySetting>& setting,
                      const std::string& built_in) {
  return setting ? fmt::format("{} by {}", setting->value, source_in_words(*setting)) : built_in;
}

template <class Choices, class Value>
std::string name_among(const Choices& choices, Value value) {
  return std::ranges::find(choices, value, &Choices::value_type::second)->first;
}

std::string is_text(const std::string& text) {
  return text.find_first_not_of(" \t") == std::string::npos ? "must say why" : "";
}

// Has one function for each verb, and the options that several verbs share.
class CommandLine {
 public:
  CommandLine(CLI::App& app, Arguments& arguments, Verb& chosen, const RepositorySettings& settings)
      : app_(app), arguments_(arguments), chosen_(chosen), settings_(settings) {}

  void declare() {
    app_.name("stepgate");
    app_.description(
        "stepgate: did this change make the training step slower, and by what mechanism?");
    app_.require_subcommand(0, 1);  // main refuses a missing verb with a better message
    app_.set_version_flag("--version", version_text());
    declare_looking();
    declare_new();
    declare_devices();
    declare_run();
    declare_serve();
    declare_describe();
    declare_worker();
    declare_accept();
    declare_history();
    declare_gate();
    declare_keep();
    declare_attach();
    declare_read();
    declare_compare();
    declare_kernel();
    defaults_to(
        app_.add_option("--baselines", arguments_.device.baselines.users,
                        "folder of stored runs and of device profiles, which win over those that "
                        "are installed with this program; before the verb or behind it"),
        fmt::format("${}, else {}", baselines_variable,
                    otherwise(settings_.baselines, std::string(default_baselines_folder))));
    for (CLI::App* verb : app_.get_subcommands([](CLI::App*) { return true; })) verb->fallthrough();
  }

 private:
  CLI::App* verb(const char* name, const char* what, Verb function) {
    CLI::App* added = app_.add_subcommand(name, what);
    added->callback([&chosen = chosen_, function] { chosen = function; });
    return added;
  }

  CLI::App* takes_files(CLI::App* added) {
    defaults_to(added->add_option("files", arguments_.files, "scenario files, or folders of them"),
                default_scenarios);
    added
        ->add_option("-k,--match", arguments_.patterns,
                     "only scenarios with this in their names, or whose names match it, as in "
                     "'loader*'; repeatable")
        ->allow_extra_args(false);
    return added;
  }

  CLI::App* takes_scenarios(CLI::App* added) {
    takes_files(added)
        ->add_option("--set", arguments_.overrides, "knob=value, for every variant")
        ->allow_extra_args(false);
    return added;
  }

  void passes_variables(CLI::App* added) {
    added
        ->add_option("--pass-env", arguments_.gate.passed_variables,
                     "a variable of the environment that both programs see besides those that "
                     "ci/WORKER.md lists; 'DATA_*' is all that begin so; repeatable")
        ->allow_extra_args(false);
  }

  void takes_environments(CLI::App* added) {
    GateArguments& gate = arguments_.gate;
    for (const auto& [option, variables, side] :
         {std::tuple{"--base-env", &gate.base_variables, "BASE"},
          std::tuple{"--head-env", &gate.head_variables, "HEAD"}}) {
      added
          ->add_option(option, *variables,
                       fmt::format("NAME=VALUE that {} alone sees, to compare two environments of "
                                   "one program (docs/ci.md); repeatable",
                                   side))
          ->allow_extra_args(false)
          ->check(is_assignment);
    }
  }

  void takes_tags(CLI::App* added) {
    added
        ->add_option("--tag", arguments_.tags,
                     "only scenarios that have this tag; of several, any of them")
        ->allow_extra_args(false);
    added->add_option("--exclude-tag", arguments_.excluded_tags, "no scenarios that have this tag")
        ->allow_extra_args(false);
  }

  CLI::App* takes_device(CLI::App* added) {
    defaults_to(added->add_option("--device", arguments_.device.spec,
                                  "`stepgate devices` lists what there is"),
                otherwise(settings_.device, "the first GPU"))
        ->type_name("cuda[:index]|simulated[:profile]|reference");
    added
        ->add_option("--seed", arguments_.seed,
                     "of contents, orders and simulated noise; random when left out")
        ->check(is_seed());
    return added;
  }

  void takes_rank_count(CLI::App* added) {
    added
        ->add_option("--ranks", arguments_.ranks.count,
                     "processes to start, a rank and a GPU each; if left out, as many as "
                     "scenarios with [ranks] need of the GPUs that there are. Under torchrun, srun "
                     "or mpirun the launcher says how many (docs/ranks.md)")
        ->check(is_whole(1, most_ranks));
  }

  void takes_ranks(CLI::App* added) {
    takes_rank_count(added);
    takes_stall(added);
    added->add_option("--rank-fault", arguments_.ranks.fault)->group("");
  }

  void takes_stall(CLI::App* added) {
    added
        ->add_option("--stall-seconds", arguments_.stall_seconds,
                     "seconds within which a process that is started for this, a worker or a "
                     "rank, must answer")
        ->check(is_seconds);
    defaults_to(added->get_option("--stall-seconds"), usual_stall_seconds);
  }

  void takes_budget(CLI::App* added, const char* what, const std::string& otherwise) {
    defaults_to(added->add_option("--budget", arguments_.budget_seconds, what), otherwise)
        ->transform(without_seconds)
        ->check(is_seconds);
  }

  void takes_budget_of_scenarios(CLI::App* added) {
    takes_budget(added, "seconds a scenario may take",
                 fmt::format("its measure.max_seconds, {} where nothing asks for more",
                             MeasureKnobs{}.max_seconds));
  }

  void gives_verdict(CLI::App* added, const char* json) {
    added->add_option("--json", arguments_.json, json);
    CLI::Option* undecided = added->add_option_function<std::string>(
        "--undecided",
        [&arguments = arguments_](const std::string& name) {
          arguments.undecided = undecided_policy(name);
        },
        "what an undecided verdict is");
    defaults_to(undecided, otherwise(settings_.undecided,
                                     name_among(undecided_policies(), arguments_.undecided)))
        ->type_name("skip|fail|pass");
  }

  void reports_to_ci(CLI::App* added) {
    added->add_option("--junit", arguments_.junit,
                      "write a test case for every assertion to this file, as JUnit XML");
    added->add_option("--summary", arguments_.summary,
                      "write what did not pass, and why, to this file, as Markdown; also added to "
                      "$GITHUB_STEP_SUMMARY where that is set");
    added->add_option(
        "--report", arguments_.report,
        "write one page for people to this file, as HTML that loads nothing: what did "
        "not hold first, with its numbers, timelines and memory");
    added->preparse_callback([&arguments = arguments_](std::size_t) {
      const char* page = std::getenv(step_summary_variable);
      if (page != nullptr) arguments.step_summary = page;
    });
    CLI::Option* annotations = added->add_option_function<std::string>(
        "--annotations",
        [&arguments = arguments_](const std::string& name) {
          arguments.annotations = annotation_choice(name);
        },
        "github: print workflow commands that mark the lines of assertions that do not pass");
    defaults_to(annotations, fmt::format("{}, github where GITHUB_ACTIONS is true",
                                         name_among(annotation_choices(), Annotations::none)))
        ->type_name("github|none");
    if (is_github_workflow()) arguments_.annotations = Annotations::github;
  }

  void declare_looking() {
    takes_files(verb("list", "the scenarios, their claims and variants", list_scenarios))
        ->add_flag("--json", arguments_.as_json,
                   "one JSON object a file: its name, tags and lines, also of files with faults");
    takes_scenarios(
        verb("check", "read and plan, report every fault, run nothing", check_scenarios))
        ->add_flag(
            "--strict", arguments_.strict,
            "refuse what no machine could refute: overrides that no assertion needs, "
            "assertions that cannot fail, variants that are the same; on a simulated device");
    takes_tags(takes_device(takes_scenarios(
        verb("mutate", "would the scenarios notice? each override of a variant removed in turn",
             mutate_scenarios))));
    CLI::App* plan =
        takes_scenarios(verb("plan", "the step that a scenario describes", print_plans));
    plan->add_option("--variant", arguments_.variant, "only this one");
    CLI::Option* memory = plan->add_flag("--memory", arguments_.memory,
                                         "the device memory of the step instead: what is live over "
                                         "its operations, what it needs, what an arena takes");
    plan->add_option("--picture", arguments_.picture, "draw that memory into this SVG")
        ->needs(memory);
    plan->add_option("--json", arguments_.json,
                     "write what the step's allocator does to this file, one JSON object a variant")
        ->needs(memory);
    verb("fields", "every knob that a scenario may set", print_fields)
        ->add_option("filter", arguments_.filter, "part of a name");
  }

  void declare_new() {
    CLI::App* added = verb("new", "write a scenario to begin with, with comments", new_scenario);
    added->add_option("file", arguments_.starter.file, "the *.toml to write; - is standard output");
    std::string words;
    for (const Starter& starter : starters())
      words += (words.empty() ? "" : "|") + std::string(starter.word);
    added->add_option("--like", arguments_.starter.like, "what it is about")->type_name(words);
  }

  void declare_devices() {
    CLI::App* devices = verb("devices", "the devices that `run --device` may name", show_devices);
    CLI::Option* measure = devices->add_option(
        "--measure", arguments_.profile,
        "measure the local GPU's profile into this file, and of several GPUs their collectives");
    devices->add_option("--date", arguments_.date,
                        "the date to write into the profile; none when left out");
    // Both options are for tests with a simulated machine, whose profile is known.
    devices->add_option("--device", arguments_.device.spec)->needs(measure)->group("");
    devices->add_option("--seed", arguments_.seed)->check(is_seed())->needs(measure)->group("");
  }

  void declare_run() {
    CLI::App* run = verb("run", "measure and decide every assertion", run_scenarios);
    takes_tags(takes_device(takes_scenarios(run)));
    run->add_flag("-v,--verbose", arguments_.verbose,
                  "the full story of what passes too, and what each scenario will cost");
    run->add_flag("-x,--fail-fast", arguments_.fail_fast,
                  "decide no further scenario once one fails; the others are not run");
    takes_ranks(run);
    run->add_option("--rendezvous", arguments_.ranks.rendezvous,
                    "the file in which a launcher's ranks of several hosts find rank 0, which all "
                    "must see; if left out, they meet in a folder of this user on one host");
    takes_budget_of_scenarios(run);
    gives_verdict(run, "write verdicts and measurements to this file, one JSON object a line");
    reports_to_ci(run);
    CLI::Option* trace = run->add_option(
        "--trace", arguments_.trace,
        "write the traced steps of every variant to FILE.<scenario>.<variant>.json, which Perfetto "
        "and chrome://tracing open");
    CLI::Option* picture = run->add_option("--picture", arguments_.picture,
                                           "draw the variants' steady steps into this SVG");
    CLI::Option* untraced = run->add_flag_callback(
        "--no-trace", [&arguments = arguments_] { arguments.tracing = false; },
        "count nothing: exact assertions stay undecided");
    untraced->excludes(trace)->excludes(picture);
    CLI::Option* ledger = run->add_option("--ledger", arguments_.ledger,
                                          "go on from what earlier runs of the same subject kept "
                                          "in this folder, and keep what this one finds")
                              ->check(is_folder_name);
    run->add_option("--subject", arguments_.subject,
                    "what is under test, such as a commit; this build when left out")
        ->needs(ledger);
  }

  // This verb is hidden, since only other verbs start it.
  void declare_serve() {
    verb("serve", "do the job that another process of this program asks for on standard input",
         serve_job)
        ->group("");
  }

  // This verb is hidden, since a build calls it and installs what it prints.
  void declare_describe() {
    CLI::App* added =
        verb("describe", "print this command line for a reader or a shell", describe_itself);
    added->group("");
    added->add_option("form", arguments_.filter)->type_name("man|bash|zsh|fish")->required();
  }

  void declare_worker() {
    CLI::App* worker = verb("worker", "run steps as a gate asks on standard input", work_for_gate);
    takes_ranks(takes_device(takes_scenarios(worker)));
    WorkerArguments& given = arguments_.worker;
    CLI::Option* program =
        worker->add_option("--program", given.program,
                           "the scenario of your own program, to count and time that instead");
    worker->add_option("--cwd", given.folder, "the folder in which that program runs")
        ->needs(program);
    program->excludes(worker->get_option("files"));
    worker->add_flag("--counts", given.counts)->group("");
    worker->add_option("--calibrated", given.calibrated)->group("")->allow_extra_args(false);
    worker->add_option("--noise-seed", arguments_.noise)->check(is_seed())->group("");
    worker->add_option("--injected", arguments_.injected)->group("")->allow_extra_args(false);
  }

  void declare_gate() {
    constexpr int most_gates = 1'000'000;
    CLI::App* gate = verb(
        "gate", "may HEAD be merged? what its steps consist of, their time and their assertions",
        gate_programs);
    GateArguments& given = arguments_.gate;
    CLI::Option* base = gate->add_option(
        "--base", given.base, "the stepgate of before, or the folder of before of a --program");
    gate->add_option("--base-command", given.base_command,
                     "a whole command line of a worker instead of --base (ci/WORKER.md)");
    gate->add_flag("--stored", given.stored,
                   "compare with the runs that `accept` stored, instead of a BASE")
        ->excludes(base);
    gate->add_flag(
            "--soak", given.soak,
            "run every workload for 6,000 steps or 20 s instead: does it become slower than at "
            "its beginning?")
        ->excludes(base);
    CLI::Option* self_test = gate->add_flag(
        "--self-test", given.self_test,
        "what does the gate say where the answer is known? BASE (this program if left out) against "
        "itself, and against itself slower or faster by what is injected: the rates, and no file");
    CLI::Option* gates =
        gate->add_option("--gates", given.gates, "of --self-test: so many of identical programs");
    defaults_to(gates, given.gates)->needs(self_test)->check(is_whole(1, most_gates));
    CLI::Option* trial_gates = gate->add_option(
        "--trial-gates", given.trial_gates, "of --self-test: so many of every injected difference");
    defaults_to(trial_gates, given.trial_gates)->needs(self_test)->check(is_whole(1, most_gates));
    gate->add_option("--head", given.head, "the stepgate or folder that would be merged");
    gate->add_option("--head-files", given.head_files,
                     "HEAD's scenarios, where they are not the same files as BASE's")
        ->allow_extra_args(false);
    gate->add_option("--accepted", given.accepted,
                     "what may be slower: who says so, why and until when (docs/gate.md)");
    gate->add_option_function<std::vector<std::string>>(
            "--only",
            [&given](const std::vector<std::string>& names) {
              for (const std::string& name : names) given.only.insert(gate_part(name));
            },
            "compare this alone; repeatable, all three when left out")
        ->type_name("counts|time|assertions")
        ->allow_extra_args(false);
    defaults_to(
        gate->add_option("--margin", given.margin, "how much slower head may be, in percent"),
        otherwise(settings_.margin, given.margin));
    defaults_to(gate->add_option("--pairs", given.pairs, "pairs of launches at most"),
                most_pairs_of_a_gate)
        ->check(is_whole(1, most_gates));
    gate->add_option("--workload", given.workloads,
                     "only workloads that this pattern matches; repeatable")
        ->allow_extra_args(false);
    passes_variables(gate);
    takes_environments(gate);
    gate->add_option("--ledger", arguments_.ledger,
                     "go on from what earlier gates of the same builds kept in this folder")
        ->check(is_folder_name);
    takes_stall(gate);
    CLI::Option* run_seconds =
        gate->add_option("--run-seconds", given.run_seconds,
                         "seconds within which HEAD's own run of its assertions must end");
    defaults_to(run_seconds, given.run_seconds)->check(is_seconds);
    takes_tags(takes_device(takes_scenarios(gate)));
    takes_rank_count(gate);
    takes_budget(gate, "seconds that timing may take",
                 fmt::format("{}, or what the fewest pairs need; {} for each gate of --self-test",
                             most_timing_of_a_gate.count(), most_timing_of_a_tried_gate.count()));
    gate->add_flag("-v,--verbose", arguments_.verbose, "also what is as fast, and what passes");
    gives_verdict(gate, "write what was found to this file, one JSON object a line");
    reports_to_ci(gate);
    for (const char* other : {"--stored", "--soak", "--head", "--head-files", "--accepted",
                              "--only", "--base-command", "--base-env", "--head-env", "--ledger",
                              "--run-seconds", "--json", "--junit", "--summary", "--report"})
      self_test->excludes(gate->get_option(other));
    for (const char* other : {"--stored", "--soak"})
      for (const char* of_comparisons : {"--only", "--budget"})
        gate->get_option(of_comparisons)->excludes(gate->get_option(other));
    takes_commands(gate);
    takes_program(gate);
    takes_kernels(gate);
  }

  void declare_keep() {
    GateArguments& sides = arguments_.gate;
    KeepArguments& given = arguments_.keep;
    CLI::App* keep = verb("keep",
                          "is HEAD so much faster that it is kept? one of many candidates, which "
                          "share one error rate (docs/agents.md)",
                          keep_candidate);
    keep->add_option("--head", sides.head, "the candidate: a stepgate, or a library with --kernel");
    keep->add_option("--base", sides.base,
                     "what it must be faster than; if left out, the last one that the ledger "
                     "kept, and for the first library stepgate's own kernel");
    keep->add_option("--kernel", given.kernel,
                     "the kernel that HEAD and BASE stand in for, which are LIBRARY[:FUNCTION] "
                     "then (docs/kernels.md); they are programs where it is left out");
    defaults_to(keep->add_option("--workspace", given.workspace,
                                 "device memory that a launch of HEAD's library may use, as 4 MiB; "
                                 "the step may take so much more"),
                given.workspace);
    keep->add_option("--ledger", given.ledger,
                     "the file of all candidates; kept ones are copied to FILE.kept")
        ->check(is_file_name);
    defaults_to(keep->add_option("--gain", given.gain,
                                 "how much faster every workload must be, in percent, from 0% up"),
                given.gain);
    keep->add_option("--workload", sides.workloads,
                     "only workloads that this pattern matches; repeatable")
        ->allow_extra_args(false);
    passes_variables(keep);
    takes_stall(keep);
    takes_rank_count(keep);
    takes_tags(takes_device(takes_scenarios(keep)));
    takes_budget(keep, "seconds for counts and times, but at least for five pairs of launches",
                 fmt::format("{}", usual_seconds_of_a_candidate));
  }

  // The steps of a program: how many are counted, and what they are.
  void takes_steps(CLI::App* added, std::int64_t skipped, const std::string& counted,
                   const char* range_words) {
    constexpr std::int64_t most_steps = 100'000;
    AttachArguments& given = arguments_.attach;
    CLI::Option* skip =
        added->add_option("--skip-steps", given.skip_steps, "steps before those that are counted");
    defaults_to(skip, skipped)->check(is_whole(0, most_steps));
    CLI::Option* steps = added->add_option("--steps", given.steps, "steps that are counted");
    defaults_to(steps, counted)->check(is_whole(1, most_steps));
    CLI::Option* range = added->add_option("--step-range", given.step_range, range_words);
    CLI::Option* kernel =
        added->add_option("--step-kernel", given.step_kernel,
                          "the kernel that ends a step, as a regular expression of its name");
    CLI::Option* call = added->add_option("--step-call", given.step_call,
                                          "the CUDA call that ends a step, as cudaGraphLaunch");
    range->excludes(kernel)->excludes(call);
    kernel->excludes(call);
  }

  void declare_read() {
    ReadArguments& given = arguments_.read;
    CLI::App* read =
        verb("read",
             "what does a step of a trace of torch.profiler do, and where does its time go? No GPU",
             read_traces);
    read->add_option("traces", given.traces,
                     "the trace, compressed or not, or - for standard input; then a trace of "
                     "before, or the other ranks of the job")
        ->required();
    read->add_option("--base", given.base,
                     "a trace of before, to compare with; repeatable for the ranks of a job")
        ->allow_extra_args(false);
    read->add_option("--expect", arguments_.attach.expect,
                     "an assertion of the counts, such as \"host_waits_per_step <= 0.1\", or, of "
                     "two traces, \"trace.launches_per_step <= base.launches_per_step\"; "
                     "repeatable")
        ->allow_extra_args(false);
    read->add_option("--as-scenario", given.scenario,
                     "write a scenario to this file whose step does as much as that of the trace, "
                     "for `run`");
    read->add_option("--cap", given.cap,
                     "memory, as \"60 GiB\": would the requests in a snapshot of PyTorch's "
                     "allocator fit into it? If left out: what there was when it was refused");
    takes_steps(read, steps_before_those_of_a_profiler, "all that are recorded",
                "the annotation that begins a step; if left out: those of the profiler's step(), "
                "ends of the optimizer, or 'step'");
    gives_verdict(read, "write counts, times and verdicts to this file, as one JSON object");
    reports_to_ci(read);
  }

  void declare_compare() {
    constexpr int two = 2;
    CLI::App* compare =
        verb("compare", "what differs between two results, `run --json a.json` and b.json? No GPU",
             compare_files);
    compare->add_option("results", arguments_.files, "the result of before, and that of after")
        ->required()
        ->expected(two);
    compare->add_option("--json", arguments_.json,
                        "write every difference to this file, as one JSON object");
  }

  void declare_kernel() {
    KernelArguments& given = arguments_.kernel;
    CLI::App* kernel = verb("kernel", "is a kernel of your own library the one that it stands for?",
                            look_at_kernels);
    kernel
        ->add_option(
            "action", given.action,
            "describe: what a library is told of a kernel, or what a library or a cubin has, "
            "without running it; check: try a library's kernel on the GPU; new: write a library "
            "to begin with")
        ->required()
        ->type_name("describe|check|new");
    kernel->add_option(
        "names", given.names,
        "describe: kernels, libraries and cubins [default: all kernels]; check: the "
        "library, or the table of a launch (docs/kernels.md), and the kernel; new: the "
        "kernel");
    kernel->add_option("--in", given.folder,
                       "new: the folder of its files [default: the current folder]");
    kernel->add_option("--function", given.function,
                       "the library's function [default: that of the kernel's name]");
    kernel
        ->add_option(
            "--scenario", given.scenarios,
            "check the launches of this scenario's steps too [default: those of no scenario]; "
            "repeatable")
        ->allow_extra_args(false);
    kernel->add_option("--json", arguments_.json,
                       "write what was found to this file, as one JSON object");
    kernel->add_option("--seed", arguments_.seed, "of the numbers; random when left out")
        ->check(is_seed());
    kernel->add_option("--place", given.place)->group("");
  }

  void declare_attach() {
    AttachArguments& given = arguments_.attach;
    CLI::App* attach =
        verb("attach",
             "what does a step of your own program do? its waits, copies and launches, counted",
             attach_program);
    attach->add_option("command", given.command, "the program and its arguments")->required();
    // Words behind the program are its own, with or without -- before it.
    attach->positionals_at_end();
    attach
        ->add_option(
            "--expect", given.expect,
            "an assertion of the counts, such as \"host_waits_per_step <= 0.1\"; repeatable")
        ->allow_extra_args(false);
    CLI::Option* accept =
        attach->add_option("--accept", given.accept, "write the counts of this run to this file");
    attach
        ->add_option("--against", given.against,
                     "fail where a step does more than this file accepts")
        ->excludes(accept);
    takes_steps(
        attach, StepChoice{}.skip,
        fmt::format("{}, or the later half of a program with fewer", StepChoice{}.steps),
        "the NVTX range that begins a step; if left out: ends of PyTorch's optimizer, or 'step'");
    attach->add_option("--env", given.variables, "NAME=VALUE that the program sees; repeatable")
        ->allow_extra_args(false)
        ->check(is_assignment);
    attach
        ->add_option("--timeout", given.timeout_seconds,
                     "seconds that the program may take; no limit when left out")
        ->check(is_seconds);
    attach->add_flag("--stop", given.stop, "end the program once its steps are counted");
    attach->add_flag("--quiet", given.quiet,
                     "drop the program's standard output, which otherwise goes to standard error");
    gives_verdict(attach, "write counts and verdicts to this file, as one JSON object");
    reports_to_ci(attach);
  }

  // Scenarios and what else is about them belong into the command lines.
  void takes_commands(CLI::App* gate) {
    GateArguments& given = arguments_.gate;
    CLI::Option* base = gate->get_option("--base-command");
    CLI::Option* head = gate->add_option("--head-command", given.head_command,
                                         "a whole command line of a worker instead of --head");
    base->needs(head);
    head->needs(base);
    for (const char* other :
         {"--base", "--head", "--stored", "--soak", "--head-files", "--ledger", "--run-seconds"})
      base->excludes(gate->get_option(other));
    gate->callback([&arguments = arguments_, &chosen = chosen_] {
      if (arguments.gate.of_commands() &&
          !(arguments.files.empty() && arguments.overrides.empty() && arguments.tags.empty() &&
            arguments.excluded_tags.empty() && arguments.device.spec.empty() &&
            !arguments.ranks.count))
        throw RequestError(
            "with --base-command, scenarios and options belong into the command lines",
            "write them behind each program");
      chosen = gate_programs;
    });
  }

  void takes_kernels(CLI::App* gate) {
    CLI::Option* base =
        gate->add_option("--base-kernels", arguments_.gate.base_kernels,
                         "the library of before, from which all kernels come that variants take "
                         "from a library (docs/kernels.md); both sides run this program");
    CLI::Option* head = gate->add_option("--head-kernels", arguments_.gate.head_kernels,
                                         "the library that would be merged");
    base->needs(head);
    head->needs(base);
    gate->add_option("--source", arguments_.gate.source,
                     "the source of HEAD's kernels, at which reports place what is found about "
                     "them; if left out, at the variant in the scenario")
        ->needs(head);
    for (const char* other : {"--base", "--head", "--base-command", "--head-command", "--program",
                              "--stored", "--soak", "--self-test"})
      base->excludes(gate->get_option(other));
  }

  void takes_program(CLI::App* gate) {
    CLI::Option* program =
        gate->add_option("--program", arguments_.gate.program,
                         "the scenario of your own program: --base and --head are the folders in "
                         "which it runs (docs/gate.md)");
    for (const char* other : {"files", "--base-command", "--head-command", "--stored", "--soak",
                              "--self-test", "--head-files", "--ledger", "--run-seconds",
                              "--device", "--ranks", "--tag", "--exclude-tag", "--match"})
      program->excludes(gate->get_option(other));
  }

  void declare_accept() {
    CLI::App* accept = verb("accept", "measure runs and store them as a baseline", accept_runs);
    takes_device(takes_scenarios(accept));
    takes_ranks(accept);
    takes_budget_of_scenarios(accept);
    CLI::Option* runs =
        accept->add_option("--runs", arguments_.runs, "how many runs of each, one process each");
    defaults_to(runs, arguments_.runs)->check(is_whole(1, 1000));
    accept->add_option("--commit", arguments_.commit,
                       "what the runs are of; git's answer when left out");
    accept
        ->add_option("--reset", arguments_.baseline_reset,
                     "why the runs stored so far are not to be compared with these any more, "
                     "after a driver update, say, or a change that is meant")
        ->check(is_text);
  }

  void declare_history() {
    CLI::App* history =
        verb("history", "do the steps creep over the weeks? every stored run, no device needed",
             show_history);
    takes_files(history);
    history
        ->add_option("--ledger", arguments_.ledger,
                     "read the runs that this folder keeps instead of stored ones")
        ->check(is_folder_name);
    history->add_option("--json", arguments_.json,
                        "write every run, trend and change to this file, one JSON object a line");
    history->add_option("--report", arguments_.report,
                        "write one page for people to this file, as HTML that loads nothing: what "
                        "drifts first, with a picture of every variant's runs");
    history->add_option("--plot", arguments_.plot,
                        "draw the runs of the only variant into this SVG, or those of every "
                        "variant into this folder");
  }

  CLI::App& app_;
  Arguments& arguments_;
  Verb& chosen_;
  const RepositorySettings& settings_;
};

const CLI::App* verb_named(const CLI::App& app, std::string_view name) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == name) return verb;
  }
  return nullptr;
}

// Returns the visible verbs; those that other verbs start have no group.
std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Whether the option belongs to a command that shows a run again: none of what it writes, of the
// seed, which it has anyway, and of earlier evidence, to which it would add.
bool shows_again(std::string_view name) {
  for (const std::string_view other :
       {"json", "junit", "summary", "report", "annotations", "trace", "picture", "accept",
        "as-scenario", "seed", "ledger", "subject", "help"}) {
    if (name == other) return false;
  }
  return true;
}

bool chooses_scenarios(std::string_view name) {
  return name == "match" || name == "tag" || name == "exclude-tag";
}

std::string nearest_in_words(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return did_you_mean(word, candidates, "");
}

std::string hint_for_no_verb(const CLI::App& app, std::string_view word) {
  if (word.ends_with(".toml")) return fmt::format("say what to do with it: stepgate run {}", word);
  const std::string near = nearest_in_words(word, verbs_of(app));
  return !near.empty() ? near : fmt::format("'{}' is no verb; `stepgate --help` lists them", word);
}

}  // namespace

std::string suggestion_for(const CLI::App& app, std::span<const std::string_view> typed) {
  const CLI::App* verb = nullptr;
  bool is_value = false;  // of the only option before a verb that has one
  for (std::string_view word : typed) {
    if (std::exchange(is_value, word == "--baselines")) continue;
    if (!word.starts_with('-')) {
      if (verb != nullptr) continue;
      verb = verb_named(app, word);
      if (verb == nullptr) return hint_for_no_verb(app, word);
      continue;
    }
    word = word.substr(0, word.find('='));
    if (!word.starts_with("--") || word == "--") continue;
    std::vector<std::string> names = options_of(app);
    if (verb != nullptr) {
      const std::vector<std::string> own = options_of(*verb);
      names.insert(names.end(), own.begin(), own.end());
    }
    if (std::find(names.begin(), names.end(), word) == names.end())
      return nearest_in_words(word, names);
  }
  return "";
}

CommandOfRun command_of(const CLI::App& app, const Arguments& arguments) {
  const CLI::App& verb = *app.get_subcommands().front();
  CommandOfRun command{.options = {verb.get_name()}, .choice = {}};
  if (arguments.device.baselines.users != default_baselines_folder)
    command.options.insert(command.options.end(),
                           {"--baselines", arguments.device.baselines.users.string()});
  const auto looks_like_option = [](const std::string& word) { return word.starts_with('-'); };
  Command positional;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_lnames().empty()) {
      positional = option->results();
      command.takes_scenarios |= option->get_name(true) == "files";
      continue;
    }
    const std::string& name = option->get_lnames().front();
    command.takes_seed |= name == "seed";
    if (option->count() == 0 || !shows_again(name)) continue;
    Command& words = chooses_scenarios(name) ? command.choice : command.options;
    if (option->get_items_expected_max() == 0) {
      words.push_back("--" + name);
      continue;
    }
    for (const std::string& value : option->results()) {
      // A value that begins with a hyphen would be taken for an option.
      if (looks_like_option(value)) {
        words.push_back("--" + name + "=" + value);
      } else {
        words.insert(words.end(), {"--" + name, value});
      }
    }
  }
  if (std::ranges::any_of(positional, looks_like_option)) command.choice.emplace_back("--");
  std::ranges::copy(positional, std::back_inserter(command.choice));
  return command;
}

void declare_verbs(CLI::App& app, Arguments& arguments, Verb& chosen,
                   const RepositorySettings& settings) {
  CommandLine(app, arguments, chosen, settings).declare();
}

}  // namespace stepgate
