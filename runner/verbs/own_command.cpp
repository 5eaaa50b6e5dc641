// SPDX-License-Identifier: MIT
#include "verbs/own_command.h"

#include "support/process/run_program.h"

namespace stepgate {

Command own_command(const Arguments& arguments, const std::string& verb, const std::string& device,
                    std::uint64_t seed, std::span<const std::filesystem::path> files,
                    const std::vector<std::string>& more) {
  Command words{path_of_this_program().string(),
                "--baselines",
                arguments.device.baselines.string(),
                verb,
                "--seed",
                std::to_string(seed)};
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  for (const std::string& knob : arguments.overrides) words.insert(words.end(), {"--set", knob});
  for (const std::string& tag : arguments.tags) words.insert(words.end(), {"--tag", tag});
  for (const std::string& tag : arguments.excluded_tags)
    words.insert(words.end(), {"--exclude-tag", tag});
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--");
  for (const auto& file : files) words.push_back(file.string());
  return words;
}

}  // namespace stepgate
