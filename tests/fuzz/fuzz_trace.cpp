// SPDX-License-Identifier: MIT
// libFuzzer: reads JSON as traces between two processes. It counts as damaged, or is read and
// written unchanged, and no byte of that can be changed unnoticed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/simulated/simulated_device.h"
#include "measure/trace/trace_rounds.h"
#include "measure/trace/traced_file.h"
#include "plan/testing/plan_by_hand.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

// Computes the header, so that the fuzzer only changes the body.
std::string with_header(std::string_view body) {
  return fmt::format("stepgate traces 1 {} {:016x}\n{}", body.size(), fnv1a(body), body);
}

// Keeps a few records of each kind, which suffice.
Trace shortened(Trace trace) {
  constexpr std::size_t most = 3;
  trace.spans.resize(std::min(trace.spans.size(), most));
  std::erase_if(trace.calls, [](const HostCall& call) { return call.span >= int{most}; });
  trace.calls.resize(std::min(trace.calls.size(), most));
  trace.work.resize(std::min(trace.work.size(), most));
  trace.memory_changes.resize(std::min(trace.memory_changes.size(), most));
  trace.page_events.emplace().push_back({});
  trace.clocks = {{TraceTime(7), 1.98e9}};
  trace.unsteady.push_back({});
  return trace;
}

// The first input is a simulated step, since no trace files are stored.
std::string body_to_begin_with() {
  Knobs knobs = small_mlp();
  knobs.model.layers = 1;
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario_of(knobs), 1));
  const auto device = make_simulated_device(
      read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml"), {.seed = 1});
  Traced traced = trace_rounds(*device, plans, {.rounds = 1});
  Trace& timeline = traced.timelines.front().front();
  timeline = shortened(std::move(timeline));
  traced.calibrated = Calibrated{.knob = "host.step_us", .value = "100", .aim = "", .failure = ""};
  const std::string text = traced_text(traced);
  return text.substr(text.find('\n') + 1);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int) {
  static const std::string first = body_to_begin_with();
  if (size > 1 || first.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, first.data(), first.size());
  return first.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_digested(with_header(fuzzed_text(data, size)),
                 [](std::string_view one) -> std::optional<std::string> {
                   const TracedOrDamaged read = read_traced_text(one);
                   const auto* traced = std::get_if<Traced>(&read);
                   return traced == nullptr ? std::nullopt : std::optional(traced_text(*traced));
                 });
  return 0;
}
