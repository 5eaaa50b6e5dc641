// SPDX-License-Identifier: MIT
// A device that the host plays: work of its stream runs when somebody waits for it. Libraries for
// it include testing/fake_stream.h.
#pragma once

#include <memory>

#include "plugin/trial_device.h"

namespace stepgate {

std::unique_ptr<TrialDevice> make_fake_trial_device();

}  // namespace stepgate
