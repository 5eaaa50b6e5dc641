// SPDX-License-Identifier: MIT
// A gate in a process of its own: the two ends say a line of JSON each to each other. Values that
// stay with a process are then drawn anew for every gate. certification.h interprets the numbers.
#pragma once

#include <string>
#include <string_view>

#include "history/certificate/certification.h"
#include "support/process/child.h"

namespace stepgate {

// Questions to the process on standard input, one in its life.
constexpr std::string_view introduction_question = "introduce yourself";
constexpr std::string_view gate_question = "run the gate";

// The answer of a process that runs no gate: where the gates would run.
struct GateIntroduction {
  DeviceIdentity device;
  std::string note;  // why it is this one; see OpenedDevice
  bool operator==(const GateIntroduction&) const = default;
};
template <>
inline constexpr auto fields_of<GateIntroduction> =
    fields<&GateIntroduction::device, &GateIntroduction::note>;

std::string to_line(const GateIntroduction&);
std::string to_line(const GateResult&);
// Instead of an answer: the request is wrong, or the device failed.
std::string refused_line(const std::string& why);
std::string failed_line(const std::string& why);

// Each starts the process, asks, and waits for its end. Whatever is not an answer throws: a refusal
// RequestError, a failed device DeviceError, and a process that dies, stalls or writes anything
// else WorkerError, all but the first with the name of the request. WaitStopped as Child.
GateIntroduction introduce_gates(ChildRequest);
GateResult run_gate_process(ChildRequest);

}  // namespace stepgate
