// SPDX-License-Identifier: MIT
#include "verbs/outputs.h"

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

using Path = std::filesystem::path;

struct Output {
  std::string option;
  Path file;
};

std::vector<Output> outputs_of(const Arguments& arguments) {
  std::vector<Output> outputs;
  for (const auto& [option, file] : {std::pair{"--json", &arguments.json},
                                     {"--junit", &arguments.junit},
                                     {"--summary", &arguments.summary},
                                     {"--report", &arguments.report},
                                     {"--picture", &arguments.picture},
                                     {"--memory-snapshot", &arguments.memory_snapshot},
                                     {"--plot", &arguments.plot},
                                     {"--evidence", &arguments.evidence}}) {
    if (!file->empty()) outputs.push_back({option, *file});
  }
  for (const ExportRequest& request : arguments.exports)
    outputs.push_back({"--export", request.file});
  return outputs;
}

// Also where one of them is not there yet. A device takes any number of outputs.
bool are_one_file(const Path& one, const Path& other) {
  std::error_code ignored;
  if (std::filesystem::is_character_file(one, ignored)) return false;
  if (std::filesystem::equivalent(one, other, ignored)) return true;
  const auto place = [&](const Path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
  };
  return place(one) == place(other);
}

bool is_over(const Path& output, const Path& input) {
  std::error_code missing;
  if (!std::filesystem::is_directory(input, missing)) return are_one_file(output, input);
  const Path folder = output.has_parent_path() ? output.parent_path() : Path(".");
  return output.extension() == ".toml" && are_one_file(folder, input);
}

}  // namespace

void refuse_outputs_over(std::span<const Path> inputs, const Arguments& arguments) {
  const std::vector<Output> outputs = outputs_of(arguments);
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    const Output& output = outputs[index];
    for (const Path& input : inputs) {
      if (input.empty() || !is_over(output.file, input)) continue;
      throw RequestError(output.option + " " + output.file.string() +
                             " would be written over what is read, " + input.string(),
                         "give it a name of its own");
    }
    for (std::size_t before = 0; before < index; ++before) {
      if (!are_one_file(output.file, outputs[before].file)) continue;
      throw RequestError(output.option + " and " + outputs[before].option +
                             " name the same file, " + output.file.string(),
                         "give each a file of its own");
    }
  }
}

}  // namespace stepgate
