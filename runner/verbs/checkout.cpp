// SPDX-License-Identifier: MIT
#include "verbs/checkout.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/process/run_program.h"

namespace stepgate {
namespace {

// Nothing is written, and no hook, no monitor of files and no repository runs that lies among the
// files of a checkout (as a folder that is the inside of a bare one).
std::optional<std::string> ask_git(const std::filesystem::path& folder,
                                   std::vector<std::string> question) {
  std::vector<std::string> command{
      "git", "--no-optional-locks",  "-c", "safe.bareRepository=explicit",
      "-c",  "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
      "-C",  folder.string()};
  command.insert(command.end(), std::make_move_iterator(question.begin()),
                 std::make_move_iterator(question.end()));
  return first_line_of(command);
}

// Programs that git passes files through before it compares them, which no option turns off: those
// that the repository or the working tree configures, not those of the user.
bool filters_files(const std::filesystem::path& folder) {
  return first_line_of({"env", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "git", "-c",
                        "safe.bareRepository=explicit", "-C", folder.string(), "config",
                        "--includes", "--name-only", "--get-regexp",
                        "^filter\\..*\\.(clean|process|smudge)$"})
      .has_value();
}

// Submodules have configurations of their own, so nothing is asked in their working trees.
bool is_dirty(const std::filesystem::path& folder) {
  return ask_git(folder, {"diff", "--no-ext-diff", "--no-textconv", "--name-only",
                          "--ignore-submodules=dirty", "HEAD"})
      .has_value();
}

}  // namespace

std::string commit_of_checkout(const std::filesystem::path& folder) {
  if (filters_files(folder)) return "unknown";
  const auto commit = ask_git(folder, {"describe", "--always", "--abbrev=40", "--exclude=*"});
  if (!commit) return "unknown";
  return is_dirty(folder) ? *commit + "-dirty" : *commit;
}

}  // namespace stepgate
