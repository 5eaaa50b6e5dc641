// SPDX-License-Identifier: MIT
// The kernels that the variants got where a library has some too, in words: ours or the library's
// own. The launchers say what was chosen and why (kernels/kernel.h).
#pragma once

#include <string>
#include <vector>

#include "measure/rounds/measurement.h"

namespace stepgate {

// One sentence for all variants that got the same kernels for the same reasons; none for those that
// had no choice.
//   "in 'baseline' and 'fix', attention is cuDNN 9.14.0's; attention_gradient is stepgate's own:
//   model.attention_workspace is 0 B"
std::vector<std::string> library_notes(const Measurement&);

}  // namespace stepgate
