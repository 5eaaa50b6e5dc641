// SPDX-License-Identifier: MIT
// Is a user's kernel the kernel that it stands for? Tries it on a device like the kernels of the
// catalogue, and looks for what a launch in a step must not do. Faults are found in what launches
// did, never in its code: a kernel that is honest for as many launches as are made here
// and not afterwards passes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugin/trial_device.h"

namespace stepgate {

// A way in which a launch is looked at, by the word that reports use.
struct KernelFault {
  std::string check;        // "numbers", "alignment", "after its stream"
  std::string first;        // what was found the first time, with the trial
  std::int64_t trials = 0;  // in how many trials
};

struct KernelCheck {
  std::string kernel;
  std::string library;           // identity_of
  std::int64_t trials = 0;       // that the library supports
  std::int64_t unsupported = 0;  // that it does not
  std::string first_unsupported;
  std::int64_t left_out = 0;  // launches of steps that were not tried
  std::uint64_t seed = 0;
  std::vector<KernelFault> faults;

  // Whether it is that kernel in all trials that it supports. One that supports none is not.
  bool is_it() const { return faults.empty() && trials > 0; }
};

// A launch of a step.
struct LaunchOfStep {
  KernelShape shape;
  DType dtype = DType::fp32;
  KernelAttributes attributes = {};
  // Says who launches it where the library does not support it: Otherwise::ours where all variants
  // that take it from a library say so. It is absent where none does. A library must support all
  // others.
  std::optional<Otherwise> otherwise = {};
};

struct KernelCheckRequest {
  LoadedKernel loaded;
  const Kernel& kernel;
  std::vector<LaunchOfStep> of_step = {};  // tried beside the recipe's
  std::int64_t left_out = 0;               // launches of the step that are too large to try
  std::uint64_t seed = 1;
  // Called before each trial with its description, so that a crash can be placed.
  std::function<void(const std::string&)> at_trial = {};
};

KernelCheck check_kernel(TrialDevice&, const KernelCheckRequest&);

// The words that KernelFault::check has, in the order in which they are looked for.
std::vector<std::string> names_of_kernel_checks();

}  // namespace stepgate
