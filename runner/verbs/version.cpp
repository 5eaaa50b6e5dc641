// SPDX-License-Identifier: MIT
// The only file that is recompiled for another commit with equal code.
#include "verbs/version.h"

#include "device/cuda/supported_gpu.h"
#include "stepgate_commit.h"

namespace stepgate {

std::string version_text() {
  const std::string gpus = built_architectures();
  return "stepgate " STEPGATE_VERSION ", commit " STEPGATE_COMMIT +
         (gpus.empty() ? "" : ", for GPUs of " + gpus);
}

}  // namespace stepgate
