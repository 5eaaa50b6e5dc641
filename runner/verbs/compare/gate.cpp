// SPDX-License-Identifier: MIT
// `stepgate gate`: may HEAD be merged? Counts, a duel, HEAD's own sentences, and what became of the
// scenarios, in this order; what is found early does not keep the rest from being looked at.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <sstream>

#include "duel/gate/compared_works.h"
#include "duel/gate/gate_timing.h"
#include "duel/gate/judge_gate.h"
#include "duel/gate/soak.h"
#include "history/evidence/evidence_file.h"
#include "judge/verdict/words.h"
#include "report/ci/reported_gate.h"
#include "report/text/print_gate.h"
#include "report/text/progress_line.h"
#include "scenario/read/read_scenario.h"
#include "support/files/write_file.h"
#include "support/fnv1a.h"
#include "support/interruption.h"
#include "support/process/run_program.h"
#include "support/random.h"
#include "support/seconds.h"
#include "support/text/units.h"
#include "support/toml/toml_text.h"
#include "verbs/compare/count_both.h"
#include "verbs/compare/head_sentences.h"
#include "verbs/compare/self_test.h"
#include "verbs/compare/stored_sentences.h"
#include "verbs/compare/workers.h"
#include "verbs/machine_reports.h"
#include "verbs/outputs.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// Loads of a step that may be slower, which are traced to say where.
constexpr int loads_to_trace = 3;
// So many of the works that are slower are traced, the slowest ones.
constexpr std::size_t most_traced_works = 8;

class Gate {
 public:
  explicit Gate(const Arguments& arguments)
      : arguments_(arguments),
        seed_(seed_of(arguments)),
        settings_{.margin = margin_of(arguments.gate.margin)},
        subject_{.base = arguments.gate.soak ? "its own beginning"
                         : arguments.gate.stored
                             ? "the stored runs in " + arguments.device.baselines.string()
                             : arguments.gate.base_command.value_or(arguments.gate.base),
                 .head = arguments.gate.head_command.value_or(arguments.gate.head),
                 .both = {},
                 .margin = settings_.margin,
                 .only = {arguments.gate.only.begin(), arguments.gate.only.end()},
                 .most_timing = arguments.gate.stored || arguments.gate.soak ||
                                        !arguments.gate.looks_at(GatePart::time)
                                    ? std::chrono::nanoseconds(0)
                                : arguments.budget_seconds
                                    ? of_seconds(*arguments.budget_seconds)
                                    : std::chrono::nanoseconds(most_timing_of_a_gate)} {
    if (of_commands()) arguments_.files.clear();
  }

  int run() {
    check_outputs(arguments_, inputs());
    // HEAD may write where the judge does; what it puts in the place of a file is not followed.
    if (!arguments_.evidence.empty()) check_writable(file_of_pairs());
    const ReportFiles files(arguments_);
    RunInfo info = info_of(arguments_.files);
    // An earlier gate's reports are not this one's answer, not even if nothing can be started.
    files.write(gate_that_has_not_ended(info, "the gate has not ended"));
    write_json_file("");
    try {
      check_programs();
      check_device_name(arguments_.device);
      if (!arguments_.gate.accepted.empty())
        accepted_ = read_accepted(arguments_.gate.accepted, date_of(arguments_));
      if (!of_commands()) info = info_of(scenario_files(arguments_));
      const int status = gate(files, info);
      if (interrupted) {
        files.end(gate_that_has_not_ended(info, "the gate was interrupted"));
        return say_interrupted("HEAD is not gated");
      }
      return status;
    } catch (const std::exception& error) {
      files.end(gate_that_has_not_ended(info, error.what()));
      throw;
    }
  }

 private:
  bool looks_at(GatePart part) const { return arguments_.gate.looks_at(part); }
  bool of_commands() const { return arguments_.gate.base_command.has_value(); }

  RunInfo info_of(const std::vector<std::filesystem::path>& files) const {
    return run_info_of(arguments_, files.empty() ? "scenarios" : files.front(), seed_);
  }

  std::vector<std::filesystem::path> inputs() const {
    std::vector<std::filesystem::path> all = arguments_.gate.head_files;
    if (of_commands()) {
      for (const DuelSide side : both_sides)
        std::ranges::copy(worker(side, {}), std::back_inserter(all));
    }
    for (const std::string& program : {arguments_.gate.base, arguments_.gate.head}) {
      if (!program.empty()) all.emplace_back(program_path(program));
    }
    all.push_back(arguments_.gate.accepted);
    return all;
  }

  std::filesystem::path file_of_pairs() const { return arguments_.evidence.string() + ".pairs"; }

  int gate(const ReportFiles& files, const RunInfo& info) {
    look_at_scenarios();
    if (arguments_.gate.soak) {
      compare_with_beginning();
    } else if (arguments_.gate.stored) {
      compare_with_stored();
    } else {
      compare_with_base();
    }
    if (interrupted) return interrupted_exit_code(interrupted);
    for (Finding& finding : findings_) place(finding);
    const GateVerdict verdict = judge_gate(std::move(findings_), accepted_, date_of(arguments_));
    if (arguments_.verbose) print_gate_looks(std::cout, looks());
    print_gate(std::cout, subject_, verdict, arguments_.undecided, style_of(descriptor_of_text()));
    const ExitCode code = exit_code(verdict, arguments_.undecided);
    std::ostringstream json;
    write_gate_json(json, info, subject_, duel_, verdict, code);
    write_json_file(json.str());
    files.end(reported_gate(info, subject_, looks(), verdict, arguments_.undecided));
    return status_of(code);
  }

  GateLooks looks() const {
    GateLooks looks{.counted = {}, .duel = duel_, .sentences = sentences_};
    for (const CountedPair& pair : counted_) looks.counted.push_back(pair.work);
    return looks;
  }

  void compare_with_base() {
    start_ = Clock::now();
    const bool compares_works = looks_at(GatePart::counts) || looks_at(GatePart::time);
    const bool comparable = !compares_works || introduce_both();
    print_gate_terms(std::cout, subject_);
    if (!comparable) return;
    if (!interrupted && looks_at(GatePart::counts)) count();
    if (!interrupted && looks_at(GatePart::time)) time();
    if (!interrupted && looks_at(GatePart::sentences)) ask_head();
    const bool none = compares_works ? counted_.empty() && !duel_
                                     : std::ranges::all_of(sentences_, [](const HeadSentence& one) {
                                         return one.outcome == Outcome::skipped;
                                       });
    if (none && !says_why_not())
      add(FindingKind::counts, Severity::not_gated, "works", "nothing was compared");
  }

  bool says_why_not() const {
    return std::ranges::any_of(findings_, [](const Finding& finding) {
      return finding.severity == Severity::failed || finding.severity == Severity::not_gated;
    });
  }

  // One run of HEAD, whose scenarios say besides that every variant is as its stored runs were.
  void compare_with_stored() {
    print_gate_terms(std::cout, subject_);
    const Clock::time_point start = Clock::now();
    const StoredSentences stored(base_, settings_.margin, seed_);
    if (stored.files().empty())
      return add(FindingKind::sentence, Severity::not_gated, "scenarios", "nothing was compared");
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    line.show("HEAD runs its scenarios");
    const RunOfProgram head = run_program_on(arguments_, DuelSide::head, subject_.head,
                                             stored.files(), seed_, stored.bases());
    line.clear();
    if (head.stopped) return;
    take_device(head);
    if (!head.failure.empty())
      add(FindingKind::sentence, head.gated_nothing ? Severity::not_gated : Severity::failed,
          "sentences", "HEAD's `run` " + head.failure);
    std::vector<Finding> found = findings_of(head.sentences);
    for (Finding& finding : found) stored.translate(finding);
    sentences_ = head.sentences;
    print_gate_stage(std::cout, "stored",
                     counted(head.scenarios, "scenario") + ", " +
                         counted(std::ssize(head.sentences), "sentence") + ", " +
                         std::to_string(std::ssize(found)) + " not held",
                     seconds(Clock::now() - start));
    add(std::move(found));
  }

  // Looks for what begins after more steps than a pair of launches has.
  void compare_with_beginning() try {
    print_gate_terms(std::cout, subject_);
    const Clock::time_point start = Clock::now();
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    std::uint64_t launches = 0;
    const auto launch = [&] {
      const std::string seed = std::to_string(random_bits(seed_, launches++));
      return start_worker(
          worker_request(arguments_, worker(DuelSide::head, {"--seed", seed}), DuelSide::head));
    };
    const std::unique_ptr<Worker> introduced = launch();
    const Hello hello = introduced->hello();
    introduced->quit();
    subject_.both = Introduction{.base = hello, .head = hello};
    refuse_stand_in(hello);
    const std::vector<std::string> works = works_of_both(&Hello::works);
    if (works.empty())
      return add(FindingKind::time, Severity::not_gated, "works", "nothing was compared");
    DuelVerdict verdict{.introduction = *subject_.both, .settings = settings_};
    std::int64_t fewest = steps_of_a_soak;
    for (const std::string& work : works) {
      line.show("soak of " + work);
      const SoakedWork soaked = soak(work, settings_.margin_of(work), launch);
      fewest = std::min(fewest, soaked.steps);
      verdict.works.push_back({.name = work,
                               .margin = soaked.margin,
                               .outcome = soaked.outcome,
                               .base_step_seconds = soaked.early_seconds,
                               .head_step_seconds = soaked.late_seconds,
                               .steps = soaked.steps,
                               .longest_launch = soaked.steps,
                               .timed = {},
                               .reason = soaked.reason});
    }
    line.clear();
    const auto slower = std::ranges::count(verdict.works, Outcome::refuted, &WorkVerdict::outcome);
    print_gate_stage(std::cout, "soak",
                     counted(std::ssize(works), "work") + ", " + std::to_string(slower) +
                         " slower, " + std::to_string(fewest) + " steps each or more",
                     seconds(Clock::now() - start));
    add(findings_of(verdict, {}));
    duel_ = std::move(verdict);
  } catch (const WorkerError& error) {
    add(FindingKind::time, Severity::failed, "time", error.what());
  } catch (const WaitStopped&) {
  }

  void take_device(const RunOfProgram& head) {
    Hello hello;
    hello.program = "stepgate";
    hello.device = head.device;
    hello.simulated = head.simulated;
    subject_.both = Introduction{.base = hello, .head = hello};
    refuse_stand_in(hello);
  }

  // A command line says itself what it asked for.
  void refuse_stand_in(const Hello& hello) {
    const bool unasked = !of_commands() && !arguments_.device.spec.starts_with("simulated");
    if (!hello.stand_in && !(unasked && hello.simulated)) return;
    check_device(arguments_.device);
    add(FindingKind::time, Severity::not_gated, "device", std::string(simulated_unasked));
  }

  void write_json_file(const std::string& text) const {
    if (!arguments_.json.empty()) write_file(arguments_.json, text);
  }

  // A program that is not there is a wrong request, and no finding about it.
  void check_programs() const {
    if (of_commands()) return;
    const bool stored = arguments_.gate.stored;
    const bool alone = stored || arguments_.gate.soak;
    if (arguments_.gate.base.empty() && !alone)
      throw RequestError("there is nothing to compare HEAD with",
                         "give --base PROGRAM, --stored for the runs that `accept` stored, or "
                         "--soak for HEAD's own beginning");
    if (stored && (arguments_.gate.pairs || !arguments_.gate.works.empty()))
      throw RequestError("--pairs and --work are for two programs", "choose files, or by --tag");
    for (const auto& [side, program] :
         {std::pair{"--base", arguments_.gate.base}, {"--head", arguments_.gate.head}}) {
      if (alone && program.empty()) continue;
      check_program(side, program);
    }
  }

  void add(std::vector<Finding> found) { std::ranges::move(found, std::back_inserter(findings_)); }
  void add(FindingKind kind, Severity severity, const std::string& what, std::string words) {
    findings_.push_back(
        {.kind = kind, .severity = severity, .what = what, .words = std::move(words)});
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

  static std::string counted(std::int64_t count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  }

  // Before anything is started, so that a file which cannot be read costs nothing.
  void look_at_scenarios() {
    if (of_commands()) return;
    base_ = scenarios_with_wanted_tags(arguments_);
    refuse_namesakes(base_);
    refuse_unknown_works();
    (void)most_pairs(arguments_.gate.pairs, 1, settings_);
    take_own_margins();
    arguments_.files.clear();
    for (const Scenario& scenario : base_) arguments_.files.emplace_back(scenario.file);
    if (arguments_.gate.head_files.empty()) return;
    for (const auto& given : arguments_.gate.head_files) {
      if (!std::filesystem::exists(given))
        throw RequestError("--head-files " + given.string() + ": no such file", "check the path");
    }
    Arguments of_head = arguments_;
    of_head.files = arguments_.gate.head_files;
    std::vector<Scenario> head;
    std::map<std::string, std::string> unread;
    for (const auto& file : scenario_files(of_head)) {
      try {
        Scenario scenario = read_scenario(file, arguments_.overrides);
        if (has_wanted_tags(scenario, arguments_)) head.push_back(std::move(scenario));
      } catch (const RequestError& error) {
        unread[file.stem().string()] = error.diagnostics().front().message;
      }
    }
    refuse_namesakes(head);
    add(compare_scenarios(base_, head, unread));
  }

  // Before minutes have gone.
  void refuse_unknown_works() const {
    std::vector<std::string> works;
    for (const Scenario& scenario : base_) {
      for (const Variant& variant : scenario.variants)
        works.push_back(scenario.name + "/" + variant.name);
    }
    refuse_unmatched(arguments_.gate.works, works);
  }

  void take_own_margins() {
    for (const Scenario& scenario : base_) {
      if (is_planned_only(scenario)) continue;
      for (const Variant& variant : scenario.variants) {
        const std::string work = scenario.name + "/" + variant.name;
        if (is_wanted(arguments_.gate.works, work) && variant.gate.margin > settings_.margin)
          settings_.wider[work] = *variant.gate.margin;
      }
    }
    subject_.wider = std::ssize(settings_.wider);
  }

  // A command line of a worker knows none of our options.
  Command worker(DuelSide side, std::vector<std::string> more) const {
    const bool is_base = side == DuelSide::base;
    const GateArguments& given = arguments_.gate;
    if (of_commands())
      return split_command_line(is_base ? *given.base_command : *given.head_command);
    const std::string& program = is_base ? given.base : given.head;
    for (const std::string& calibrated : calibrated_)
      more.insert(more.end(), {"--calibrated", calibrated});
    return program_command(arguments_, program, "worker", more);
  }

  // Tells a BASE of before there were gates from one that does not work at all.
  bool answers_without_counting() const {
    try {
      const auto started =
          start_worker(worker_request(arguments_, worker(DuelSide::base, {}), DuelSide::base));
      (void)started->hello();
      started->quit();
      return true;
    } catch (const WorkerError&) {
      return false;
    }
  }

  ChildRequest counting_request(DuelSide side, std::vector<std::string> more) const {
    more.insert(more.end(), {"--counts", "--seed", std::to_string(seed_)});
    return worker_request(arguments_, worker(side, std::move(more)), side);
  }

  std::unique_ptr<Worker> start_counting(DuelSide side) const {
    return start_worker(counting_request(side, {}));
  }

  // The worker that counts for a side, once it has said hello; null, and a finding, where there is
  // none.
  std::unique_ptr<Worker> introduced(DuelSide side, std::unique_ptr<Worker> started) {
    try {
      (void)started->hello();
      return started;
    } catch (const WorkerError& error) {
      if (side == DuelSide::base && !of_commands() && answers_without_counting()) {
        add(FindingKind::counts, Severity::not_gated, "counts",
            fmt::format(
                "BASE does not say what its steps consist of ({}); where its `worker` knows "
                "no --counts, gate against a newer BASE",
                error.what()));
      } else {
        add(FindingKind::counts, Severity::failed, "counts", error.what());
      }
      return nullptr;
    }
  }

  // Whether both are there and can be compared at all.
  bool introduce_both() try {
    if (!counts_or_calibrates()) {
      subject_.both = introduce(launcher());
      return subject_.both && are_comparable();
    }
    // Both start at once, unless HEAD needs values that BASE finds first.
    const bool apart = std::ranges::any_of(
        base_, [](const Scenario& scenario) { return scenario.calibrate.has_value(); });
    auto base_started = start_counting(DuelSide::base);
    auto head_started = apart ? nullptr : start_counting(DuelSide::head);
    base_worker_ = introduced(DuelSide::base, std::move(base_started));
    if (!base_worker_) return false;
    calibrated_ = base_worker_->hello().calibrated;
    if (apart) head_started = start_counting(DuelSide::head);
    head_worker_ = introduced(DuelSide::head, std::move(head_started));
    if (!head_worker_) return false;
    subject_.both = Introduction{base_worker_->hello(), head_worker_->hello()};
    return are_comparable();
  } catch (const WorkerError& error) {  // it said something before it was asked
    add(looks_at(GatePart::counts) ? FindingKind::counts : FindingKind::time, Severity::failed,
        looks_at(GatePart::counts) ? "counts" : "time", error.what());
    return false;
  } catch (const WaitStopped&) {
    return false;
  }

  // Whoever only times need not count, unless something is to be calibrated first.
  bool counts_or_calibrates() const {
    return looks_at(GatePart::counts) || std::ranges::any_of(base_, [](const Scenario& scenario) {
             return scenario.calibrate.has_value();
           });
  }

  bool are_comparable() {
    const Hello& base = subject_.both->base;
    const Hello& head = subject_.both->head;
    refuse_stand_in(base.stand_in ? base : head.stand_in ? head : base);
    if (!same_device(base, head)) {
      add(FindingKind::time, Severity::not_gated, "device",
          "BASE runs on " + named_device(base) + " and HEAD on " + named_device(head) +
              ", or only one of them simulates: not comparable");
      return false;
    }
    for (const Hello* hello : {&base, &head}) {
      if (looks_at(GatePart::counts) && !hello->counts)
        add(FindingKind::counts, Severity::not_gated, "counts",
            std::string(hello == &base ? "BASE" : "HEAD") +
                " says that it counts nothing; --only time compares the rest");
    }
    if (of_commands()) {
      std::vector<std::string> works = base.works;
      works.insert(works.end(), base.planned.begin(), base.planned.end());
      refuse_unmatched(arguments_.gate.works, works);
    }
    note_same_program();
    std::vector<Finding> lost = compare_works(*subject_.both);
    std::erase_if(lost, [this](const Finding& finding) {
      const bool is_work = of_commands() || finding.work.find('/') != std::string::npos;
      return is_work && !is_wanted(arguments_.gate.works, finding.work);
    });
    add(std::move(lost));
    // Before minutes of counting.
    (void)most_pairs(arguments_.gate.pairs, works_of_both(&Hello::works).size(), settings_);
    return true;
  }

  static std::string named_device(const Hello& hello) {
    return hello.device.empty() ? "a device without a name" : hello.device;
  }

  // The classic slip is a build that was taken from a cache.
  bool is_same_program() const {
    const auto program = [&](DuelSide side) {
      return of_commands() ? worker(side, {}) : Command{worker(side, {}).front()};
    };
    return run_same_bytes(program(DuelSide::base), program(DuelSide::head)) &&
           arguments_.gate.base_variables == arguments_.gate.head_variables;
  }
  void note_same_program() {
    if (is_same_program())
      add(FindingKind::time, Severity::note, "program",
          of_commands() ? "BASE and HEAD run the same program, byte for byte; only their arguments "
                          "can differ"
                        : "BASE and HEAD are the same program, byte for byte: was HEAD built?");
  }

  static bool same_device(const Hello& one, const Hello& other) {
    return one.device == other.device && one.simulated == other.simulated;
  }

  // That both have and a pattern wants.
  std::vector<std::string> works_of_both(const std::vector<std::string> Hello::*list) const {
    return works_in_common(*subject_.both, list, arguments_.gate.works);
  }

  void count() try {
    if (!subject_.both->base.counts || !subject_.both->head.counts) return;
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    std::vector<std::string> works = works_of_both(&Hello::works);
    const std::vector<std::string> planned = works_of_both(&Hello::planned);
    works.insert(works.end(), planned.begin(), planned.end());
    CountedBoth both =
        count_both(*base_worker_, *head_worker_, works,
                   [&line](const std::string& work) { line.show("counts of " + work); });
    base_worker_.reset();
    head_worker_.reset();
    for (CountedPair& pair : both.pairs) compare(std::move(pair));
    for (const std::string& failure : both.failures)
      add(FindingKind::counts, Severity::failed, "counts", failure);
    if (!both.failures.empty()) return;
    line.clear();
    print_gate_stage(
        std::cout, "counts",
        counted(std::ssize(works), "work") + ", " + std::to_string(differing_.size()) + " differ",
        seconds(Clock::now() - start_));
  } catch (const WaitStopped&) {
  }

  void compare(CountedPair pair) {
    std::vector<Finding> found = compare_counts(pair);
    if (std::ranges::any_of(
            found, [](const Finding& finding) { return finding.severity != Severity::note; }))
      differing_.insert(pair.work);
    add(std::move(found));
    counted_.push_back(std::move(pair));
  }

  // By part of a step, of several loads.
  static StepCounts::Numbers mean_time_of(Worker& worker, const std::string& work) {
    StepCounts::Numbers mean;
    for (int load = 0; load < loads_to_trace; ++load) {
      for (const auto& [part, seconds] : worker.count({work, true}).time)
        mean[part] += seconds / loads_to_trace;
    }
    return mean;
  }

  // Where a slower step has grown: traced again, one side after the other. What fails here changes
  // no answer.
  void trace_alone(const DuelVerdict& duel) try {
    std::vector<CountedPair*> slower;
    for (CountedPair& pair : counted_) {
      const auto work = std::ranges::find(duel.works, pair.work, &WorkVerdict::name);
      if (work != duel.works.end() && work->outcome == Outcome::refuted &&
          pair.base.untraced.empty())
        slower.push_back(&pair);
    }
    if (slower.empty()) return;
    std::ranges::sort(slower, std::ranges::greater{}, [&](const CountedPair* pair) {
      return std::ranges::find(duel.works, pair->work, &WorkVerdict::name)->timed->ratio;
    });
    slower.resize(std::min(slower.size(), most_traced_works));
    for (const DuelSide side : both_sides) {
      // The noise is its own where it is simulated, and the processor that of both.
      const std::uint64_t noise = random_bits(seed_, static_cast<std::uint64_t>(side));
      const auto started =
          start_worker(counting_request(side, {"--noise-seed", std::to_string(noise)}));
      (void)started->hello();
      for (CountedPair* pair : slower)
        (side == DuelSide::base ? pair->base : pair->head).time =
            mean_time_of(*started, pair->work);
      started->quit();
    }
  } catch (const WorkerError& error) {
    add(FindingKind::time, Severity::note, "mechanism",
        std::string("where slower steps have grown is not known: ") + error.what());
  }

  // Pairs of the same two programs in the same environments, of the same steps.
  EvidenceKey key_of_pairs(const Introduction& both, const std::vector<std::string>& works) const {
    const auto digest = [](const std::string& program) {
      return hexadecimal(digest_of_this_program(program_path(program)));
    };
    std::uint64_t fingerprint = fnv1a_start;
    for (const Scenario& scenario : base_)
      fingerprint = fnv1a_word(scenario.fingerprint, fingerprint);
    for (const auto* words : {&works, &arguments_.overrides, &calibrated_,
                              &arguments_.gate.base_variables, &arguments_.gate.head_variables}) {
      for (const std::string& word : *words) fingerprint = fnv1a(word, fingerprint);
    }
    return {.subject = "BASE " + digest(subject_.base) + " HEAD " + digest(subject_.head),
            .scenario = "pairs of launches",
            .fingerprint = fingerprint,
            .kind = both.base.simulated ? "simulated" : "cuda",
            .gpu = printable(both.base.device),
            .uuid = {},
            .driver = {},
            .cuda_runtime = {},
            .libraries = {}};
  }

  LaunchWorker launcher() const {
    return worker_launcher(arguments_, worker(DuelSide::base, {}), worker(DuelSide::head, {}),
                           of_commands() ? LaunchSeeds::none : LaunchSeeds::of_pairs, seed_);
  }

  void time() try {
    // A process that has counted with the tracer on stays slow: other processes are timed.
    base_worker_.reset();
    head_worker_.reset();
    if (works_of_both(&Hello::works).empty()) return;
    if (arguments_.device.spec == "reference") {
      add(FindingKind::time, Severity::not_gated, "time",
          "the host reference has no notion of time: only counts, losses and gradients were "
          "compared");
      return;
    }
    const Clock::time_point start = Clock::now();
    const auto both = counts_or_calibrates() ? introduce(launcher()) : subject_.both;
    if (!both) return;
    if (!same_device(both->base, subject_.both->base) || !same_device(both->head, both->base)) {
      add(FindingKind::time, Severity::failed, "device",
          "a program that is timed names another device than when it counted");
      return;
    }
    const std::vector<std::string> works =
        in_order_of_suspicion(works_of_both(&Hello::works), differing_);
    settings_.works_ahead = works_ahead_of_a_gate(works.size());
    settings_.accepted_growths = accepted_growths(accepted_, works, date_of(arguments_));
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    std::optional<EvidenceTurn> turn;
    if (!arguments_.evidence.empty()) {
      const EvidenceKey key = key_of_pairs(*both, works);
      turn.emplace(file_of_pairs(), key);
      check_evidence_run(turn->before(), key, seed_);
      settings_.earlier = earlier_in(turn->before(), key).expect;
    }
    DuelRequest request = duel_request(arguments_, *both, works, settings_, launcher(), seed_,
                                       subject_.most_timing, counted_);
    if (turn) {
      // Every pair is kept as soon as it has ended, whatever ends the gate.
      request.undecided = [&, decide = request.undecided](const DuelMeasurement& so_far) {
        turn->keep({.seed = seed_,
                    .date = date_of(arguments_),
                    .stepgate = STEPGATE_VERSION,
                    .evidence = {.runs = 1, .expect = pairs_found_in(so_far)}});
        return decide(so_far);
      };
    }
    request.progress = [&](std::int64_t done, std::chrono::nanoseconds spent) {
      line.show("duel", done, spent);
    };
    const DuelMeasurement measured = measure_duel(request);
    turn.reset();
    if (measured.stopped) return;
    line.clear();
    duel_ = judge_duel(*both, measured, settings_);
    trace_alone(*duel_);
    add(findings_of(*duel_, counted_));
    const auto slower = std::ranges::count(duel_->works, Outcome::refuted, &WorkVerdict::outcome);
    print_gate_stage(std::cout, "duel",
                     counted(std::ssize(works), "work") + ", " + std::to_string(slower) +
                         " slower, " + std::to_string(duel_->pairs) + " pairs of launches",
                     seconds(Clock::now() - start));
    for (const std::string& note : duel_->notes) print_gate_note(std::cout, note);
  } catch (const WorkerError& error) {
    add(FindingKind::time, Severity::failed, "time", error.what());
  } catch (const WaitStopped&) {
  }

  void ask_head() {
    if (of_commands())
      return add(FindingKind::sentence, Severity::not_gated, "sentences",
                 "a command line of a worker decides no sentences; --only counts or --only time "
                 "compares the rest");
    const Clock::time_point start = Clock::now();
    ProgressLine line(isatty(STDERR_FILENO) ? &std::cerr : nullptr);
    line.show("HEAD decides its sentences, within " + seconds_text(arguments_.gate.run_seconds));
    const RunOfProgram head =
        run_program_on(arguments_, DuelSide::head, subject_.head, arguments_.files, seed_);
    if (head.stopped) return;
    if (!head.failure.empty())
      add(FindingKind::sentence, Severity::failed, "sentences", "HEAD's `run` " + head.failure);
    if (head.suite_refuted && !refutes_a_sentence(head))
      add(FindingKind::sentence, Severity::blocks, "suite",
          "the suite as a whole is refuted, though no single sentence of it is");
    if (head.failure.empty()) miss_sentences(head);
    sentences_ = head.sentences;
    if (!subject_.both) take_device(head);
    std::vector<Finding> found = findings_of(head.sentences);
    know_from_base(found);
    line.clear();
    print_gate_stage(
        std::cout, "sentences",
        counted(head.scenarios, "scenario") + ", " +
            counted(std::ssize(head.sentences), "sentence") + ", " +
            std::to_string(std::ranges::count(found, Severity::blocks, &Finding::severity)) +
            " refuted",
        seconds(Clock::now() - start));
    add(std::move(found));
  }

  static bool refutes_a_sentence(const RunOfProgram& run) {
    return std::ranges::any_of(run.sentences, [](const HeadSentence& sentence) {
      return sentence.outcome == Outcome::refuted;
    });
  }

  // A program that says nothing of a sentence has not held it.
  void miss_sentences(const RunOfProgram& head) {
    for (const Scenario& scenario : base_) {
      for (const Expectation& sentence : scenario.expect) {
        const bool said = std::ranges::any_of(head.sentences, [&](const HeadSentence& one) {
          return one.scenario == scenario.name && (one.name == sentence.name || !one.outcome);
        });
        if (said) continue;
        add(FindingKind::sentence, Severity::failed, sentence.name,
            "HEAD's `run` says nothing of it");
        findings_.back().work = scenario.name;
        findings_.back().place = sentence.place;
      }
    }
  }

  void know_from_base(std::vector<Finding>& found) const {
    std::set<std::string> red;
    for (const Finding& finding : found) {
      if (is_open(finding)) red.insert(finding.work);
    }
    std::vector<std::filesystem::path> files;
    for (const Scenario& scenario : base_) {
      if (red.contains(scenario.name)) files.emplace_back(scenario.file);
    }
    if (files.empty()) return;
    if (is_same_program()) {
      for (Finding& finding : found)
        stepgate::compare_with_base(finding, {.outcome = finding.outcome, .reason = {}});
      return;
    }
    const RunOfProgram base =
        run_program_on(arguments_, DuelSide::base, subject_.base, files, seed_);
    for (Finding& finding : found) {
      const auto of_base = std::ranges::find_if(base.sentences, [&](const HeadSentence& sentence) {
        return sentence.scenario == finding.work && sentence.name == finding.what;
      });
      if (of_base != base.sentences.end()) stepgate::compare_with_base(finding, *of_base);
    }
  }

  Arguments arguments_;  // whose files are those with wanted tags, once they have been looked at
  std::uint64_t seed_;
  DuelSettings settings_;
  GateSubject subject_;
  std::vector<Accepted> accepted_;
  std::vector<Scenario> base_;
  std::vector<std::string> calibrated_;  // "scenario=value", by BASE, for all workers
  std::unique_ptr<Worker> base_worker_;  // that count
  std::unique_ptr<Worker> head_worker_;
  Clock::time_point start_;  // of the two programs
  std::vector<CountedPair> counted_;
  std::set<std::string> differing_;  // works whose counts do
  std::optional<DuelVerdict> duel_;
  std::vector<HeadSentence> sentences_;
  std::vector<Finding> findings_;
};

}  // namespace

int gate_programs(const Arguments& arguments) {
  stop_when_interrupted();
  if (arguments.gate.self_test) return test_the_gate(arguments);
  if (arguments.gate.base_command && arguments.gate.only.contains(GatePart::sentences))
    throw RequestError("a command line of a worker decides no sentences",
                       "leave out --only sentences, or give --base and --head PROGRAM");
  if (arguments.gate.head.empty() && !arguments.gate.head_command)
    throw RequestError("there is no HEAD to gate", "give --head PROGRAM");
  return Gate(arguments).run();
}

}  // namespace stepgate
