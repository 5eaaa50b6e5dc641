// SPDX-License-Identifier: MIT
// Launches that a user's kernel makes in the place of the catalogue's, on whatever device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "plan/step_plan.h"
#include "plugin/open_library.h"

namespace stepgate {

struct LaunchInstead {
  Launch launch;
  // The words of the user's kernel where it does not support the shape, so that the launch is the
  // project's own; else empty.
  std::string unsupported;
};

// Prepares the launch of a row with a replacement, or with `own` the project's own where the row
// says so (Otherwise::ours). Throws KernelLibraryError, and KernelUnsupported where it does not.
LaunchInstead launch_instead(const LoadedKernel&, const KernelRequest&, const DeviceFacts&,
                             const std::function<Launch()>& own);

// Returns who launches the plan's kernels of the user. `unsupported` has operations that the
// project's own kernels launch after all, with the words of the user's kernel.
std::vector<KernelChoice> choices_instead(const StepPlan&,
                                          const std::function<std::string(const Kernel&)>& identity,
                                          const std::map<int, std::string>& unsupported);

}  // namespace stepgate
