// SPDX-License-Identifier: MIT
// What was typed. Declared and checked in command_line.cpp; a verb reads what concerns it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "device/open_device.h"
#include "report/exit_code.h"

namespace stepgate {

struct Arguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
  std::string variant;
  std::string filter;
  std::filesystem::path json;
  std::filesystem::path profile;
  std::string date;
  std::string commit;
  std::int64_t runs = 1;
  DeviceChoice device{.spec = {}, .baselines = STEPGATE_BASELINES, .seed = 0};
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> seed;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
};

}  // namespace stepgate
