// SPDX-License-Identifier: MIT
// The only file that is compiled anew for another commit of the same code.
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
