// SPDX-License-Identifier: MIT
// A canonical text of the scenario, hashed.
#include "scenario/knobs/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "base/fnv1a.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// These fields are hashed always, every other one only where it is not at its default. So a new
// knob changes no stored fingerprint. Never add a field here.
constexpr std::string_view always_hashed[] = {
    "model.kind",      "model.layers",      "model.hidden",     "model.kernels",
    "model.kernel_us", "model.dtype",       "batch.size",       "batch.sample_bytes",
    "batch.tensors",   "loader.wait_us",    "loader.jitter",    "loader.depth",
    "loader.workers",  "host.step_us",      "host.launch_us",   "transfer.host",
    "transfer.stream", "transfer.blocking", "transfer.buffers", "transfer.device_buffer",
    "sync.where",      "sync.how",          "sync.every",       "alloc.with",
    "alloc.when",      "alloc.keep",        "memory.zero_grad", "optim.kind",
    "optim.impl",      "launch.via",        "log.every",        "log.via",
    "measure.steps",   "measure.interleave"};

template <class Named>
std::vector<Named> by_name(std::vector<Named> elements) {
  std::sort(elements.begin(), elements.end(),
            [](const Named& a, const Named& b) { return a.name < b.name; });
  return elements;
}

// Paths are left out: another build of a library is the same scenario, and its bytes are a key of
// the run (Device::libraries_for).
void append_kernels(std::string& text, const ReplacedKernels& kernels) {
  for (const auto& [name, replacement] : kernels) {
    text += fmt::format("kernels.{}={},{},{};", name, replacement.function, replacement.launches,
                        replacement.workspace_bytes);
    if (replacement.otherwise == Otherwise::ours) text += "otherwise=ours;";
  }
}

void append_settings(std::string& text, const Settings& settings, FieldScope scope) {
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.scope != scope || field.unscored) continue;
    const FieldValue value = field.get(settings);
    const bool always = std::ranges::find(always_hashed, field.name) != std::end(always_hashed);
    if (!always && value == default_of(field)) continue;
    if (const auto* replaced = std::get_if<ReplacedKernels>(&value)) {
      append_kernels(text, *replaced);
      continue;
    }
    text += fmt::format("{}={};", field.name, field_value_text(field, value));
  }
  text += '\n';
}

void append_side(std::string& text, const Side& side, std::string_view first_variant) {
  for (const Product& product : side) {
    text += '+';
    for (const Factor& factor : product) {
      text += '*';
      if (const auto* number = std::get_if<double>(&factor)) {
        text += fmt::format("{:a}", *number);
      } else if (const auto* of = std::get_if<MetricOf>(&factor)) {
        text += fmt::format("{}{}.{}", of->stored ? "stored." : "", of->variant, metric_text(*of));
      } else if (const auto* bound = std::get_if<BoundClass>(&factor)) {
        text += name_of(*bound);
      } else {
        // A plan size is that of the first variant, so the text contains that variant's name.
        text +=
            fmt::format("size{}of{}", static_cast<int>(std::get<PlanSize>(factor)), first_variant);
      }
    }
  }
}

void append_assertions(std::string& text, const std::vector<Expectation>& assertions,
                       std::string_view first_variant) {
  for (const Expectation& assertion : by_name(assertions)) {
    text += assertion.name + ':';
    append_side(text, assertion.left, first_variant);
    text += fmt::format("?{}", static_cast<int>(assertion.relation));
    append_side(text, assertion.right, first_variant);
    text += fmt::format("~{:a}\n", assertion.within.value_or(0));
  }
  text += '\n';
}

}  // namespace

std::uint64_t fingerprint_of(const Knobs& knobs) {
  std::string text;
  append_settings(text, {knobs, {}, {}, {}}, FieldScope::variant);
  return fnv1a(text);
}

std::uint64_t fingerprint_of(const Scenario& scenario) {
  std::string text;
  for (const Variant& variant : by_name(scenario.variants)) {
    text += variant.name + ':';
    append_settings(text, {variant.knobs, {}, {}, {}}, FieldScope::variant);
  }
  append_settings(text, {{}, scenario.measure, {}, {}}, FieldScope::scenario);
  const std::string_view first =
      scenario.variants.empty() ? std::string_view() : scenario.variants.front().name;
  if (const auto& aim = scenario.calibrate) {
    text += fmt::format(
        "{}:{}.{}{}{:a}~{:a}\n", aim->knob, aim->metric.variant, row_of(aim->metric.metric).name,
        is_limit(*aim) ? fmt::format("?{}", static_cast<int>(aim->relation)) : "~=", aim->value,
        aim->within);
  }
  append_assertions(text, scenario.regime, first);
  append_assertions(text, scenario.expect, first);
  return fnv1a(text);
}

}  // namespace stepgate
