// SPDX-License-Identifier: MIT
#include "line/provenance.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/fnv1a.h"
#include "base/process/run_program.h"
#include "base/text/diagnostic.h"
#include "base/toml/toml_text.h"

namespace stepgate {
namespace {

constexpr std::chrono::minutes longest_answer{10};

// Runs git on the checkout that contains a folder, and writes nothing. Files there may be
// untrusted, and a repository may name programs for git to run: hooks, file monitors and bare
// repositories inside the checkout are disabled.
std::optional<std::string> ask_git(const std::filesystem::path& folder,
                                   std::vector<std::string> question) {
  std::vector<std::string> command{
      "git", "--no-optional-locks",  "-c", "safe.bareRepository=explicit",
      "-c",  "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
      "-C",  folder.string()};
  command.insert(command.end(), std::make_move_iterator(question.begin()),
                 std::make_move_iterator(question.end()));
  return first_line_of(std::move(command), longest_answer);
}

// Returns whether the repository or the working tree configures filter programs, which git runs
// before comparing files. No option disables them. The user's own filters are trusted.
bool filters_files(const std::filesystem::path& folder) {
  return first_line_of({"git", "-c", "safe.bareRepository=explicit", "-C", folder.string(),
                        "config", "--includes", "--name-only", "--get-regexp",
                        "^filter\\..*\\.(clean|process|smudge)$"},
                       longest_answer, {"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"})
      .has_value();
}

// Submodules have their own configurations, so git does not look into their working trees.
bool is_dirty(const std::filesystem::path& folder) {
  return ask_git(folder, {"diff", "--no-ext-diff", "--no-textconv", "--name-only",
                          "--ignore-submodules=dirty", "HEAD"})
      .has_value();
}

// The commit, with "-dirty" where tracked files differ from it. "unknown" where there is no
// repository, or where comparing files would make git run a program from the repository's own
// configuration.
std::string commit_of_checkout(const std::filesystem::path& folder) {
  if (filters_files(folder)) return "unknown";
  const auto commit = ask_git(folder, {"describe", "--always", "--abbrev=40", "--exclude=*"});
  if (!commit) return "unknown";
  return is_dirty(folder) ? *commit + "-dirty" : *commit;
}

}  // namespace

std::string commit_of(const LineArguments& arguments, const std::filesystem::path& scenario_file) {
  if (!arguments.commit.empty()) return arguments.commit;
  const std::filesystem::path folder =
      scenario_file.has_parent_path() ? scenario_file.parent_path() : ".";
  return commit_of_checkout(folder);
}

std::string build_in_words() {
  return hexadecimal(digest_of_this_program());
}

std::string subject_under_test(const LineArguments& arguments) {
  const std::string& given = arguments.subject;
  if (given.empty()) return "build " + build_in_words();
  if (std::any_of(given.begin(), given.end(), [](char c) { return c < ' ' || c > '~'; })) {
    throw RequestError("--subject has a character that is not printable ASCII",
                       "name a commit or a version");
  }
  return given;
}

std::string date_of(const LineArguments& arguments) {
  if (!arguments.date.empty()) return arguments.date;
  return fmt::format(
      "{:%FT%TZ}",
      fmt::gmtime(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())));
}

namespace {

// A hash of this boot's identifier; empty where the system does not provide one.
std::string number_of_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  return std::getline(file, line) ? hexadecimal(fnv1a(line)) : "";
}

}  // namespace

Provenance provenance_of(const LineArguments& arguments, const Scenario& scenario,
                         std::uint64_t seed, DeviceKind kind) {
  return {.date = date_of(arguments),
          .commit = commit_of(arguments, scenario.file),
          .stepgate = STEPGATE_VERSION,
          .scenario = scenario.fingerprint,
          .seed = seed,
          .boot = kind == DeviceKind::cuda ? number_of_boot() : ""};
}

}  // namespace stepgate
