// SPDX-License-Identifier: MIT
// Finds the launcher that started this process beside others like it, from what launchers say in
// the environment. A function of variables, which starts nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stepgate {

enum class Launcher { torchrun, slurm, open_mpi };

std::string_view name_of(Launcher);  // "torchrun"

struct LaunchedAs {
  Launcher launcher = Launcher::torchrun;
  int rank = 0;
  int local_rank = 0;  // on its host
  int count = 1;
  bool on_one_host = false;  // all of them, as far as the launcher says
  // Name that all ranks of this start share, and no other start of this user at the same time;
  // empty where the launcher does not say.
  std::string job;
  bool operator==(const LaunchedAs&) const = default;
};

// The value of a variable; nothing where it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables variables_of_this_process();

// Nothing where there is no launcher, or only one process of it. Throws RequestError for the
// variables of two launchers, and for those of one that are incomplete or make no sense.
std::optional<LaunchedAs> launched_as(const Variables&);

}  // namespace stepgate
