// SPDX-License-Identifier: MIT
// Recorded samples in the formats of other tools, for their own comparison scripts. A format turns
// measurements into the texts of files; the verb writes them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/rounds/measurement.h"

namespace stepgate {

struct ExportedFile {
  std::filesystem::path path;
  std::string content;
};

// `file` is the one that was asked for; formats with more than one put the others beside it.
using Export = std::vector<ExportedFile> (*)(const std::filesystem::path& file,
                                             std::span<const Measurement>);

struct ExportFormat {
  std::string_view name;
  std::string_view what;  // it writes, for --help
  Export write;
};

// In the order in which people should read them.
std::span<const ExportFormat> export_formats();

// "NVIDIA H200", or "simulated NVIDIA H200": samples of a simulation never pass for measured ones.
std::string exported_name(const DeviceIdentity&);

// google/benchmark's JSON, as its tools/compare.py reads it: one benchmark "scenario/variant", a
// repetition for every round. real_time is the round's mean time a step on the device, cpu_time the
// host's busy time a step, 0 where it is not known; both in nanoseconds.
std::vector<ExportedFile> export_google_benchmark(const std::filesystem::path& file,
                                                  std::span<const Measurement>);

// NVBench's JSON of version 1.0.0 and its binary side-cars in <file>-bin and <file>-freqs-bin, as
// nvbench_compare.py reads them: a benchmark for every scenario, a state for every variant, a
// sample for every single step; where single steps are not timed, for every segment. Frequencies
// are those of a sample's segment, left out unless they are known of all.
std::vector<ExportedFile> export_nvbench(const std::filesystem::path& file,
                                         std::span<const Measurement>);

// One row for every segment, in the order in which they ran; what is not known is empty.
std::vector<ExportedFile> export_csv(const std::filesystem::path& file,
                                     std::span<const Measurement>);

// One row for every single step that was timed.
std::vector<ExportedFile> export_csv_steps(const std::filesystem::path& file,
                                           std::span<const Measurement>);

}  // namespace stepgate
