// SPDX-License-Identifier: MIT
// The rules, one row each: a knob without effect is refused, never ignored.
#include "scenario/check_knobs.h"

#include <array>

namespace stepgate {
namespace {

struct Rule {
  std::string_view field;  // that the diagnostic is placed at
  bool (*broken)(const Knobs&);
  std::string_view message;
  std::string_view hint;
};

// Broken by writing the field at all while the knobs are such.
constexpr std::array<Rule, 4> must_not_be_set{{
    {"model.kernels", [](const Knobs& knobs) { return knobs.model.kind != ModelKind::spin; },
     "'model.kernels' is only for spin", "remove it, or write model.kind = \"spin\""},
    {"model.kernel_us", [](const Knobs& knobs) { return knobs.model.kind != ModelKind::spin; },
     "'model.kernel_us' is only for spin", "remove it, or write model.kind = \"spin\""},
    {"model.layers", [](const Knobs& knobs) { return knobs.model.kind != ModelKind::mlp; },
     "'model.layers' is only for mlp", "remove it, or write model.kind = \"mlp\""},
    {"alloc.keep", [](const Knobs& knobs) { return knobs.alloc.with != Allocator::cuda_async; },
     "'alloc.keep' is only for cuda_async", "remove it, or write alloc.with = \"cuda_async\""},
}};

constexpr std::array<Rule, 6> must_fit{{
    {"loader.workers",
     [](const Knobs& knobs) { return knobs.loader.workers > 1 && knobs.loader.depth == 0; },
     "'loader.workers' have nowhere to put batches when 'loader.depth' is 0",
     "write loader.depth = 2"},
    {"loader.jitter",
     [](const Knobs& knobs) { return knobs.loader.jitter > 0 && knobs.loader.wait_us == 0; },
     "'loader.jitter' has nothing to vary when 'loader.wait_us' is 0", "write loader.wait_us"},
    {"alloc.when",
     [](const Knobs& knobs) {
       return knobs.alloc.when != AllocWhen::never && knobs.alloc.with == Allocator::fixed;
     },
     "a static allocator allocates before the first step, never later",
     "write alloc.with = \"cuda\" or \"cuda_async\""},
    {"h2d.buffers",
     [](const Knobs& knobs) {
       return knobs.h2d.buffers > 1 && knobs.h2d.device_buffer == DeviceBuffer::per_step;
     },
     "a device buffer that is made anew every step cannot be one of several",
     "write h2d.buffers = 1, or h2d.device_buffer = \"resident\""},
    {"h2d.device_buffer",
     [](const Knobs& knobs) {
       return knobs.h2d.device_buffer == DeviceBuffer::per_step &&
              knobs.h2d.host == HostMemory::resident;
     },
     "a batch that is resident needs no device buffer", "write h2d.host = \"pinned\""},
    {"batch.tensors",
     [](const Knobs& knobs) {
       return knobs.batch.sample_bytes &&
              *knobs.batch.sample_bytes * knobs.batch.size < knobs.batch.tensors;
     },
     "more tensors than the batch has bytes", "make batch.sample_bytes larger"},
}};

}  // namespace

void check_knobs(const Knobs& knobs, const SettingPlaces& places, const Place& variant,
                 std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : must_not_be_set) {
    const auto place = places.find(rule.field);
    if (place == places.end() || !rule.broken(knobs)) continue;
    diagnostics.push_back({place->second, std::string(rule.message), std::string(rule.hint)});
  }
  for (const Rule& rule : must_fit) {
    if (!rule.broken(knobs)) continue;
    const auto place = places.find(rule.field);
    diagnostics.push_back({place != places.end() ? place->second : variant,
                           std::string(rule.message), std::string(rule.hint)});
  }
}

}  // namespace stepgate
