// SPDX-License-Identifier: MIT
// Hides secrets in the command line of a user's program before it is printed or kept.
#pragma once

#include "base/process/command.h"

namespace stepgate {

// "***" in place of every value that looks like a secret, in words of their own and within those
// of scripts (`sh -c 'TOKEN=abc ...'`, `python3 -c`, headers, JSON): by a name with a part like
// token, key, password, pwd, secret, auth, credential or pat; as user of a URL; by the beginnings
// that providers give their tokens; or by being 32 or more letters with digits among them that are
// no path.
Command masked(Command);

}  // namespace stepgate
