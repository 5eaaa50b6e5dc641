// SPDX-License-Identifier: MIT
// `stepgate gate`: may HEAD be merged? Counts, a duel, HEAD's own sentences, and what became of the
// scenarios, in this order; what is found early does not keep the rest from being looked at.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <sstream>

#include "judge/judge_gate.h"
#include "judge/words.h"
#include "report/print_gate.h"
#include "report/progress_line.h"
#include "report/reported_gate.h"
#include "scenario/read_scenario.h"
#include "support/seconds.h"
#include "support/write_file.h"
#include "verbs/head_sentences.h"
#include "verbs/interruption.h"
#include "verbs/machine_reports.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"
#include "verbs/workers.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// A gate looks at all works of a suite in the time that a duel has for a few: segments of a
// quarter, and one of each side before the first that counts, since the works before it have
// warmed both processes up.
constexpr std::chrono::nanoseconds segment_of_a_gate = std::chrono::milliseconds(5);
constexpr int warm_up_segments_of_a_gate = 1;

class Gate {
 public:
  explicit Gate(const Arguments& arguments)
      : arguments_(arguments),
        seed_(seed_of(arguments)),
        settings_{.margin = margin_of(arguments.duel.margin)},
        subject_{.base = arguments.gate.base,
                 .head = arguments.gate.head,
                 .both = {},
                 .margin = settings_.margin} {}

  int run() {
    check_programs();
    std::vector<Accepted> accepted;
    if (!arguments_.gate.accepted.empty()) accepted = read_accepted(arguments_.gate.accepted);
    if (!arguments_.json.empty()) check_writable(arguments_.json);
    const ReportFiles files(arguments_);
    const RunInfo info = run_info_of(arguments_, scenario_files(arguments_).front(), seed_);
    files.write(gate_that_has_not_ended(info));
    look_at_scenarios();
    const bool comparable = introduce_both();
    print_gate_terms(std::cout, subject_);
    if (comparable) {
      if (!interrupted) count();
      if (!interrupted) time();
      if (!interrupted && arguments_.gate.sentences) ask_head();
    }
    if (interrupted) {
      std::cerr << "interrupted: HEAD is not gated\n";
      return interrupted_exit_code(interrupted);
    }
    for (Finding& finding : findings_) place(finding);
    const GateVerdict verdict = judge_gate(std::move(findings_), accepted, date_of(arguments_));
    print_gate(std::cout, subject_, verdict, style_of(STDOUT_FILENO));
    const ExitCode code = exit_code(verdict, arguments_.undecided);
    if (!arguments_.json.empty()) {
      std::ostringstream json;
      write_gate_json(json, info, subject_, duel_, verdict, code);
      write_file(arguments_.json, json.str());
    }
    GateLooks looks{.counted = {}, .duel = duel_, .sentences = sentences_};
    for (const CountedPair& pair : counted_) looks.counted.push_back(pair.work);
    files.end(reported_gate(info, subject_, looks, verdict, arguments_.undecided));
    return status_of(code);
  }

 private:
  // A program that is not there is a wrong request, and no finding about it.
  void check_programs() const {
    for (const auto& [side, program] :
         {std::pair{"--base", subject_.base}, {"--head", subject_.head}}) {
      if (::access(program_path(program).c_str(), X_OK) == 0) continue;
      throw RequestError(std::string(side) + " '" + program + "' is no program that can be started",
                         "give the path of a built stepgate");
    }
  }

  void add(std::vector<Finding> found) { std::ranges::move(found, std::back_inserter(findings_)); }
  void add(FindingKind kind, Severity severity, const std::string& what, std::string words) {
    findings_.push_back({.kind = kind,
                         .severity = severity,
                         .work = {},
                         .what = what,
                         .base = {},
                         .head = {},
                         .words = std::move(words),
                         .mechanism = {},
                         .place = {},
                         .accepted = {}});
  }

  // Where a work is described, for findings that have no line of their own.
  void place(Finding& finding) const {
    if (!finding.place.file.empty()) return;
    const std::size_t slash = finding.work.find('/');
    const auto scenario = std::ranges::find(base_, finding.work.substr(0, slash), &Scenario::name);
    if (scenario == base_.end()) return;
    finding.place = {scenario->file, 0, 0};
    if (slash == std::string::npos) return;
    const auto variant =
        std::ranges::find(scenario->variants, finding.work.substr(slash + 1), &Variant::name);
    if (variant != scenario->variants.end()) finding.place = variant->place;
  }

  static std::string of_works(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " work" : " works");
  }

  // Before anything is started, so that a file which cannot be read costs nothing.
  void look_at_scenarios() {
    for (const auto& file : scenario_files(arguments_)) base_.push_back(read_scenario(file));
    if (arguments_.gate.head_files.empty()) return;
    Arguments of_head = arguments_;
    of_head.files = arguments_.gate.head_files;
    std::vector<Scenario> head;
    std::map<std::string, std::string> unread;
    for (const auto& file : scenario_files(of_head)) {
      try {
        head.push_back(read_scenario(file));
      } catch (const RequestError& error) {
        unread[file.stem().string()] = error.diagnostics().front().message;
      }
    }
    add(compare_scenarios(base_, head, unread));
  }

  Command worker(const std::string& program, std::vector<std::string> more) const {
    for (const std::string& calibrated : calibrated_)
      more.insert(more.end(), {"--calibrated", calibrated});
    return program_command(arguments_, program, "worker", more);
  }

  // A worker of one side that counts; null, and a finding, where there is none.
  std::unique_ptr<Worker> start_counting(DuelSide side) {
    const std::string& program = side == DuelSide::base ? subject_.base : subject_.head;
    try {
      return start_worker(worker_request(
          arguments_, worker(program, {"--counts", "--seed", std::to_string(seed_)}), side));
    } catch (const WorkerError& error) {
      add(FindingKind::counts, side == DuelSide::base ? Severity::not_gated : Severity::failed,
          "counts",
          side == DuelSide::base
              ? std::string("BASE does not say what its steps consist of; gate against a BASE "
                            "whose `worker` knows --counts: ") +
                    error.what()
              : std::string(error.what()));
      return nullptr;
    }
  }

  // Whether both are there and can be compared at all.
  bool introduce_both() try {
    base_worker_ = start_counting(DuelSide::base);
    if (!base_worker_) return false;
    calibrated_ = base_worker_->hello().calibrated;
    head_worker_ = start_counting(DuelSide::head);
    if (!head_worker_) return false;
    subject_.both = Introduction{base_worker_->hello(), head_worker_->hello()};
    const Hello& base = subject_.both->base;
    const bool asked = arguments_.device.spec.starts_with("simulated");
    if (base.simulated && !asked) {
      check_device(arguments_.device);
      add(FindingKind::time, Severity::not_gated, "device",
          "there is no GPU here: nothing can be gated on a simulated device that nobody asked for; "
          "give --device simulated to see what a gate does");
    }
    if (base.device != head_worker_->hello().device) {
      add(FindingKind::time, Severity::not_gated, "device",
          "BASE runs on " + base.device + " and HEAD on " + head_worker_->hello().device +
              ": not comparable");
      return false;
    }
    add(compare_works(*subject_.both));
    return true;
  } catch (const WaitStopped&) {
    return false;
  }

  std::vector<std::string> works_of_both(const std::vector<std::string> Hello::*list) const {
    std::vector<std::string> works;
    const auto& others = subject_.both->head.*list;
    for (const std::string& work : subject_.both->base.*list) {
      if (std::ranges::find(others, work) != others.end()) works.push_back(work);
    }
    return works;
  }

  void count() try {
    const Clock::time_point start = Clock::now();
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    std::size_t done = 0;
    for (const auto list : {&Hello::works, &Hello::planned}) {
      for (const std::string& work : works_of_both(list)) {
        line.show("counts of " + work);
        counted_.push_back({work, base_worker_->count(work), head_worker_->count(work)});
        std::vector<Finding> found = compare_counts(counted_.back());
        if (std::ranges::any_of(
                found, [](const Finding& finding) { return finding.severity != Severity::note; }))
          differing_.insert(work);
        add(std::move(found));
        ++done;
      }
    }
    base_worker_->quit();
    head_worker_->quit();
    base_worker_.reset();
    head_worker_.reset();
    line.clear();
    print_gate_stage(std::cout, "counts",
                     of_works(done) + ", " + std::to_string(differing_.size()) + " differ",
                     seconds(Clock::now() - start));
  } catch (const WorkerError& error) {
    add(FindingKind::counts, Severity::failed, "counts", error.what());
  } catch (const WaitStopped&) {
  }

  // Those that are known to differ first: time may be short.
  std::vector<std::string> timed_works() const {
    DuelSubject subject = duel_subject(*subject_.both, arguments_.duel.works);
    std::stable_partition(subject.works.begin(), subject.works.end(),
                          [this](const std::string& work) { return differing_.contains(work); });
    return subject.works;
  }

  void time() try {
    // What has been counted with the tracer on is slow for good: these are other processes.
    base_worker_.reset();
    head_worker_.reset();
    if (works_of_both(&Hello::works).empty()) return;
    const Clock::time_point start = Clock::now();
    const LaunchWorker launch =
        worker_launcher(arguments_, worker(subject_.base, {}), worker(subject_.head, {}),
                        LaunchSeeds::of_pairs, seed_);
    const auto both = introduce(launch);
    if (!both) return;
    const DuelSubject subject{.works = timed_works(), .notes = {}};
    const std::int64_t pairs = most_pairs(arguments_.duel.pairs, subject.works.size(), settings_);
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    DuelRequest request = duel_request(arguments_, *both, subject, settings_, launch, seed_, pairs);
    request.segment = segment_of_a_gate;
    request.warm_up_segments = warm_up_segments_of_a_gate;
    request.progress = [&](std::int64_t done, std::chrono::nanoseconds spent) {
      line.show("duel", done, spent);
    };
    const DuelMeasurement measured = measure_duel(request);
    if (measured.stopped) return;
    line.clear();
    duel_ = judge_duel(*both, subject, measured, settings_);
    add(findings_of(*duel_, counted_));
    const auto slower = std::ranges::count(duel_->works, Outcome::refuted, &WorkVerdict::outcome);
    print_gate_stage(std::cout, "duel",
                     of_works(subject.works.size()) + ", " + std::to_string(slower) + " slower, " +
                         std::to_string(duel_->pairs) + " pairs of launches",
                     seconds(Clock::now() - start));
  } catch (const WorkerError& error) {
    add(FindingKind::time, Severity::failed, "time", error.what());
  } catch (const WaitStopped&) {
  }

  void ask_head() {
    const Clock::time_point start = Clock::now();
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    line.show("HEAD decides its sentences");
    const RunOfProgram head = run_program_on(arguments_, subject_.head, arguments_.files, seed_);
    if (head.stopped) return;
    if (!head.failure.empty())
      add(FindingKind::sentence, Severity::failed, "sentences", "HEAD's `run` " + head.failure);
    sentences_ = head.sentences;
    std::vector<Finding> found = findings_of(head.sentences);
    know_from_base(found);
    line.clear();
    print_gate_stage(
        std::cout, "sentences",
        std::to_string(head.scenarios) + " scenarios, " + std::to_string(head.sentences.size()) +
            " sentences, " +
            std::to_string(std::ranges::count(found, Severity::blocks, &Finding::severity)) +
            " refuted",
        seconds(Clock::now() - start));
    add(std::move(found));
  }

  // What BASE refutes as well is known, and no fault of HEAD.
  void know_from_base(std::vector<Finding>& found) const {
    std::set<std::string> red;
    for (const Finding& finding : found) {
      if (finding.severity == Severity::blocks) red.insert(finding.work);
    }
    std::vector<std::filesystem::path> files;
    for (const Scenario& scenario : base_) {
      if (red.contains(scenario.name)) files.emplace_back(scenario.file);
    }
    if (files.empty()) return;
    const RunOfProgram base = run_program_on(arguments_, subject_.base, files, seed_);
    for (Finding& finding : found) {
      const auto same = std::ranges::find_if(base.sentences, [&](const HeadSentence& sentence) {
        return sentence.scenario == finding.work && sentence.name == finding.what &&
               sentence.outcome == in_words(Outcome::refuted);
      });
      if (same == base.sentences.end() || finding.severity != Severity::blocks) continue;
      finding.severity = Severity::note;
      finding.words += "; BASE refutes it too";
    }
  }

  const Arguments& arguments_;
  std::uint64_t seed_;
  DuelSettings settings_;
  GateSubject subject_;
  std::vector<Scenario> base_;
  std::vector<std::string> calibrated_;  // "scenario=value", by BASE, for all workers
  std::unique_ptr<Worker> base_worker_;  // that count
  std::unique_ptr<Worker> head_worker_;
  std::vector<CountedPair> counted_;
  std::set<std::string> differing_;  // works whose counts do
  std::optional<DuelVerdict> duel_;
  std::vector<HeadSentence> sentences_;
  std::vector<Finding> findings_;
};

}  // namespace

int gate_programs(const Arguments& arguments) {
  return Gate(arguments).run();
}

}  // namespace stepgate
