// SPDX-License-Identifier: MIT
// Starts BASE and HEAD and hears what they are.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compare/worker/worker.h"
#include "verbs/compare/gate_request.h"

namespace stepgate {

struct IntroducedBoth {
  std::optional<Introduction> both = {};  // absent where one of them did not even say hello
  std::unique_ptr<Worker> base = {};      // that count; null where nothing is to be counted
  std::unique_ptr<Worker> head = {};
  std::vector<Finding> findings = {};
  bool comparable = false;
};

// Sets the request's calibrated values. A program that breaks is a finding. Throws RequestError for
// patterns and numbers of pairs that can compare nothing, NotGatedError where nothing is simulated
// unasked.
IntroducedBoth introduce_both(GateRequest&);

// The request of a worker that counts.
ChildRequest counting_request(const GateRequest&, ComparisonSide,
                              std::vector<std::string> more = {});

}  // namespace stepgate
