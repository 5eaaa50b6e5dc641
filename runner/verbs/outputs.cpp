// SPDX-License-Identifier: MIT
#include "verbs/outputs.h"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/files/folder_lock.h"
#include "base/files/line_file.h"
#include "base/files/write_file.h"
#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "line/planned.h"
#include "plan/step_plan.h"
#include "plugin/tables/kernel_file.h"
#include "report/exit_code.h"
#include "report/picture/pictures.h"
#include "report/trace/write_trace.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

using Path = std::filesystem::path;

struct Output {
  std::string option;
  Path file;
  bool is_folder = false;  // includes all files in it
};

// The inputs of the verb, as needed for checking its outputs.
struct Read {
  std::vector<Path> files;
  std::vector<Scenario> scenarios;  // without errors
};

// The files of kernels that variants of the scenario launch.
void add_files_of_kernels(const Scenario& scenario, std::vector<Path>& files) {
  for (const Variant& variant : scenario.variants) {
    for (const auto& [name, replacement] : variant.knobs.kernels) {
      try {
        std::ranges::copy(files_of_kernel(replacement.library), std::back_inserter(files));
      } catch (const RequestError&) {
        files.emplace_back(replacement.library);
      }
    }
  }
}

// Errors are ignored here, since the verb itself reads the files and reports them.
Read read_for_outputs(const Arguments& arguments) {
  Read read;
  std::vector<Path> files;
  try {
    files = scenario_files(arguments);
  } catch (const RequestError&) {
  }
  const auto base = [&](const std::string& file) {
    read.files.emplace_back(file);
    return read_file(file, "a scenario");
  };
  for (const Path& file : files) {
    read.files.push_back(file);
    const TextOrProblem text = read_file(file, "a scenario");
    if (std::holds_alternative<Diagnostic>(text)) continue;
    try {
      for (Scenario& scenario :
           parse_scenarios(std::get<std::string>(text), file.string(), base, arguments.overrides)) {
        add_files_of_kernels(scenario, read.files);
        if (has_wanted_tags(scenario, arguments)) read.scenarios.push_back(std::move(scenario));
      }
    } catch (const RequestError&) {
    }
  }
  return read;
}

// One row per option: the file that it names, and whether standard output is allowed.
struct Option {
  std::string name;
  const Path* file;
  std::string against_stream;  // why it is not allowed; empty where it is
};

std::vector<Option> options_of(const Arguments& arguments) {
  const std::string goes_on = "is a folder";
  const std::string several = "writes several files";
  const std::string appended = "is added to what is there";
  const std::string read_too = "is read first";
  std::vector<Option> options{{"--json", &arguments.json, ""},
                              {"--junit", &arguments.junit, ""},
                              {"--summary", &arguments.summary, ""},
                              {"--report", &arguments.report, ""},
                              {"--picture", &arguments.picture, ""},
                              {"--plot", &arguments.plot, several},
                              {"--trace", &arguments.trace, several},
                              {"--ledger", &arguments.ledger, goes_on},
                              {"--ledger", &arguments.keep.ledger, read_too},
                              {"--measure", &arguments.profile, ""},
                              {"--accept", &arguments.attach.accept, ""},
                              {"--as-scenario", &arguments.read.scenario, ""},
                              {step_summary_variable, &arguments.step_summary, appended}};
  std::erase_if(options, [](const Option& option) { return option.file->empty(); });
  return options;
}

// Adds a trace file for every variant.
void add_traces(const Path& asked_for, std::span<const Scenario> scenarios,
                std::vector<Output>& outputs) {
  for (const Scenario& scenario : scenarios) {
    for (const Variant& variant : scenario.variants) {
      StepPlan plan;
      plan.scenario = scenario.name;
      plan.variant = variant.name;
      outputs.push_back({"--trace", trace_file(asked_for, plan)});
    }
  }
}

void add_pictures(const Path& asked_for, std::span<const Scenario> scenarios,
                  std::vector<Output>& outputs) {
  if (scenarios.size() <= 1) return outputs.push_back({"--picture", asked_for});
  const auto add = [&](const std::string& name) {
    StepPlan plan;
    plan.scenario = name;
    outputs.push_back({"--picture", picture_file(asked_for, plan, scenarios.size())});
  };
  std::string swept;
  for (const Scenario& scenario : scenarios) {
    add(scenario.name);
    if (!scenario.point || scenario.file == swept) continue;
    swept = scenario.file;
    add(name_of_file(scenario));
  }
}

// The only list of all files that the verb writes because of an option.
std::vector<Output> outputs_of(const Arguments& arguments, std::span<const Scenario> scenarios) {
  std::vector<Output> outputs;
  for (const Option& option : options_of(arguments)) {
    const Path& file = *option.file;
    if (option.name == "--picture") {
      add_pictures(file, scenarios, outputs);
    } else if (option.name == "--trace") {
      add_traces(file, scenarios, outputs);
    } else {
      const bool is_folder =
          &file == &arguments.ledger || (option.name == "--plot" && file.extension() != ".svg");
      outputs.push_back({option.name, file, is_folder});
    }
  }
  return outputs;
}

// Identifies a file under all its names: by path and, for hard links, by inode.
struct Identity {
  Path place;
  std::optional<std::pair<dev_t, ino_t>> number;
};

// Returns nullopt for a device, which may be several outputs at once.
std::optional<Identity> identity_of(const Path& path) {
  std::error_code failed;
  const Path absolute = std::filesystem::absolute(path, failed);
  Identity identity{.place = std::filesystem::weakly_canonical(absolute, failed), .number = {}};
  if (failed) identity.place = absolute;  // such as a link to a pipe
  struct stat status {};
  const bool is_there = is_standard_output(path) ? ::fstat(STDOUT_FILENO, &status) == 0
                                                 : ::stat(path.c_str(), &status) == 0;
  if (!is_there) return identity;
  if (S_ISCHR(status.st_mode)) return std::nullopt;
  identity.number = {status.st_dev, status.st_ino};
  return identity;
}

// Files that are in use, with their owners.
class Files {
 public:
  // Returns the owner of a file that is already in use. Otherwise assigns the file to the given
  // owner and returns nullopt.
  std::optional<std::string> take(const Path& path, const std::string& owner) {
    const auto identity = identity_of(path);
    if (!identity) return std::nullopt;
    if (auto before = owner_of(*identity)) return before;
    by_place_.emplace(identity->place, owner);
    if (identity->number) by_number_.emplace(*identity->number, owner);
    return std::nullopt;
  }

  std::optional<std::string> owner_of(const Identity& identity) const {
    if (const auto found = by_place_.find(identity.place); found != by_place_.end())
      return found->second;
    if (!identity.number) return std::nullopt;
    const auto found = by_number_.find(*identity.number);
    return found != by_number_.end() ? std::optional(found->second) : std::nullopt;
  }

  // Returns the owner of any file below the folder.
  std::optional<std::string> owner_in(const Path& folder) const {
    const auto identity = identity_of(folder);
    if (!identity) return std::nullopt;
    const auto found = by_place_.lower_bound(identity->place / "");
    if (found == by_place_.end()) return std::nullopt;
    const auto below = found->first.lexically_relative(identity->place);
    return !below.empty() && *below.begin() != ".." ? std::optional(found->second) : std::nullopt;
  }

 private:
  std::map<Path, std::string> by_place_;
  std::map<std::pair<dev_t, ino_t>, std::string> by_number_;
};

// Inputs include folders of scenarios: a TOML file written there would be a scenario next time.
class Inputs {
 public:
  void add(const Path& path) {
    if (path.empty()) return;
    std::error_code missing;
    (void)(std::filesystem::is_directory(path, missing) ? folders_ : files_)
        .take(path, path.string());
  }

  std::optional<std::string> named_by(const Path& output) const {
    const auto identity = identity_of(output);
    if (!identity) return std::nullopt;
    if (auto file = files_.owner_of(*identity)) return file;
    const auto folder = identity_of(identity->place.parent_path());
    return output.extension() == ".toml" && folder ? folders_.owner_of(*folder) : std::nullopt;
  }

 private:
  Files files_;
  Files folders_;
};

// Adds profiles and stored runs.
void add_files_of_baselines(const Path& baselines, Inputs& inputs) {
  std::error_code unreadable;
  for (auto entry = std::filesystem::recursive_directory_iterator(
           baselines, std::filesystem::directory_options::skip_permission_denied, unreadable);
       !unreadable && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(unreadable)) {
    if (entry->path().extension() == ".toml") inputs.add(entry->path());
  }
}

// An option whose files are both read and written refuses files of another kind itself.
bool is_its_own_input(const Output& output) {
  return output.option == "--ledger" || output.option == "--measure";
}

void refuse_over(const Inputs& inputs, const Output& output) {
  const auto input = inputs.named_by(output.file);
  if (!input) return;
  throw RequestError(
      output.option + " " + output.file.string() + " would be written over what is read, " + *input,
      "give it a name of its own");
}

[[noreturn]] void refuse_two(const Output& output, const std::string& before) {
  throw RequestError(
      output.option + " and " + before + " name the same file, " + output.file.string(),
      "give each a file of its own");
}

void refuse_two_of_one_file(std::span<const Output> outputs) {
  Files taken;
  for (const Output& output : outputs) {
    if (output.is_folder) continue;
    if (const auto before = taken.take(output.file, output.option)) refuse_two(output, *before);
  }
  for (const Output& output : outputs) {
    if (!output.is_folder) continue;
    if (const auto before = taken.owner_in(output.file)) refuse_two(output, *before);
    if (const auto before = taken.take(output.file, output.option)) refuse_two(output, *before);
  }
}

// Refuses a page of the step that would wait for a reader.
void refuse_step_summary(const Path& file) {
  struct stat status {};
  if (file.empty() || ::stat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode) ||
      S_ISCHR(status.st_mode))
    return;
  throw RequestError(fmt::format("{} {} is no ordinary file", step_summary_variable, file.string()),
                     "name one, or unset the variable");
}

void refuse_streams(const Arguments& arguments, std::size_t scenarios) {
  for (const Option& option : options_of(arguments)) {
    if (!is_standard_output(*option.file)) continue;
    std::string why = option.against_stream;
    if (option.name == "--picture" && scenarios > 1) why = "draws a file for every scenario";
    if (!why.empty())
      throw RequestError(option.name + " " + why + ", and standard output is not that",
                         "name a file");
    std::cout.rdbuf(std::cerr.rdbuf());
  }
}

}  // namespace

namespace {

// Has what was said about outputs that could not be written.
std::set<std::string>& failed_outputs() {
  static std::set<std::string> said;
  return said;
}

}  // namespace

void write_output(const std::function<void()>& write) {
  try {
    write();
  } catch (const RequestError& error) {
    if (failed_outputs().insert(error.what()).second) std::cerr << error.what() << '\n';
  }
}

int status_after_outputs(int status) {
  if (!std::cout.flush() && failed_outputs().insert("standard output").second)
    std::cerr << "standard output cannot be written; make room, or write it elsewhere\n";
  if (failed_outputs().empty()) return status;
  // Another status is that of a signal, or of a program that ran under `attach`.
  for (const ExitCode code : {ExitCode::passes, ExitCode::fails, ExitCode::device_failed,
                              ExitCode::not_gated, ExitCode::undecided}) {
    if (status == status_of(code)) return status_of(gravest(code, ExitCode::wrong_request));
  }
  return status;
}

int descriptor_of_text() {
  return std::cout.rdbuf() == std::cerr.rdbuf() ? STDERR_FILENO : STDOUT_FILENO;
}

void check_outputs(const Arguments& arguments, std::span<const Path> more) {
  if (options_of(arguments).empty()) return;
  const Read read = read_for_outputs(arguments);
  refuse_step_summary(arguments.step_summary);
  refuse_streams(arguments, read.scenarios.size());
  Inputs asked_for;
  for (const std::span<const Path> given :
       {std::span<const Path>(arguments.files), std::span<const Path>(read.files), more}) {
    for (const Path& path : given) asked_for.add(path);
  }
  Inputs all = asked_for;
  for (const Path& folder : arguments.device.baselines.profile_folders())
    add_files_of_baselines(folder, all);
  const std::vector<Output> outputs = outputs_of(arguments, read.scenarios);
  for (const Output& output : outputs)
    refuse_over(is_its_own_input(output) ? asked_for : all, output);
  refuse_two_of_one_file(outputs);
  for (const Output& output : outputs) {
    if (output.file.filename() == lock_file_name) {
      throw RequestError(output.option + " " + output.file.string() +
                             " is the lock of its folder, which comes and goes",
                         "give it another name");
    }
    if (output.is_folder) continue;
    // Nobody asked for this one, and a job may have taken its folder away.
    if (output.option == step_summary_variable) continue;
    check_writable(output.file);
    // Runs append lines to this existing file.
    if (output.option == "--json") check_line_file(output.file);
  }
}

int say_interrupted(const std::string& what) {
  std::vector<std::string> files;
  for (const Path& file : files_written()) files.push_back(file.generic_string());
  std::cerr << fmt::format(
      "interrupted: {}; {}\n", what,
      files.empty() ? "nothing was written" : fmt::format("written: {}", fmt::join(files, ", ")));
  return interrupted_exit_code(interrupted);
}

}  // namespace stepgate
