// SPDX-License-Identifier: MIT
// For tests only: a fresh folder with scenario files, and the built stepgate run in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/child_process.h"

namespace stepgate {

// A scenario with twenty kernels against ten, of 20 microseconds each: `fix` takes half the time of
// `baseline`. `expect` has one assertion; `more` comes before the variants.
inline std::string two_variants(const std::string& expect, const std::string& more = "") {
  return "claim = \"half the kernels take half the time\"\n"
         "model = { kind = \"spin\", kernel_us = 20 }\n" +
         more +
         "[variant.baseline]\nmodel.kernels = 20\n"
         "[variant.fix]\nmodel.kernels = 10\n"
         "[expect]\nline = \"" +
         expect + "\"\n";
}

const std::string holding = two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s");
const std::string fails = two_variants("fix.samples_per_s >= 3 * baseline.samples_per_s");
// Two equal variants exactly at the limit: twelve rounds do not decide.
const std::string undecided =
    "claim = \"a variant is as fast as itself\"\n"
    "model = { kind = \"spin\", kernels = 10 }\n"
    "measure = { rounds = 12 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 1 * baseline.samples_per_s\"\n";
// The scenario has so many kernels, exactly at the limit, that the run never ends in practice.
const std::string endless =
    "claim = \"a variant is as fast as itself\"\n"
    "model = { kind = \"spin\", kernels = 1000 }\n"
    "measure = { rounds = 100000, max_seconds = 86400 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 1 * baseline.samples_per_s\"\n";

// A scenario that calibrates the size of a sample.
const std::string calibrated =
    "claim = \"a copy of a third of the step\"\n"
    "model = { kind = \"spin\", kernels = 10, kernel_us = 50 }\n"
    "batch.sample_bytes = \"64 KiB\"\ntransfer.host = \"pinned\"\n"
    "[calibrate]\nbatch.sample_bytes = \"fix.h2d_share ~= 30% within 5%\"\n"
    "[variant.fix]\n[expect]\nshare = \"fix.h2d_share ~= 30% within 20%\"\n";

// Standard error of `run -v`, without the line about wall time.
inline std::string without_clock(std::string err) {
  const std::size_t at = err.find(" s on the clock: ");
  if (at == std::string::npos) return err;
  const std::size_t line = err.rfind('\n', at) + 1;
  return err.erase(line, err.find('\n', at) + 1 - line);
}

// Sets an environment variable for child processes, until its destructor.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() {
    before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    std::string name = testing::TempDir() + "stepgate_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = name;
    ::unsetenv("CI");  // it changes stepgate's behaviour; tests set it explicitly
    std::filesystem::create_directory(place());
  }
  ~CommandLine() override { std::filesystem::remove_all(root_); }

  // The working folder of stepgate; its output is beside this folder.
  std::filesystem::path place() const { return root_ / "place"; }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((place() / file).parent_path());
    std::ofstream(place() / file) << text;
  }

  Finished stepgate(const std::vector<std::string>& arguments) const {
    return ChildProcess(STEPGATE_PROGRAM, arguments, place()).wait();
  }

  // Arguments for `run` on a simulated device with constant times and the same noise every time,
  // with verbose output.
  static std::vector<std::string> simulating(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run"});
    arguments.insert(arguments.end(), {"--device", "simulated:round-numbers", "--seed", "1", "-v"});
    return arguments;
  }
  Finished simulate(std::vector<std::string> arguments) const {
    return stepgate(simulating(std::move(arguments)));
  }

  bool exists(const std::string& file) const { return std::filesystem::exists(place() / file); }

  std::int64_t lines_of(const std::string& file) const {
    std::ifstream text(place() / file);
    return std::count(std::istreambuf_iterator<char>(text), {}, '\n');
  }

 private:
  std::filesystem::path root_;
};

// For a script that replaces a program: inserts options between its verb and its files.
inline std::string adding(const std::string& options) {
  return "folder=$2 verb=$3; shift 3; set -- --baselines \"$folder\" $verb " + options +
         " \"$@\"; ";
}

inline bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace stepgate
