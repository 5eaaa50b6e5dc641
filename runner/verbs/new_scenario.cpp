// SPDX-License-Identifier: MIT
// The verb that writes a scenario for the user to edit.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files/write_file.h"
#include "base/process/command.h"
#include "base/text/diagnostic.h"
#include "base/text/nearest.h"
#include "report/exit_code.h"
#include "scenario/knobs/field_documents.h"
#include "scenario/read/read_scenario.h"
#include "verbs/starters.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

// The schema that an editor finds by the first line of a scenario.
constexpr const char* schema_name = "scenario.schema.json";

// Lists all available starting scenarios with their claims.
[[noreturn]] void refuse_none() {
  std::vector<Diagnostic> lines{{{}, "--like is missing", "say what the file begins with:"}};
  for (const Starter& starter : starters()) {
    const std::string word(starter.word);
    lines.push_back(
        {{}, fmt::format("--like {}: {}", word, parse_scenario(starter.text, word).claim), ""});
  }
  throw RequestError(std::move(lines));
}

const Starter& starter_like(const std::string& like) {
  if (like.empty()) refuse_none();
  const auto found = std::ranges::find(starters(), like, &Starter::word);
  if (found != starters().end()) return *found;
  std::vector<std::string_view> words;
  for (const Starter& starter : starters()) words.push_back(starter.word);
  throw RequestError("there is no --like '" + like + "'",
                     did_you_mean(like, words, "`stepgate new` lists what there is"));
}

void refuse_as_name(const std::filesystem::path& file, const std::string& own_name) {
  std::error_code unknown;
  if (!file.has_filename() || std::filesystem::is_directory(file, unknown)) {
    throw RequestError({{file.generic_string(), 0, 0},
                        "is a folder",
                        "name the file in it: " + (file / own_name).generic_string()});
  }
  if (file.extension() == ".toml") return;
  // A file of any name can be read when named itself, but without the ending .toml it would be
  // silently ignored in a folder.
  std::filesystem::path named = file;
  throw RequestError({{file.generic_string(), 0, 0},
                      "does not end in .toml, and of a folder only files that do are scenarios",
                      "say " + named.replace_extension(".toml").generic_string()});
}

}  // namespace

int new_scenario(const Arguments& arguments) {
  const std::filesystem::path& file = arguments.starter.file;
  const Starter& starter = starter_like(arguments.starter.like);
  const std::string own_name = std::string(starter.word) + ".toml";
  if (file.empty()) {
    throw RequestError("no file to write",
                       fmt::format("say `stepgate new --like {} {}`", starter.word, own_name));
  }
  if (is_standard_output(file)) {
    std::cout << starter.text;
    return status_of(ExitCode::passes);
  }
  require_a_path_to_show(file.generic_string());
  refuse_as_name(file, own_name);
  const std::filesystem::path schema = file.parent_path() / schema_name;
  write_new_file(file, fmt::format("#:schema {}\n{}", schema_name, starter.text));
  std::error_code unknown;
  if (!std::filesystem::exists(schema, unknown)) {
    write_new_file(schema, fields_json_schema());
    std::cout << schema.string() << ": editors complete and check scenarios with it\n";
  }
  const std::string name = file_word(file);
  std::cout << file.string() << ": change what its comments speak of, then `"
            << to_text({"stepgate", "check", "--strict", name}) << "` and `"
            << to_text({"stepgate", "run", name}) << "`\n";
  return status_of(ExitCode::passes);
}

}  // namespace stepgate
