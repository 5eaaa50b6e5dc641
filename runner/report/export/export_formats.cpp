// SPDX-License-Identifier: MIT
#include "report/export/export_formats.h"

#include <array>

namespace stepgate {
namespace {

constexpr std::array formats{
    ExportFormat{"google-benchmark", "JSON for google/benchmark's compare.py",
                 export_google_benchmark},
    ExportFormat{"nvbench", "JSON and binary side-cars for nvbench_compare.py", export_nvbench},
    ExportFormat{"csv", "a row for every segment", export_csv},
    ExportFormat{"csv-steps", "a row for every single step", export_csv_steps}};

}  // namespace

std::string exported_name(const DeviceIdentity& device) {
  return device.kind == DeviceKind::simulated ? "simulated " + device.name : device.name;
}

std::span<const ExportFormat> export_formats() {
  return formats;
}

}  // namespace stepgate
