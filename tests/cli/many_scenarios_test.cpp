// SPDX-License-Identifier: MIT
// A thousand scenario files are read and planned while one waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

constexpr int file_count = 1000;
constexpr double expected_seconds = 2;  // in a release build
constexpr double slack = 10;            // for sanitizers and a busy machine

// Every knob that changes the shape of the plan takes another value now and then.
std::string scenario_text(int number) {
  const auto pick = [number](int stride, const std::vector<std::string>& choices) {
    return choices[static_cast<std::size_t>(number / stride) % choices.size()];
  };
  const std::string number_text = std::to_string(number);
  return "claim = \"scenario " + number_text +
         " of many\"\ntags = [\"many\"]\n[model]\nlayers = " + pick(1, {"2", "4", "8", "16"}) +
         "\nhidden = " + std::to_string(8 * (1 + number % 128)) + "\ndtype = \"" +
         pick(4, {"fp32", "tf32", "bf16"}) + "\"\n[batch]\nsize = " + std::to_string(1 + number) +
         "\n[optim]\nkind = \"" + pick(2, {"sgd", "adamw"}) +
         "\"\n[variant.baseline]\nsync = { where = \"" + pick(3, {"step", "phase", "op"}) +
         "\", how = \"" + pick(5, {"device", "stream", "item"}) +
         "\" }\n[variant.copies]\ntransfer = { host = \"" + pick(7, {"pageable", "pinned"}) +
         "\" }\n[variant.fix]\n[expect]\n"
         "faster = \"fix.samples_per_s >= 1.05 * baseline.samples_per_s\"\n"
         "no_waits = \"fix.host_waits_per_step == 0\"\n";
}

TEST_F(CommandLine, ChecksAThousandScenariosInTwoSeconds) {
  for (int number = 0; number < file_count; ++number) {
    write("many/" + std::to_string(number) + ".toml", scenario_text(number));
  }
  const auto start = std::chrono::steady_clock::now();
  const Finished checked = stepgate({"check", "many"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%d scenarios, 3 variants each, read and planned in %.2f s\n", file_count,
              took.count());
  ASSERT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(std::count(checked.out.begin(), checked.out.end(), '\n'), file_count);
  EXPECT_LT(took.count(), slack * expected_seconds);
}

}  // namespace
}  // namespace stepgate
