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

// Of `stepgate duel` alone.
struct DuelArguments {
  std::string base;
  std::string head;
  bool commands = false;  // base and head are whole command lines
  std::string margin = "1%";
  std::optional<std::int64_t> pairs;
  std::vector<std::string> works;  // patterns
  double stall_seconds = 60;
};

struct Arguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
  std::string variant;
  std::string filter;
  std::filesystem::path json;
  std::filesystem::path profile;
  std::string date;
  DeviceChoice device{.spec = {}, .baselines = STEPGATE_BASELINES, .seed = 0};
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> seed;
  DuelArguments duel;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
};

}  // namespace stepgate
