// SPDX-License-Identifier: MIT
// The order of precedence is the order of the loops: later settings are applied over earlier ones.
#include "scenario/read/read_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/process/masked_words.h"
#include "base/require.h"
#include "base/text/nearest.h"
#include "base/text/visible_text.h"
#include "base/toml/toml.h"
#include "scenario/assertions/parse_expectation.h"
#include "scenario/knobs/check_knobs.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fingerprint.h"
#include "scenario/knobs/knob_rules.h"
#include "scenario/read/bases.h"
#include "scenario/read/scenario_draft.h"
#include "scenario/read/sweep.h"
#include "scenario/resnet_blocks.h"
#include "scenario/unet_levels.h"

namespace stepgate {
namespace {

// A knob set on the command line. read_scenario.h says which variants it applies to.

// Returns nullptr, and adds a diagnostic, when no such field can be set.
const Field* settable_field(std::string_view name, const Place& place,
                            std::vector<Diagnostic>& diagnostics) {
  const Field* field = field_named(name);
  if (field != nullptr && is_built(*field)) return field;
  if (field != nullptr) {
    diagnostics.push_back(
        {place, fmt::format("'{}' is not built yet", name), std::string(see_fields)});
    return nullptr;
  }
  diagnostics.push_back(
      {place, fmt::format("unknown key '{}'", name), hint_for_unknown_field(name)});
  return nullptr;
}

// Parses "batch.size=128" from a command line. Returns nullopt and adds a diagnostic when it is
// invalid.
std::optional<Setting> read_override(std::string_view argument,
                                     std::vector<Diagnostic>& diagnostics) {
  const Place place{fmt::format("--set {}", masked({std::string(argument)}).front()), 0, 0};
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) {
    diagnostics.push_back({place, "no '=' in it", "write --set batch.size=128"});
    return std::nullopt;
  }
  const Field* field = settable_field(argument.substr(0, equals), place, diagnostics);
  if (field == nullptr) return std::nullopt;
  TomlValue written = toml_of_argument(*field, argument.substr(equals + 1), place);
  if (field->name.size() < equals) {  // one key of a field that is a table
    std::string key(argument.substr(0, equals).substr(field->name.size() + 1));
    written = {TomlTable{{std::move(key), place, std::move(written)}}, place, place};
  }
  auto value = read_field_value(*field, written, diagnostics);
  if (!value) return std::nullopt;
  return Setting{field, std::move(*value), place};
}

constexpr std::string_view kind_of_file = "a scenario";
constexpr std::size_t most_files = 32;  // a scenario, its base, the base's base and so on

std::string beside(const std::string& file, const std::string& other) {
  return (std::filesystem::path(file).parent_path() / other).lexically_normal().generic_string();
}

class ScenarioReader {
 public:
  explicit ScenarioReader(const BaseReader& base) : base_(base) {}

  Scenario read(std::string_view text, const std::string& file,
                std::span<const std::string> overrides, const VariantChange* change) {
    require_a_path_to_show(file);
    read_files(text, file);
    for (const std::string& argument : overrides) {
      if (auto setting = read_override(argument, diagnostics_)) {
        overrides_.push_back(std::move(*setting));
      }
    }
    if (draft_.sweep) choose_a_point();
    if (change != nullptr) apply(*change);
    Scenario scenario = resolved(file);
    if (!diagnostics_.empty()) throw RequestError(std::move(diagnostics_));
    scenario.fingerprint = fingerprint_of(scenario);
    return scenario;
  }

 private:
  void fail(const Place& place, std::string message, std::string hint) {
    diagnostics_.push_back({place, std::move(message), std::move(hint)});
  }

  // The knob's value on the command line decides, or else the first of the sweep.
  void choose_a_point() {
    const SweepDraft& sweep = *draft_.sweep;
    for (const VariantDraft& variant : draft_.variants) {
      const auto own = std::ranges::find(variant.settings, sweep.field, &Setting::field);
      if (own == variant.settings.end()) continue;
      fail(own->place,
           fmt::format("variant '{}' sets '{}', which [sweep] sets for all variants", variant.name,
                       sweep.field->name),
           "remove it, or sweep another knob");
    }
    if (std::ranges::find(overrides_, sweep.field, &Setting::field) == overrides_.end())
      overrides_.push_back({sweep.field, sweep.values.front(), sweep.place});
  }

  std::optional<SweepPoint> point() const {
    if (!draft_.sweep) return std::nullopt;
    const Field& field = *draft_.sweep->field;
    SweepPoint point{std::string(field.name), field_value_text(field, value_of_point()),
                     number_in(value_of_point()).value_or(0),
                     std::holds_alternative<std::int64_t>(value_of_point())};
    for (const FieldValue& value : draft_.sweep->values)
      point.values.push_back(field_value_text(field, value));
    return point;
  }

  const FieldValue& value_of_point() const {
    const auto last = std::find_if(overrides_.rbegin(), overrides_.rend(), [&](const Setting& one) {
      return one.field == draft_.sweep->field;
    });
    require(last != overrides_.rend(), "a sweep has a point");
    return last->value;
  }

  // Reads the whole chain of bases first: the last base is drafted first, and the others override
  // it.
  void read_files(std::string_view text, const std::string& file) {
    std::vector<TomlTable> chain;
    std::vector<std::string> files;
    std::string name = std::filesystem::path(file).lexically_normal().generic_string();
    auto table = parse_toml(text, file, diagnostics_);
    while (table) {
      chain.push_back(std::move(*table));
      files.push_back(name);
      const auto extends = extends_of(chain.back());
      if (!extends) break;
      name = beside(name, extends->text);
      if (std::find(files.begin(), files.end(), name) != files.end()) {
        fail(extends->place, fmt::format("'{}' extends itself", name),
             fmt::format("break the circle {}", fmt::join(files, ", ")));
        break;
      }
      if (files.size() == most_files) {
        fail(extends->place, fmt::format("more than {} files extend each other", most_files),
             "write what the last ones say into one file");
        break;
      }
      table = read_base(*extends, name);
    }
    // If the text is not TOML, its required keys are not reported as missing.
    unreadable_ = chain.empty();
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) read_into(draft_, *at, diagnostics_);
  }

  std::optional<TomlTable> read_base(const PlacedText& extends, const std::string& name) {
    TextOrProblem text = base_(name);
    if (const auto* problem = std::get_if<Diagnostic>(&text)) {
      fail(extends.place, fmt::format("extends '{}': {}", extends.text, problem->message),
           problem->hint);
      return std::nullopt;
    }
    return parse_toml(std::get<std::string>(text), name, diagnostics_);
  }

  void apply(const VariantChange& change) {
    const auto variant = std::ranges::find(draft_.variants, change.variant, &VariantDraft::name);
    if (change.knob == like_key && variant != draft_.variants.end()) return variant->like.reset();
    const Field* field = field_named(change.knob);
    require(field != nullptr && variant != draft_.variants.end(), "a change is of what there is");
    if (change.value) {
      variant->settings.push_back({field, *change.value, variant->place});
    } else {
      std::erase_if(variant->settings,
                    [&](const Setting& setting) { return name_of(setting) == change.knob; });
    }
  }

  Scenario resolved(const std::string& file) {
    Scenario scenario;
    scenario.file = file;
    scenario.name = name_of_file(scenario);
    if (unreadable_) return scenario;
    require_the_required(file);
    if (draft_.claim) scenario.claim = draft_.claim->text;
    scenario.source = draft_.source;
    scenario.tags = draft_.tags;
    scenario.point = point();
    if (scenario.point) {
      scenario.name += fmt::format("@{}={}", scenario.point->knob, scenario.point->value);
      std::erase(scenario.name, ' ');
    }

    apply(draft_.settings, of_the_base_);
    Settings whole = of_the_base_.settings;
    SettingPlaces measure_places = of_the_base_.places;
    apply(overrides_, whole, measure_places);
    scenario.measure = whole.measure;
    scenario.requirements = whole.requirements;
    for (const VariantDraft& variant : draft_.variants) {
      scenario.variants.push_back(resolved_variant(variant));
      if (variant.like)
        scenario.overrides.push_back(
            {variant.name, std::string(like_key), variant.like->text, variant.like->place});
      for (const Setting& setting : variant.settings) {
        scenario.overrides.push_back(
            {variant.name, name_of(setting), value_text(setting), setting.place});
      }
    }
    require_one_process(scenario);
    require_libraries(scenario);
    if (runs_programs(scenario)) require_a_scenario_of_programs(scenario, measure_places);
    scenario.calibrate = calibration();
    scenario.regime = parsed(draft_.regime);
    scenario.expect = parsed(draft_.expect);
    scenario.article = figures(scenario);
    for (const auto* assertions : {&scenario.regime, &scenario.expect})
      for (const Expectation& assertion : *assertions) {
        require_its_metrics(assertion, scenario);
        make_room_for_percentiles(assertion, measure_places, scenario.measure);
      }
    for (const Expectation& assertion : scenario.expect) require_its_direction(assertion);
    if (scenario.point && scenario.expect.empty() && diagnostics_.empty()) {
      fail(
          draft_.sweep->place,
          fmt::format("no assertion is about {} = {}", scenario.point->knob, scenario.point->value),
          "write one without 'when', or leave the value out");
    }
    return scenario;
  }

  // Leaves out figures of assertions that are about other points of a sweep.
  std::vector<ArticleFigure> figures(const Scenario& scenario) {
    std::vector<ArticleFigure> figures;
    std::vector<std::string_view> names;
    for (const AssertionDraft& assertion : draft_.expect) names.push_back(assertion.name);
    for (const FigureDraft& figure : draft_.article) {
      const std::string key = "article." + figure.name;
      if (std::ranges::find(names, figure.name) == names.end()) {
        fail(figure.place, fmt::format("'{}' is about no assertion of [expect]", key),
             did_you_mean(figure.name, names, "take the name of one that compares two variants"));
        continue;
      }
      const auto found = std::ranges::find(scenario.expect, figure.name, &Expectation::name);
      if (found == scenario.expect.end() || figure.says.empty()) continue;
      if (!compares_two_variants(*found)) {
        fail(figure.place, fmt::format("'{}' is about an assertion without a ratio", key),
             "take one that compares a metric of two variants: \"fix.samples_per_s >= 1.05 * "
             "baseline.samples_per_s\"");
        continue;
      }
      figures.push_back({figure.name, figure.experiment, figure.says.front(), figure.says.back()});
    }
    return figures;
  }

  // A percentile of too few steps is their maximum. Where the file does not set them, segments and
  // budget are made long enough.
  void make_room_for_percentiles(const Expectation& assertion, const SettingPlaces& places,
                                 MeasureKnobs& measure) {
    constexpr double seconds_with_high_percentiles = 300;
    for (const MetricOf& of : metrics_in(assertion)) {
      if (of.stored || !percentile_of(of.metric)) continue;
      const std::int64_t needed = fewest_steps_of(of.metric);
      const std::int64_t in_a_segment = (needed + 1) / 2;
      const auto given = places.find("measure.steps");
      if (given != places.end() && measure.steps < in_a_segment) {
        fail(assertion.place,
             fmt::format("{} needs {} scored steps of a variant in a round, and 'measure.steps = "
                         "{}' gives {}",
                         row_of(of.metric).name, needed, measure.steps, 2 * measure.steps),
             fmt::format("write measure.steps = {}, or leave it out", in_a_segment));
        return;
      }
      measure.fewest_steps = std::max(measure.fewest_steps, needed);
      if (*percentile_of(of.metric) > 0.5 && !places.contains("measure.max_seconds"))
        measure.max_seconds = std::max(measure.max_seconds, seconds_with_high_percentiles);
    }
  }

  // All variants must be able to run in one process.
  void require_one_process(const Scenario& scenario) {
    for (const Variant& variant : scenario.variants) {
      for (const Variant& earlier : scenario.variants) {
        if (&earlier == &variant) break;
        const Field* apart = apart_in_a_process(earlier.knobs, variant.knobs);
        if (apart == nullptr) continue;
        return fail(variant.place,
                    fmt::format("'{}' and '{}' have different '{}', which is decided once for all "
                                "variants",
                                earlier.name, variant.name, apart->name),
                    "say the same in every variant that it has an effect in");
      }
    }
  }

  // A library on the command line takes the place of one that a variant names.
  void require_libraries(const Scenario& scenario) {
    for (const Setting& setting : overrides_) {
      if (setting.field->values.kind != FieldKind::kernels || launches_libraries(scenario) ||
          !std::holds_alternative<std::string>(setting.value))
        continue;
      fail(setting.place, "no variant launches a kernel of a library",
           "name the kernel: --set kernels.layer_norm=" + std::get<std::string>(setting.value));
    }
  }

  // Programs and composed steps have too little in common to be compared.
  void require_a_scenario_of_programs(Scenario& scenario, const SettingPlaces& places) {
    constexpr double seconds_with_starts = 300;  // every round starts every program
    if (!places.contains("measure.max_seconds")) scenario.measure.max_seconds = seconds_with_starts;
    for (const auto& [name, place] : places) {
      if (name.starts_with("requires."))
        fail(place, fmt::format("'{}' is about a device that stepgate opens", name),
             "a program opens its own; remove it, or let the program check");
    }
    for (const Variant& variant : scenario.variants) {
      if (!runs_a_program(variant))
        fail(variant.place,
             fmt::format("'{}' runs no program, and other variants do", variant.name),
             "write program.command in every variant, or in [program] for all of them");
    }
    if (!draft_.calibrate.empty())
      fail(draft_.calibrate.front().place, "no knob of a program is calibrated",
           "remove [calibrate]");
    if (planned_only())
      fail({scenario.file, 0, 0}, "a program has no plan, which the tag no_gpu stands for",
           "remove the tag");
  }

  void require_a_metric_of_programs(const Expectation& assertion, const Scenario& scenario) {
    for (const MetricOf& of : metrics_in(assertion)) {
      const auto variant = std::ranges::find(scenario.variants, of.variant, &Variant::name);
      const ProgramKnobs& program = variant->knobs.program;
      const bool is_held =
          row_of(of.metric).evidence == Evidence::timed || of.metric == Metric::peak_live;
      const bool has_own_steps =
          !program.step_range.empty() || !program.step_kernel.empty() || !program.step_call.empty();
      std::string_view reason =
          of.stored ? "runs of programs are not stored" : reason_against_in_programs(of.metric);
      if (reason.empty() && is_held && has_own_steps)
        reason =
            "programs are held where an optimizer of PyTorch ends a step, and its steps are others";
      if (reason.empty()) continue;
      return fail(assertion.place,
                  fmt::format("'{}' has no {}: {}", of.variant, metric_text(of), reason),
                  "compare counts such as host_waits_per_step, or steps_per_s");
    }
    for (const Side* side : {&assertion.left, &assertion.right}) {
      for (const Product& product : *side) {
        if (std::ranges::any_of(product, [](const Factor& factor) {
              return std::holds_alternative<PlanSize>(factor);
            }))
          return fail(assertion.place, "a program has no plan that could say a size",
                      "write a number of bytes, such as 4 MiB");
      }
    }
  }

  void require_its_metrics(const Expectation& assertion, const Scenario& scenario) {
    if (runs_programs(scenario)) return require_a_metric_of_programs(assertion, scenario);
    for (const MetricOf& of : metrics_in(assertion)) {
      const auto variant = std::ranges::find(scenario.variants, of.variant, &Variant::name);
      const ModelKind model = variant->knobs.model.kind;
      const std::string_view reason = reason_against(of.metric, model);
      if (reason.empty()) continue;
      fail(assertion.place,
           fmt::format("'{}' has no {}: {}", of.variant, row_of(of.metric).name, reason),
           of.metric == Metric::cycles_per_load
               ? "set 'model.kind' to chase"
               : "compare samples_per_s, or set 'model.kind' to transformer");
      return;
    }
  }

  // Refuses a gate in the wrong direction, which would pass every slowdown.
  void require_its_direction(const Expectation& assertion) {
    if (!names_stored(assertion) || !is_easier_for_a_worse_step(assertion)) return;
    const std::vector<MetricOf> metrics = metrics_in(assertion);
    const auto of = std::ranges::find(metrics, false, &MetricOf::stored);
    const bool less = row_of(of->metric).better == Better::less;
    fail(assertion.place,
         fmt::format("'{}' holds the more easily the worse the step is than its stored runs: {} "
                     "{} is better",
                     assertion.text, less ? "less" : "more", metric_text(*of)),
         fmt::format("turn it round: {0}.{1} {2} stored.{0}.{1}", of->variant, metric_text(*of),
                     less ? "<= 1.05 *" : ">= 0.95 *"));
  }

  void require_the_required(const std::string& file) {
    require_key(file, "claim", draft_.claim.has_value(), "no 'claim'",
                "say in one sentence what the scenario shows: claim = \"...\"");
    require_key(file, "variant", !draft_.variants.empty(), "no variant",
                "write [variant.baseline], empty for the step as it is");
    require_key(file, "expect", !draft_.expect.empty(), "no expectation",
                "write [expect] and an assertion such as "
                "faster = \"fix.samples_per_s >= 1.05 * baseline.samples_per_s\"");
  }

  void require_key(const std::string& file, std::string_view key, bool present, std::string message,
                   std::string hint) {
    const auto& refused = draft_.refused_keys;
    if (present || std::find(refused.begin(), refused.end(), key) != refused.end()) return;
    fail({file, 0, 0}, std::move(message), std::move(hint));
  }

  static void apply(const std::vector<Setting>& from, Settings& settings, SettingPlaces& places) {
    for (const Setting& setting : from) {
      setting.field->set(settings, setting.value);
      places[setting.field->name] = setting.place;
    }
  }

  struct Resolved {
    Settings settings;
    SettingPlaces places;
    std::map<std::string, Place> kernel_places;
  };

  static void apply(const std::vector<Setting>& from, Resolved& to) {
    apply(from, to.settings, to.places);
    for (const Setting& setting : from) {
      if (const auto* kernels = std::get_if<ReplacedKernels>(&setting.value)) {
        for (const auto& replaced : *kernels) to.kernel_places[replaced.first] = setting.place;
      } else if (setting.field->values.kind == FieldKind::kernels) {
        for (auto& of_a_kernel : to.kernel_places) of_a_kernel.second = setting.place;
      }
    }
  }

  Variant resolved_variant(const VariantDraft& variant) {
    Resolved resolved = with_likes(variant);
    apply(overrides_, resolved);
    auto& [settings, places, kernel_places] = resolved;
    ModelKnobs& model = settings.knobs.model;
    if (!places.contains("optim.kind") &&
        (model.kind == ModelKind::transformer || is_unet(settings.knobs)))
      settings.knobs.optim.kind = OptimKind::adamw;
    if (is_unet(settings.knobs)) {
      if (!places.contains("model.layers")) model.layers = usual_unet_layers;
      if (!places.contains("model.width")) model.width = usual_unet_width;
      if (!places.contains("model.image")) model.image = usual_unet_image;
    }
    if (is_resnet(settings.knobs)) {
      if (!places.contains("optim.kind")) settings.knobs.optim.kind = OptimKind::momentum;
      if (!places.contains("model.layers")) model.layers = usual_resnet_layers;
    }
    std::vector<Diagnostic> broken;
    check_knobs(settings.knobs, places, variant.place, broken);
    for (Diagnostic& diagnostic : broken) {
      // A fault of the base appears in every variant, but is reported once.
      if (std::find(diagnostics_.begin(), diagnostics_.end(), diagnostic) == diagnostics_.end()) {
        diagnostics_.push_back(std::move(diagnostic));
      }
    }
    return {variant.name, settings.knobs, variant.place, settings.gate, kernel_places};
  }

  // Applies the base, then the chain of variants that `variant` is like, from the furthest one,
  // then the variant. Each variant is resolved once, however many are like it.
  const Resolved& with_likes(const VariantDraft& variant) {
    std::vector<const VariantDraft*> open;  // each is like the next one
    for (const VariantDraft* at = &variant; at != nullptr && !resolved_.contains(at);
         at = like_of(*at, open)) {
      open.push_back(at);
    }
    for (auto at = open.rbegin(); at != open.rend(); ++at) {
      const auto like = likes_.find(*at);
      Resolved own = like == likes_.end() ? of_the_base_ : resolved_.at(like->second);
      apply((*at)->settings, own);
      resolved_.emplace(*at, std::move(own));
    }
    return resolved_.at(&variant);
  }

  // The variant that this one is like. nullptr where there is none, or where it would close a cycle
  // of `open` ones.
  const VariantDraft* like_of(const VariantDraft& variant,
                              const std::vector<const VariantDraft*>& open) {
    if (!variant.like) return nullptr;
    const auto named = std::ranges::find(draft_.variants, variant.like->text, &VariantDraft::name);
    if (named == draft_.variants.end()) {
      fail(variant.like->place, fmt::format("no variant '{}'", variant.like->text),
           did_you_mean(variant.like->text, variant_names(),
                        fmt::format("the variants are {}", fmt::join(variant_names(), ", "))));
      return nullptr;
    }
    const auto circle = std::ranges::find(open, &*named);
    for (auto in_it = circle; in_it != open.end(); ++in_it) {
      fail((*in_it)->like->place, fmt::format("variant '{}' is like itself", (*in_it)->name),
           "let one variant of the circle stand alone");
    }
    if (circle != open.end()) return nullptr;
    return likes_[&variant] = &*named;
  }

  std::vector<std::string_view> variant_names() const {
    std::vector<std::string_view> names;
    for (const VariantDraft& variant : draft_.variants) names.push_back(variant.name);
    return names;
  }

  struct Aim {
    MetricOf metric;
    double value = 0;
  };

  // The aim of "variant.metric ~= number", or with a limit; nullopt for any other assertion.
  static std::optional<Aim> aim_of(const Expectation& assertion) {
    const bool single = assertion.left.size() == 1 && assertion.left.front().size() == 1 &&
                        assertion.right.size() == 1;
    constexpr std::array aims{Relation::about, Relation::at_least, Relation::at_most};
    if (!single || std::ranges::find(aims, assertion.relation) == aims.end()) return std::nullopt;
    const auto* metric = std::get_if<MetricOf>(&assertion.left.front().front());
    double value = 1;
    for (const Factor& factor : assertion.right.front()) {
      const auto* number = std::get_if<double>(&factor);
      if (!number) return std::nullopt;
      value *= *number;
    }
    if (!metric || metric->stored || !(value > 0)) return std::nullopt;
    return Aim{*metric, value};
  }

  std::optional<Calibration> calibration() {
    if (draft_.calibrate.empty()) return std::nullopt;
    if (draft_.calibrate.size() > 1) {
      const CalibrationDraft& second = draft_.calibrate[1];
      fail(second.place, fmt::format("'{}' is a second knob to calibrate", second.name),
           "one knob at a time; set the other one to a number");
    }
    const CalibrationDraft& draft = draft_.calibrate.front();
    const std::vector<std::string_view> names = variant_names();
    auto assertion = parse_expectation(draft.name, draft.assertion.text, draft.assertion.text_place,
                                       names, diagnostics_);
    if (!assertion) return std::nullopt;
    const auto aim = aim_of(*assertion);
    if (!aim) {
      fail(draft.assertion.place, fmt::format("'{}' is no aim for a knob", draft.assertion.text),
           "write one metric and its value: \"fix.h2d_share ~= 30% within 5%\", or a limit: "
           "\"fix.host_share >= 30%\"");
      return std::nullopt;
    }
    const MetricRow& metric = row_of(aim->metric.metric);
    if (metric.evidence == Evidence::timed && metric.metric != Metric::host_share) {
      fail(draft.assertion.place,
           fmt::format("no knob is calibrated to '{}', which is measured when all knobs are set",
                       metric.name),
           "take host_share, or a metric of the trace, such as h2d_share, data_share or gpu_idle");
      return std::nullopt;
    }
    if (metric.metric == Metric::kernel_us) {
      fail(draft.assertion.place, "no knob is calibrated to the time of one kernel",
           "take a metric of the whole step, such as forward_us, h2d_share or gpu_idle");
      return std::nullopt;
    }
    const bool given =
        std::any_of(overrides_.begin(), overrides_.end(),
                    [&](const Setting& setting) { return setting.field == draft.field; });
    if (given) return std::nullopt;
    return Calibration{.knob = draft.name,
                       .text = draft.assertion.text,
                       .metric = aim->metric,
                       .relation = assertion->relation,
                       .value = aim->value,
                       .within = assertion->within.value_or(0)};
  }

  bool planned_only() const {
    return std::find(draft_.tags.begin(), draft_.tags.end(), "no_gpu") != draft_.tags.end();
  }

  std::vector<Expectation> parsed(const std::vector<AssertionDraft>& drafts) {
    const std::vector<std::string_view> names = variant_names();
    std::vector<Expectation> assertions;
    if (names.empty()) return assertions;  // already reported
    const SweepDraft* sweep = draft_.sweep ? &*draft_.sweep : nullptr;
    for (const AssertionDraft& draft : drafts) {
      const auto part = conditioned(
          draft.assertion, sweep, sweep == nullptr ? FieldValue() : value_of_point(), diagnostics_);
      if (!part) continue;
      auto assertion = parse_expectation(draft.name, part->assertion, draft.assertion.text_place,
                                         names, diagnostics_);
      if (!assertion || !part->applies) continue;
      const bool needs_a_device = evidence_of(*assertion) > Evidence::exact;
      if (needs_a_device && planned_only()) {
        fail(
            draft.assertion.place,
            fmt::format("'{}' needs a device to decide, and the tag no_gpu says that there is none",
                        draft.assertion.text),
            "compare what plans count, such as ooms or peak_reserved, or remove the tag");
      }
      assertions.push_back(std::move(*assertion));
    }
    return assertions;
  }

  const BaseReader& base_;
  ScenarioDraft draft_;
  Resolved of_the_base_;
  std::vector<Setting> overrides_;
  std::unordered_map<const VariantDraft*, const VariantDraft*> likes_;
  std::unordered_map<const VariantDraft*, Resolved> resolved_;
  std::vector<Diagnostic> diagnostics_;
  bool unreadable_ = false;
};

}  // namespace

bool runs_a_program(const Variant& variant) {
  return !variant.knobs.program.command.empty();
}

bool runs_programs(const Scenario& scenario) {
  return std::ranges::any_of(scenario.variants, runs_a_program);
}

bool launches_libraries(const Scenario& scenario) {
  return std::ranges::any_of(scenario.variants,
                             [](const Variant& variant) { return !variant.knobs.kernels.empty(); });
}

int ranks_needed(const Scenario& scenario) {
  std::int64_t most = 1;
  for (const Variant& variant : scenario.variants) most = std::max(most, variant.knobs.ranks.count);
  return static_cast<int>(most);
}

std::string name_of_file(const Scenario& scenario) {
  return std::filesystem::path(scenario.file).stem().string();
}

bool is_planned_only(const Scenario& scenario) {
  return std::find(scenario.tags.begin(), scenario.tags.end(), "no_gpu") != scenario.tags.end();
}

void require_a_path_to_show(const std::string& file) {
  const std::string name = std::filesystem::path(file).stem().string();
  if (one_line(file) == file && one_line(name) == name) return;
  throw RequestError(Diagnostic{{file},
                                "a path with characters that nobody sees, or that a CI system "
                                "takes for a command",
                                "rename it"});
}

TextOrProblem no_base(const std::string& file) {
  return Diagnostic{Place{file, 0, 0}, "no such file", "check the path"};
}

Scenario parse_scenario(std::string_view text, const std::string& file, const BaseReader& base,
                        std::span<const std::string> overrides, const VariantChange* change) {
  return ScenarioReader(base).read(text, file, overrides, change);
}

Scenario read_scenario(const std::filesystem::path& path, std::span<const std::string> overrides,
                       const VariantChange* change) {
  const TextOrProblem text = read_file(path, kind_of_file);
  if (const auto* problem = std::get_if<Diagnostic>(&text)) throw RequestError(*problem);
  const BaseReader base = [folders = BaseFolders(path)](const std::string& file) -> TextOrProblem {
    if (auto outside = folders.reason_against(file)) return *std::move(outside);
    return read_file(file, kind_of_file);
  };
  return parse_scenario(std::get<std::string>(text), path.generic_string(), base, overrides,
                        change);
}

namespace {

// All points of a sweep, of which `read` gives that of these overrides.
std::vector<Scenario> all_points(
    const std::function<Scenario(std::span<const std::string> overrides)>& read,
    std::span<const std::string> overrides) {
  std::vector<Scenario> scenarios{read(overrides)};
  const auto& point = scenarios.front().point;
  if (!point) return scenarios;
  const std::string prefix = point->knob + '=';
  const auto decides = [&](const std::string& text) { return text.starts_with(prefix); };
  if (std::ranges::any_of(overrides, decides)) return scenarios;
  const std::vector<std::string> values = point->values;  // `point` moves with its scenario
  for (const std::string& value : std::span(values).subspan(1)) {
    std::vector<std::string> more(overrides.begin(), overrides.end());
    more.push_back(prefix + value);
    scenarios.push_back(read(more));
  }
  return scenarios;
}

}  // namespace

std::vector<Scenario> parse_scenarios(std::string_view text, const std::string& file,
                                      const BaseReader& base,
                                      std::span<const std::string> overrides) {
  return all_points(
      [&](std::span<const std::string> these) { return parse_scenario(text, file, base, these); },
      overrides);
}

std::vector<Scenario> read_scenarios(const std::filesystem::path& path,
                                     std::span<const std::string> overrides) {
  return all_points([&](std::span<const std::string> these) { return read_scenario(path, these); },
                    overrides);
}

std::vector<std::string> overrides_of(const Scenario& scenario,
                                      std::span<const std::string> overrides) {
  std::vector<std::string> all(overrides.begin(), overrides.end());
  if (scenario.point) all.push_back(scenario.point->knob + '=' + scenario.point->value);
  return all;
}

}  // namespace stepgate
