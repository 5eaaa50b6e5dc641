// SPDX-License-Identifier: MIT
// Hides secrets in the command line of a user's program before it is printed or kept.
#pragma once

#include "base/process/command.h"

namespace stepgate {

// "***" in place of every word, or of the value in "--name=value", that looks like a secret: by the
// name of its option (token, password, secret, key), by the beginnings that providers give their
// tokens, or by being 32 or more letters and digits without a separator of paths or words.
Command masked(Command);

}  // namespace stepgate
