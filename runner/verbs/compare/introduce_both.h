// SPDX-License-Identifier: MIT
// Starts BASE and HEAD and reads their hellos.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compare/worker/worker.h"
#include "verbs/compare/gate_request.h"

namespace stepgate {

struct IntroducedBoth {
  std::optional<Introduction> both = {};  // absent where one of them sent no hello
  std::unique_ptr<Worker> base = {};      // workers that count; null where nothing is counted
  std::unique_ptr<Worker> head = {};
  std::vector<Finding> findings = {};
  bool comparable = false;
};

// Starts both programs and sets the request's calibrated values. A program that fails is a finding.
// Throws RequestError for patterns and numbers of pairs that can compare nothing, and NotGatedError
// where a program simulates without being asked to.
IntroducedBoth introduce_both(GateRequest&);

// Makes the request of a worker that counts.
ChildRequest counting_request(const GateRequest&, ComparisonSide,
                              std::vector<std::string> more = {});

}  // namespace stepgate
