// SPDX-License-Identifier: MIT
#include "plugin/check_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

// Work that a stream has before the operands arrive: a launch that does not wait for it reads the
// old ones, and one that makes the host wait takes as long.
constexpr std::chrono::milliseconds late{20};
// Enough for what a library keeps from call to call: allocations, and answers for "the first few".
constexpr int many_launches = 50;
constexpr int other_contents = 3;
// The slower looks are made at every so many trials; the shapes of a step always get them.
constexpr std::int64_t sparse = 7;
// Memory that a driver may take for itself while kernels load.
constexpr std::int64_t spared_bytes = std::int64_t{4} << 20;

namespace check_names {
constexpr const char* supported = "supported";
constexpr const char* prepares = "prepares";
constexpr const char* numbers = "numbers";
constexpr const char* step_shape = "step shape";
constexpr const char* alignment = "alignment";
constexpr const char* guards = "guard zones";
constexpr const char* inputs = "inputs";
constexpr const char* same_bits = "same bits";
constexpr const char* in_place = "in place";
constexpr const char* after_stream = "after its stream";
constexpr const char* waits = "does not wait";
constexpr const char* keeps_nothing = "keeps nothing";
constexpr const char* many = "many launches";
constexpr const char* capture = "capture";
constexpr const char* launches = "launches";
constexpr const char* memory = "memory";
constexpr const char* limits = "leaves the device alone";
constexpr std::array all{supported, prepares,  numbers,  step_shape,   alignment, guards,
                         inputs,    same_bits, in_place, after_stream, waits,     keeps_nothing,
                         many,      capture,   launches, memory,       limits};
}  // namespace check_names

using namespace check_names;

class KernelChecker {
 public:
  KernelChecker(TrialDevice& device, const KernelCheckRequest& request)
      : device_(device), request_(request), limits_before_(device.limits()) {
    found_.kernel = request.kernel.name;
    found_.library = request.loaded.identity;
    found_.seed = request.seed;
    found_.left_out = request.left_out;
  }

  KernelCheck run() {
    const TrialRecipe& recipe = trial_recipe(request_.kernel.name);
    std::vector<KernelTrial> trials = all_trials(recipe, request_.seed);
    const std::size_t of_recipe = trials.size();
    for (const LaunchOfStep& launch : request_.of_step) {
      trials.push_back(make_trial(recipe, launch.shape, launch.dtype, launch.attributes,
                                  request_.seed + trials.size()));
    }
    for (std::size_t index = 0; index < trials.size() && !is_lost_; ++index)
      look_at(trials[index], index,
              index < of_recipe ? nullptr : &request_.of_step[index - of_recipe]);
    sort_faults();
    return std::move(found_);
  }

 private:
  // The trial is this launch of a step; null where the recipe has it.
  void look_at(const KernelTrial& trial, std::size_t index, const LaunchOfStep* of_step) {
    seed_ = request_.seed + index;
    place_ = describe(trial, seed_);
    place_.resize(place_.find(" seed "));
    if (request_.at_trial) request_.at_trial(place_);
    prepared_.reset();
    try {
      prepared_ = prepared(trial);
    } catch (const KernelUnsupported& error) {
      ++found_.unsupported;
      if (found_.first_unsupported.empty()) found_.first_unsupported = error.what();
      if (of_step != nullptr && of_step->otherwise != Otherwise::ours)
        fault(supported, error.what());
      return;
    } catch (const KernelLibraryError& error) {
      fault(prepares, error.what());
      return;
    }
    ++found_.trials;
    if (!finish(prepares)) return;
    KernelTrial expected = trial;
    run_reference(expected);
    const std::int64_t offset = operand_alignment(request_.kernel);
    // Every later look would tell again what is wrong at once.
    const bool is_right = agrees(trial, expected, {}, of_step != nullptr ? step_shape : numbers);
    if (is_right && agrees(trial, expected, {.offset_bytes = offset}, alignment))
      (void)agrees(trial, expected, {.offset_bytes = offset, .every_second = true}, alignment);
    if (is_right) {
      gives_same_bits(trial);
      works_in_place(trial);
    }
    if (is_right && (of_step != nullptr || (found_.trials - 1) % sparse == 0))
      look_longer(trial, expected);
    if (is_lost_) return;
    const std::string now = device_.limits();
    if (now == limits_before_) return;
    fault(limits, fmt::format("it was {} and is {} after the launches", limits_before_, now));
    limits_before_ = now;
  }

  void look_longer(const KernelTrial& trial, const KernelTrial& expected) {
    waits_for_its_stream(trial, expected);
    keeps_no_results(trial);
    takes_no_memory(trial, expected);
    // This is the last look, since a call that fails while a stream is captured leaves its error in
    // the library's own runtime, where the next launch finds it.
    can_be_captured(trial);
  }

  PreparedKernel prepared(const KernelTrial& trial) {
    constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;
    return request_.loaded.prepare({.kernel = request_.kernel,
                                    .shape = trial.shape,
                                    .dtype = trial.dtype,
                                    .attributes = trial.attributes,
                                    .workspace = device_.workspace(workspace_bytes),
                                    .workspace_bytes = workspace_bytes},
                                   device_.facts());
  }

  void fault(const char* check, const std::string& text) {
    const auto known = std::ranges::find(found_.faults, check, &KernelFault::check);
    if (known != found_.faults.end()) {
      ++known->trials;
      return;
    }
    found_.faults.push_back(
        {.check = check, .first = fmt::format("{} ({})", text, place_), .trials = 1});
  }

  void sort_faults() {
    std::ranges::sort(found_.faults, {}, [](const KernelFault& one) {
      return std::ranges::find_if(all, [&](const char* name) { return one.check == name; });
    });
  }

  bool enqueue(const PlacedOperands& operands, const char* check) {
    try {
      prepared_->launch(operands.pointers(), device_.stream());
      return true;
    } catch (const KernelLibraryError& error) {
      fault(check, error.what());
      return false;
    }
  }

  bool finish(const char* check) {
    const std::string problem = device_.finish();
    if (problem.empty()) return true;
    is_lost_ = true;
    fault(check, "its work failed: " + problem);
    return false;
  }

  bool launch(const PlacedOperands& operands, const char* check) {
    return !is_lost_ && enqueue(operands, check) && finish(check);
  }

  // Faults of an output, of an input that changed, and of bytes beside them are told apart. Returns
  // whether there is none.
  bool compare(const PlacedOperands& operands, const KernelTrial& expected, const char* check) {
    const KernelTrial got = operands.read_back();
    for (std::size_t operand = 0; operand < got.operands.size(); ++operand) {
      const KernelOperand& declared = operand_of(got, operand);
      if (declared.format == OperandFormat::scratch) continue;
      if (access_of(declared, got.attributes) == Access::read) {
        if (got.operands[operand] == expected.operands[operand]) continue;
        fault(inputs, fmt::format("it changed an input, '{}'", declared.name));
        return false;
      }
      const std::string words = difference(got, expected, operand);
      if (words.empty()) continue;
      fault(check, fmt::format("'{}': {}", declared.name, words));
      return false;
    }
    return true;
  }

  bool agrees(const KernelTrial& trial, const KernelTrial& expected, const PlacedAs& as,
              const char* check) {
    if (is_lost_) return false;
    const auto operands = device_.place(trial, as);
    if (!launch(*operands, check)) return false;
    const bool is_within = operands->guards_are_untouched();
    if (!is_within) fault(guards, "it wrote beside its operands");
    return compare(*operands, expected, check) && is_within;
  }

  void gives_same_bits(const KernelTrial& trial) {
    if (is_lost_) return;
    const auto one = device_.place(trial, {}), other = device_.place(trial, {});
    if (!launch(*one, same_bits) || !launch(*other, same_bits)) return;
    const KernelTrial first = one->read_back(), second = other->read_back();
    for (std::size_t operand = 0; operand < trial.operands.size(); ++operand) {
      const KernelOperand& declared = operand_of(trial, operand);
      if (declared.format == OperandFormat::scratch || is_clock(trial, operand)) continue;
      if (first.operands[operand] == second.operands[operand]) continue;
      return fault(same_bits, fmt::format("'{}' differs between two launches on the same numbers",
                                          declared.name));
    }
  }

  void works_in_place(const KernelTrial& trial) {
    const std::size_t output = operand_in_place(request_.kernel);
    if (is_lost_ || output == no_operand) return;
    const std::size_t input = request_.kernel.operands[output].may_replace;
    if (operand_bytes(trial, output) != operand_bytes(trial, input)) return;
    KernelTrial expected = trial;
    run_reference_in_place(expected);
    const auto operands = device_.place(trial, {.in_place = true});
    if (!launch(*operands, in_place)) return;
    const std::string words = difference(operands->read_back(), expected, output);
    if (words.empty()) return;
    fault(in_place,
          fmt::format("'{}' in the buffer of '{}': {}", request_.kernel.operands[output].name,
                      request_.kernel.operands[input].name, words));
  }

  void waits_for_its_stream(const KernelTrial& trial, const KernelTrial& expected) {
    if (is_lost_) return;
    KernelTrial before = trial;
    for (auto& operand : before.operands) std::ranges::fill(operand, std::byte{0});
    const auto operands = device_.place(before, {});
    operands->write_later(trial, late);
    const Clock::time_point begin = Clock::now();
    const bool is_enqueued = enqueue(*operands, after_stream);
    const auto took = Clock::now() - begin;
    if (!finish(after_stream) || !is_enqueued) return;
    if (took > late / 2) {
      fault(waits,
            fmt::format("a launch behind {} ms of work kept the host for {:.1f} ms", late.count(),
                        std::chrono::duration<double, std::milli>(took).count()));
    }
    const std::string words = difference(operands->read_back(), expected);
    if (words.empty()) return;
    fault(after_stream,
          "it ran before the work that its stream had, as on another stream: " + words);
  }

  // Other numbers at the same addresses, with outputs spoilt, show results that were kept.
  void keeps_no_results(const KernelTrial& trial) {
    if (is_lost_) return;
    const auto operands = device_.place(trial, {});
    if (!launch(*operands, keeps_nothing)) return;
    for (int again = 1; again <= other_contents; ++again) {
      KernelTrial next = make_trial(*trial.recipe, trial.shape, trial.dtype, trial.attributes,
                                    seed_ + 1'000'003 * static_cast<std::uint64_t>(again));
      operands->write(next);
      if (!launch(*operands, keeps_nothing)) return;
      run_reference(next);
      const std::string words = difference(operands->read_back(), next);
      if (words.empty()) continue;
      return fault(keeps_nothing, "after other numbers at the same addresses, " + words);
    }
  }

  void can_be_captured(const KernelTrial& trial) {
    if (is_lost_) return;
    const auto operands = device_.place(trial, {});
    std::optional<std::string> problem;
    const CapturedWork work = device_.capture([&] {
      try {
        prepared_->launch(operands->pointers(), device_.stream());
      } catch (const KernelLibraryError& error) {
        problem = error.what();
      }
    });
    if (problem || !work.problem.empty()) {
      fault(capture,
            fmt::format("it cannot be captured as a graph: {}", problem ? *problem : work.problem));
    } else if (work.nodes != prepared_->launches) {
      fault(launches, fmt::format("a call enqueues {} kernels, copies or fills, and its 'launches' "
                                  "is {}",
                                  work.nodes, prepared_->launches));
    }
    if (problem || !work.problem.empty()) {
      // Drops the error that the library's runtime keeps of the call that failed.
      try {
        prepared_->launch(operands->pointers(), device_.stream());
      } catch (const KernelLibraryError&) {  // it was told above
      }
    }
    (void)finish(capture);
  }

  void takes_no_memory(const KernelTrial& trial, const KernelTrial& expected) {
    if (is_lost_) return;
    const auto operands = device_.place(trial, {});
    const std::int64_t before = device_.free_bytes();
    for (int index = 0; index < many_launches; ++index) {
      if (index == many_launches - 1) operands->write(trial);
      if (!enqueue(*operands, many)) return;
    }
    if (!finish(many)) return;
    const std::int64_t taken = before - device_.free_bytes();
    if (taken > spared_bytes) {
      fault(memory, fmt::format("{} launches left {} bytes of device memory allocated",
                                many_launches, taken));
    }
    const std::string words = difference(operands->read_back(), expected);
    if (!words.empty()) fault(many, fmt::format("after {} launches, {}", many_launches, words));
  }

  TrialDevice& device_;
  const KernelCheckRequest& request_;
  std::string limits_before_;
  KernelCheck found_;
  std::optional<PreparedKernel> prepared_;  // of the present trial
  std::string place_;                       // of the present trial, in words
  std::uint64_t seed_ = 0;
  bool is_lost_ = false;  // the device, by work that failed
};

}  // namespace

KernelCheck check_kernel(TrialDevice& device, const KernelCheckRequest& request) {
  return KernelChecker(device, request).run();
}

std::vector<std::string> names_of_kernel_checks() {
  return {all.begin(), all.end()};
}

}  // namespace stepgate
