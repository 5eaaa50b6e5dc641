// SPDX-License-Identifier: MIT
// `stepgate keep` decides whether one of many candidates is faster than the last one that was kept:
// first whether a library is the kernel, then its counts, its time, and at last its assertions.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/write_file.h"
#include "base/fnv1a.h"
#include "base/interruption.h"
#include "base/process/run_program.h"
#include "base/random.h"
#include "base/seconds.h"
#include "base/text/units.h"
#include "base/toml/toml_text.h"
#include "compare/gate/compared_workloads.h"
#include "compare/keep/judge_keep.h"
#include "kernels/catalogue.h"
#include "line/planned.h"
#include "line/provenance.h"
#include "line/ranks/rank_team.h"
#include "plugin/kept_check.h"
#include "plugin/tables/kernel_file.h"
#include "report/exit_code.h"
#include "report/json/write_keep_json.h"
#include "report/text/table.h"
#include "verbs/compare/gate_parts.h"
#include "verbs/compare/head_assertions.h"
#include "verbs/compare/introduce_both.h"
#include "verbs/compare/workers.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// A scenario's own run decides its exact assertions in this time, and clear comparisons.
constexpr const char* seconds_of_a_scenario = "1";

// A program, or the file of a kernel and a function of it.
struct KeptSide {
  std::filesystem::path file;
  std::string function = {};   // empty: that of the kernel's name
  std::int64_t workspace = 0;  // bytes that it may use

  std::string in_words() const {
    return function.empty() ? file.string() : file.string() + ':' + function;
  }
  std::string identity() const {
    const std::string digest =
        is_table(file) ? digest_of_files(file) : hexadecimal(digest_of_this_program(file));
    return function.empty() ? digest : digest + ':' + function;
  }
};

// Returns where the file lies, as seen from the folder of the library or the table that names it;
// empty for an absolute path.
std::filesystem::path seen_from(const std::filesystem::path& named, const KeptSide& side) {
  return named.lexically_relative(side.file.parent_path());
}

// A kept candidate is copied with the files that its table names.
void refuse_files_elsewhere(const KeptSide& side) {
  for (const std::filesystem::path& file : files_of_kernel(side.file)) {
    const std::string place = seen_from(file, side).string();
    if (!place.empty() && !place.starts_with("..")) continue;
    throw RequestError(fmt::format("'{}' names '{}', which does not lie beside it",
                                   side.file.string(), file.string()),
                       "put it into the table's folder");
  }
}

// `kernel` is what a library stands for; empty: the side is a program.
KeptSide side_of(const std::string& option, const std::string& given, const std::string& kernel) {
  if (kernel.empty()) {
    check_program(option, given);
    return {program_path(given)};
  }
  KeptSide side{given};
  const std::size_t colon = given.rfind(':');
  if (!std::filesystem::is_regular_file(side.file) && colon != std::string::npos)
    side = {given.substr(0, colon), given.substr(colon + 1)};
  if (side.function == kernel) side.function = "";  // as it is where none is named
  if (!std::filesystem::is_regular_file(side.file))
    throw RequestError(fmt::format("{} '{}' is no library", option, given),
                       "with --kernel, give the path of a shared library, or of the table of a "
                       "launch (docs/kernels.md)");
  refuse_files_elsewhere(side);
  return side;
}

std::int64_t workspace_of(const KeepArguments& given) {
  const BytesOrProblem bytes = parse_bytes(given.workspace);
  const auto* size = std::get_if<std::int64_t>(&bytes);
  if (size == nullptr)
    throw RequestError(
        fmt::format("--workspace '{}' {}", given.workspace, std::get<std::string>(bytes)),
        "say how much memory the library may use, as in \"4 MiB\"");
  if (*size > 0 && given.kernel.empty())
    throw RequestError("--workspace is for a library", "name its kernel with --kernel");
  return *size;
}

double gain_of(const std::string& text) {
  const auto gain = parse_quantity(text);
  if (gain && gain->value != 0 && !text.ends_with('%'))
    throw RequestError(fmt::format("--gain '{}' is no share in percent", text),
                       fmt::format("did you mean '{}%'?", text));
  if (gain && gain->dimension == Dimension::plain && gain->value < 1) return gain->value;
  throw RequestError(fmt::format("--gain '{}' is no share from 0% to less than 100%", text),
                     "say how much faster HEAD must be, as in 0.5%");
}

// The kept candidate's bytes as a side.
KeptSide kept_side(const std::filesystem::path& ledger, const Candidate& kept) {
  KeptSide side{.file = kept_file(ledger, kept), .workspace = kept.subject.workspace};
  if (const std::size_t colon = kept.subject.head.find(':'); colon != std::string::npos)
    side.function = kept.subject.head.substr(colon + 1);
  if (!std::filesystem::is_regular_file(side.file) || side.identity() != kept.subject.head)
    throw RequestError(
        {{side.file.generic_string(), 0, 0},
         fmt::format("is not candidate {} any more, which the ledger kept", kept.number),
         "restore it, or give --base"});
  return side;
}

// nullopt: stepgate's own kernel.
std::optional<KeptSide> base_of(const Arguments& arguments, std::span<const Candidate> all) {
  const KeepArguments& given = arguments.keep;
  const bool is_library = !given.kernel.empty();
  if (!arguments.gate.base.empty()) {
    KeptSide side = side_of("--base", arguments.gate.base, given.kernel);
    side.workspace = workspace_of(given);  // so that it may need as much as HEAD
    return side;
  }
  if (const Candidate* kept = last_kept(all, given.kernel)) return kept_side(given.ledger, *kept);
  if (is_library) return std::nullopt;
  throw RequestError("there is nothing to compare HEAD with: the ledger has kept no program yet",
                     "give --base PROGRAM");
}

class Keep {
 public:
  explicit Keep(const Arguments& arguments)
      : gain_(gain_of(arguments.keep.gain)),
        head_(side_of("--head", arguments.gate.head, arguments.keep.kernel)),
        request_{.arguments = arguments, .seed = seed_of(arguments)},
        turn_((check_writable(arguments.keep.ledger), arguments.keep.ledger)) {
    subject_.kernel = arguments.keep.kernel;
    subject_.head = head_.identity();
    subject_.workspace = head_.workspace = workspace_of(arguments.keep);
  }

  int decide() {
    const Candidate* kept = last_kept(turn_.all(), subject_.kernel);
    // Without a BASE that is given, it would be compared with itself.
    if (arguments().gate.base.empty() && kept != nullptr && kept->subject.head == subject_.head)
      return answer_again(*kept);
    prepare();
    IntroducedBoth introduced = introduce_both(request_);
    if (interrupted) return say_interrupted("HEAD is not decided");
    // Throws where nothing can be compared, before that costs a number.
    (void)refusal_in(introduced.findings);
    if (introduced.both) workloads_ = workloads_to_time(*introduced.both);
    begin(introduced);
    if (is_decided(candidate_)) return answer_again(candidate_);
    candidate_.verdict = verdict(introduced);
    if (interrupted) return say_interrupted("HEAD is not decided");
    if (head_.identity() != subject_.head)
      throw RequestError(fmt::format("'{}' changed while it was tested", head_.in_words()),
                         "build each candidate into a file of its own");
    if (candidate_.is_kept()) copy_kept();
    if (is_decided(candidate_)) candidate_.pairs = {};  // nothing goes on from them
    turn_.write(candidate_);
    return answer(candidate_);
  }

 private:
  const Arguments& arguments() const { return request_.arguments; }
  bool is_library() const { return !subject_.kernel.empty(); }

  std::string knob_of(const KeptSide& side) const {
    return fmt::format("kernels.{}={{library={}, function={}, workspace=\"{} B\"}}",
                       subject_.kernel, toml_string(side.file.string()),
                       toml_string(side.function.empty() ? subject_.kernel : side.function),
                       side.workspace);
  }

  // Makes the request of a gate: two programs, or this one with a library in either side.
  void prepare() {
    const std::optional<KeptSide> base = base_of(arguments(), turn_.all());
    subject_.base = base ? base->identity() : "";
    GateArguments& gate = request_.arguments.gate;
    gate.only = {GatePart::counts, GatePart::time};
    if (is_library()) {
      gate.base = gate.head = path_of_this_program().string();
      gate.head_overrides = {knob_of(head_)};
      if (base) gate.base_overrides = {knob_of(*base)};
      more_workspace_ = head_.workspace - (base ? base->workspace : 0);
    } else {
      gate.base = base->file.string();
    }
    check_device_name(arguments().device);
    if (arguments().device.spec == "reference")
      throw RequestError("the host reference has no notion of time",
                         "name a GPU or a simulated device");
    (void)look_at_scenarios(request_);
    request_.settings.wider.clear();
    if (is_library()) refuse_wrong_libraries_of(request_);
    if (subject_.base == subject_.head)
      throw RequestError("HEAD is BASE, byte for byte: was it built?",
                         "give the file of a candidate, or another --base");
  }

  // Throws RequestError where the file has no such kernel.
  KernelFile read_side(const KeptSide& side) const {
    return read_kernel(side.file, side.function.empty() ? subject_.kernel : side.function,
                       kernel(subject_.kernel));
  }

  // Digests what is asked, with the values that BASE has calibrated.
  std::string digest_of_steps() const {
    std::uint64_t digest = fnv1a_word(std::bit_cast<std::uint64_t>(gain_), fnv1a(""));
    for (const Scenario& scenario : request_.scenarios)
      digest = fnv1a_word(scenario.fingerprint, digest);
    std::vector<std::string> workloads = workloads_of(request_.scenarios);
    std::erase_if(workloads, [this](const std::string& workload) {
      return !is_wanted(arguments().gate.workloads, workload);
    });
    for (const auto& words : {workloads, arguments().overrides, arguments().worker.calibrated}) {
      for (const std::string& word : words) digest = fnv1a(word + '\n', digest);
    }
    if (is_library()) digest = fnv1a_word(digest_of_this_program(), digest);
    if (arguments().ranks.count)
      digest = fnv1a_word(static_cast<std::uint64_t>(*arguments().ranks.count), digest);
    return hexadecimal(digest);
  }

  // Gives the candidate its number before anything of it is known.
  void begin(const IntroducedBoth& introduced) {
    const Hello& base = introduced.both ? introduced.both->base : introduced.base->hello();
    subject_.simulated = base.simulated;
    subject_.steps = digest_of_steps();
    subject_.device = printable(base.device);
    candidate_ = candidate_of(turn_.all(), subject_);
    candidate_.file = head_.file.filename().string();
    candidate_.date = date_of(arguments());
    turn_.write(candidate_);
    request_.settings = settings_of_keep(candidate_, gain_);
  }

  // A failure of HEAD or a count may have had another cause, and is looked at again.
  static bool is_decided(const Candidate& candidate) {
    const KeepVerdict& verdict = candidate.verdict;
    return verdict.outcome != KeepOutcome::undecided &&
           (verdict.ground == KeepGround::time || verdict.ground == KeepGround::assertions);
  }

  KeepVerdict verdict(IntroducedBoth& introduced) try {
    if (auto refused = refusal_in(introduced.findings)) return *refused;
    if (auto refused = refusal_of_check()) return *refused;
    if (auto refused = refusal_in(count(introduced))) return *refused;
    KeepVerdict timed = time();
    if (timed.outcome == KeepOutcome::discard) tell_what_is_faster_alone(timed);
    if (timed.outcome != KeepOutcome::keep) return timed;
    if (more_workspace_.value_or(0) > 0)
      timed.why += fmt::format("; its workspace is {} more", bytes_text(*more_workspace_));
    auto refused = refusal_in(failed_assertions());
    if (!refused) return timed;
    refused->ratio = timed.ratio;
    refused->interval = timed.interval;
    refused->pairs = timed.pairs;
    refused->evidence = timed.evidence;
    return *refused;
  } catch (const NotComparable& error) {
    throw NotGatedError(error.what());
  } catch (const WorkerError& error) {
    return refusal_in(
               std::array{of_gate(FindingKind::time, Severity::failed, "time", error.what())})
        .value();
  } catch (const WaitStopped&) {
    return candidate_.verdict;
  }

  // The function of HEAD's library that stands for the kernel.
  const std::string& function() const {
    return head_.function.empty() ? subject_.kernel : head_.function;
  }

  std::optional<KeptCheck> kept_check_of_head() const {
    return kept_check(head_.file, identity_of(read_side(head_)), subject_.kernel, function());
  }

  void say_check(const KeptCheck& check, std::string_view when) {
    check_ =
        check.faults.empty()
            ? fmt::format("is {} in {} trials{}", check.kernel, check.trials, when)
            : fmt::format("is not {}: {}{}", check.kernel, fmt::join(check.faults, ", "), when);
  }

  // Asks `stepgate kernel check` about these bytes where its verdict is not kept. A simulated
  // device does without one, as nothing that it keeps was measured.
  std::optional<KeepVerdict> refusal_of_check() {
    if (!is_library()) return std::nullopt;
    auto check = kept_check_of_head();
    if (check) {
      say_check(*check, ", as was kept");
    } else {
      const std::string error = check_library();
      check = kept_check_of_head();
      if (!check && !subject_.simulated)
        throw NotGatedError("there is no verdict of `stepgate kernel check` on HEAD: " + error);
      check ? say_check(*check, "") : void(check_ = "none: " + error);
    }
    if (!check || check->faults.empty()) return std::nullopt;
    return KeepVerdict{.outcome = KeepOutcome::discard,
                       .ground = KeepGround::check,
                       .why = "`stepgate kernel check` says that it " + check_};
  }

  // Runs the check in a process of its own, which keeps its verdict. Returns its last error.
  std::string check_library() {
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    line.show("kernel check of HEAD");
    Command command{path_of_this_program().string(), "kernel", "check"};
    if (!is_table(head_.file)) command.insert(command.end(), {"--function", function()});
    for (const auto& file : arguments().files)
      command.insert(command.end(), {"--scenario", file.string()});
    command.insert(command.end(), {"--", head_.file.string(), subject_.kernel});
    ChildRequest child = worker_request(arguments(), std::move(command), ComparisonSide::head);
    child.stall = of_seconds(arguments().gate.run_seconds);
    constexpr OutputLimits most{.line_bytes = std::size_t{1} << 16,
                                .all_bytes = std::size_t{1} << 20};
    const ChildEnd end =
        Child(std::move(child)).run_to_end(most, [](std::string_view) { return std::nullopt; });
    if (!end.wrong.empty()) return "it " + end.wrong;
    if (!end.code) return "it did not end in time";
    const std::string last = last_line_of(end.errors);
    return last.empty() ? fmt::format("it ended with {}", *end.code) : last;
  }

  std::vector<std::string> workloads_to_time(const Introduction& both) const {
    std::vector<std::string> workloads =
        workloads_in_common(both, &Hello::workloads, arguments().gate.workloads);
    if (workloads.empty()) throw NotGatedError("no workload of the scenarios can be timed here");
    return workloads;
  }

  std::vector<Finding> count(IntroducedBoth& introduced) {
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    counted_ =
        count_both(*introduced.base, *introduced.head, workloads_,
                   [&line](const std::string& workload) { line.show("counts of " + workload); });
    std::vector<Finding> findings = findings_of_keep(counted_.pairs, more_workspace_);
    std::ranges::transform(counted_.failures, std::back_inserter(findings), finding_of);
    return findings;
  }

  KeepVerdict time() {
    // The same seed again would draw the same contents again.
    const std::uint64_t seed =
        random_bits(request_.seed, static_cast<std::uint64_t>(pairs_before()));
    const auto both = introduce(pairs_launcher(arguments(), seed));
    if (!both) return candidate_.verdict;
    const auto budget =
        of_seconds(arguments().budget_seconds.value_or(usual_seconds_of_a_candidate));
    ComparisonRequest comparison = comparison_request(
        arguments(), *both, workloads_, request_.settings, pairs_launcher(arguments(), seed), seed,
        std::max(budget - (Clock::now() - start_), std::chrono::nanoseconds(0)), counted_.pairs);
    comparison.undecided = [this, decide = undecided_of_keep(workloads_, request_.settings)](
                               const ComparisonMeasurement& so_far) {
      keep_every_pair(so_far);
      return decide(so_far);
    };
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    comparison.progress = [&](std::int64_t done, std::chrono::nanoseconds spent) {
      line.show("comparison", done, spent);
    };
    const ComparisonMeasurement measured = measure_comparison(comparison);
    if (measured.stopped) return candidate_.verdict;
    return judge_keep(judge_comparison(*both, measured, request_.settings));
  }

  std::int64_t pairs_before() const {
    std::int64_t pairs = 0;
    for (const auto& [workload, contrasts] : candidate_.pairs.contrasts)
      pairs = std::max(pairs, std::ssize(contrasts));
    return pairs;
  }

  // So it counts however this call ends.
  void keep_every_pair(const ComparisonMeasurement& so_far) {
    candidate_.pairs = request_.settings.earlier;
    append(candidate_.pairs, pairs_found_in(so_far));
    turn_.write(candidate_);
  }

  // Says of a discarded candidate whether its kernels are faster in the step that is not. An error
  // here changes no verdict.
  void tell_what_is_faster_alone(KeepVerdict& verdict) try {
    std::array<double, 2> all{};
    for (const ComparisonSide side : both_sides) {
      // Simulated noise differs between the sides, but both use the same processor.
      const std::uint64_t noise = random_bits(request_.seed, static_cast<std::uint64_t>(side));
      const auto worker =
          start_worker(counting_request(request_, side, {"--noise-seed", std::to_string(noise)}));
      (void)worker->hello();
      for (const auto& [kernel, seconds] : worker->count({verdict.work, true}).kernels) {
        if (!is_library() || kernel == subject_.kernel)
          all[static_cast<std::size_t>(side)] += seconds;
      }
      worker->quit();
    }
    const std::string words =
        faster_alone(is_library() ? "the kernel is" : "the kernels are", all[0], all[1], verdict);
    if (!words.empty()) verdict.why = words;
  } catch (const WorkerError&) {
  }

  // An assertion that is no better in BASE's own run is no fault of HEAD.
  std::vector<Finding> failed_assertions() {
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    line.show("HEAD decides its assertions");
    const auto run = [&](ComparisonSide side, const std::vector<std::filesystem::path>& files) {
      const GateArguments& gate = arguments().gate;
      return run_program_on(arguments(), side, side == ComparisonSide::base ? gate.base : gate.head,
                            files, request_.seed, {}, {"--budget", seconds_of_a_scenario});
    };
    const RunOfProgram head = run(ComparisonSide::head, arguments().files);
    if (head.stopped) throw WaitStopped();
    std::vector<Finding> findings = judge_run(head, request_.scenarios);
    const auto open = files_with_open_findings(findings, request_.scenarios);
    if (open.empty()) return findings;
    const RunOfProgram base = run(ComparisonSide::base, open);
    if (base.stopped) throw WaitStopped();
    know_from_base(findings, base);
    return findings;
  }

  void copy_kept() const {
    const std::filesystem::path folder =
        kept_file(arguments().keep.ledger, candidate_).parent_path();
    std::error_code error;
    for (const std::filesystem::path& file : files_of_kernel(head_.file)) {
      const std::filesystem::path to = folder / seen_from(file, head_);
      if (!error) std::filesystem::create_directories(to.parent_path(), error);
      if (!error)
        std::filesystem::copy_file(file, to, std::filesystem::copy_options::overwrite_existing,
                                   error);
    }
    if (error)
      throw RequestError({{folder.generic_string(), 0, 0},
                          "cannot be written: " + error.message(),
                          "a kept candidate is copied there; make room, and ask again"});
  }

  // Answers what the ledger has decided.
  int answer_again(const Candidate& candidate) {
    if (is_library()) {
      const auto check = kept_check_of_head();
      check ? say_check(*check, ", as was kept") : void(check_ = "none is kept");
    }
    return answer(candidate);
  }

  int answer(const Candidate& candidate) {
    write_keep_json(std::cout, {.candidate = candidate,
                                .budget_left = budget_left(turn_.all()),
                                .seconds = seconds(Clock::now() - start_),
                                .check = check_});
    switch (candidate.verdict.outcome) {
      case KeepOutcome::keep:
        return status_of(ExitCode::passes);
      case KeepOutcome::discard:
        return status_of(ExitCode::fails);
      case KeepOutcome::undecided:
        break;
    }
    return status_of(ExitCode::undecided);
  }

  double gain_;
  KeptSide head_;
  GateRequest request_;
  CandidateTurn turn_;
  Clock::time_point start_ = Clock::now();  // other calls may have had their turn before
  CandidateSubject subject_;
  std::vector<std::string> workloads_;
  Candidate candidate_;
  CountedBoth counted_;
  std::optional<std::int64_t> more_workspace_;  // of HEAD's library than of BASE's
  std::string check_;                           // of a library, in words
};

}  // namespace

int keep_candidate(const Arguments& arguments) {
  if (arguments.gate.head.empty())
    throw RequestError("there is no candidate", "give --head PROGRAM, or a library with --kernel");
  if (arguments.keep.ledger.empty())
    throw RequestError("there is no ledger, so there is no error rate", "give --ledger FILE");
  refuse_launcher("`keep` starts the ranks of both sides itself");
  stop_when_interrupted();
  std::vector<std::filesystem::path> inputs{arguments.gate.head, arguments.gate.base};
  check_outputs(arguments, inputs);
  return Keep(arguments).decide();
}

}  // namespace stepgate
