// SPDX-License-Identifier: MIT
// Detects from environment variables the launcher that started this process together with others.
// Depends only on the variables and starts nothing.
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
  bool on_one_host = false;  // whether all ranks are, as far as the launcher tells
  // A name that all ranks of this start share, unique among the concurrent starts of this user;
  // empty where the launcher does not provide one.
  std::string job;
  bool operator==(const LaunchedAs&) const = default;
};

// Returns the value of a variable; nullopt where it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables variables_of_this_process();

// Returns nullopt without a launcher, or with a launcher of a single process. Throws RequestError
// for the variables of two launchers, and for incomplete or invalid ones.
std::optional<LaunchedAs> launched_as(const Variables&);

}  // namespace stepgate
