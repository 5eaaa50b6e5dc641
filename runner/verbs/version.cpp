// SPDX-License-Identifier: MIT
// The only file that is compiled anew for another commit of the same code.
#include "verbs/version.h"

#include "stepgate_commit.h"

namespace stepgate {

std::string version_text() {
  return "stepgate " STEPGATE_VERSION ", commit " STEPGATE_COMMIT;
}

}  // namespace stepgate
