// SPDX-License-Identifier: MIT
// `stepgate history` reads the stored runs of `accept` or of a ledger, on all devices, and says
// whether step times drift over weeks. Measures nothing.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <system_error>

#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "base/text/text_stream.h"
#include "ledger/baseline/baseline_file.h"
#include "ledger/series/history.h"
#include "line/planned.h"
#include "report/picture/pictures.h"
#include "report/text/print_history.h"
#include "report/text/table.h"
#include "scenario/read/read_scenario.h"
#include "verbs/machine_reports.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

using Paths = std::vector<std::filesystem::path>;

Paths folders_to_read(const Arguments& arguments) {
  const bool is_ledger = !arguments.ledger.empty();
  const std::filesystem::path& baselines =
      is_ledger ? arguments.ledger : arguments.device.baselines.users;
  std::error_code unreadable;
  if (!std::filesystem::is_directory(baselines, unreadable)) {
    throw RequestError(
        fmt::format("there is no {} '{}'",
                    is_ledger ? "folder of a ledger" : "folder of stored runs", baselines.string()),
        is_ledger
            ? "name one: --ledger DIR, where `stepgate run --ledger` keeps runs"
            : "`stepgate accept` makes it; --baselines DIR or STEPGATE_BASELINES name another");
  }
  return folders_of_devices(baselines);
}

// Reads all files before it throws, so that all errors are reported at once.
std::vector<Scenario> read_all(const Arguments& arguments) {
  std::vector<Scenario> scenarios;
  std::vector<Diagnostic> wrong;
  for (const std::filesystem::path& file : scenario_files(arguments)) {
    try {
      for (Scenario& scenario : read_scenarios(file)) scenarios.push_back(std::move(scenario));
    } catch (const RequestError& error) {
      wrong.insert(wrong.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  return scenarios;
}

struct Stored {
  std::vector<VariantHistory> histories;
  std::vector<std::string> missing;  // "a/x": no run of it is stored on any device
};

void add_missing(const Scenario& scenario, Stored& stored) {
  for (const Variant& variant : scenario.variants) {
    const bool known = std::ranges::any_of(stored.histories, [&](const VariantHistory& history) {
      return history.scenario == scenario.name && history.variant == variant.name;
    });
    if (!known) stored.missing.push_back(scenario.name + "/" + variant.name);
  }
}

Stored read_stored(const std::vector<Scenario>& scenarios, const Arguments& arguments) {
  Stored stored;
  std::vector<Diagnostic> wrong;
  const Paths folders = folders_to_read(arguments);
  for (const Scenario& scenario : scenarios) {
    if (is_planned_only(scenario)) continue;
    for (const std::filesystem::path& folder : folders) {
      try {
        const auto baseline =
            read_baseline_if_any(folder / (scenario.name + ".toml"), scenario.name,
                                 arguments.ledger.empty() ? "baseline" : "ledger");
        if (!baseline) continue;
        for (VariantHistory& history : histories_of(*baseline, scenario))
          stored.histories.push_back(std::move(history));
      } catch (const RequestError& error) {
        wrong.insert(wrong.end(), error.diagnostics().begin(), error.diagnostics().end());
      }
    }
    add_missing(scenario, stored);
  }
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  return stored;
}

ExitCode code_of(const Stored& stored) {
  ExitCode code = stored.missing.empty() ? ExitCode::passes : ExitCode::not_gated;
  for (const VariantHistory& history : stored.histories)
    code = gravest(code, exit_code(history.outcome));
  return code;
}

// Draws into one file for a single variant; otherwise into <folder>/<folder of the
// device>/<scenario>.<variant>.svg.
void draw_all(const Stored& stored, const std::filesystem::path& plot) {
  const bool is_file = plot.extension() == ".svg";
  if (is_file && stored.histories.size() != 1) {
    throw RequestError(fmt::format("--plot '{}' is one file, and there are {} variants to draw",
                                   plot.string(), stored.histories.size()),
                       "name a folder");
  }
  for (const VariantHistory& history : stored.histories) {
    TextStream picture;
    draw_history(picture, history);
    const std::filesystem::path of_device =
        std::filesystem::path(history.file).parent_path().filename();
    const std::string name = history.scenario + "." + history.variant + ".svg";
    write_output([&] { write_file(is_file ? plot : plot / of_device / name, picture.str()); });
  }
}

}  // namespace

int show_history(const Arguments& arguments) {
  check_outputs(arguments);
  const std::vector<Scenario> scenarios = read_all(arguments);
  if (std::ranges::all_of(scenarios, is_planned_only)) {
    throw RequestError("plans decide these scenarios, and nothing of them is stored",
                       "name one that is measured");
  }
  Stored stored = read_stored(scenarios, arguments);
  judge_drifts(stored.histories);
  const ExitCode code = code_of(stored);
  print_fitted(std::cout, style_of(STDOUT_FILENO), [&](std::ostream& out) {
    for (const VariantHistory& history : stored.histories) print_history(out, history);
    for (const std::string& variant : stored.missing)
      out << variant
          << (arguments.ledger.empty() ? ": no run is stored; `stepgate accept` stores one\n"
                                       : ": the ledger has no step time of it; a run with "
                                         "--ledger that is trusted keeps one\n");
    print_history_end(out, stored.histories, stored.missing.size(), code);
  });
  if (!arguments.plot.empty()) draw_all(stored, arguments.plot);
  if (!arguments.json.empty()) {
    TextStream json;
    write_history_json(json, run_info_of(arguments, scenarios.front().file, 0), stored.histories,
                       code);
    write_output([&] { write_file(arguments.json, json.str()); });
  }
  if (!arguments.report.empty()) {
    TextStream page;
    write_history_html(page, run_info_of(arguments, scenarios.front().file, 0), stored.histories,
                       stored.missing, code);
    write_output([&] { write_file(arguments.report, page.str()); });
  }
  return status_of(code);
}

}  // namespace stepgate
