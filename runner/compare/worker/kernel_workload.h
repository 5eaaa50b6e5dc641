// SPDX-License-Identifier: MIT
// A kernel of a workload, whose time in traced steps two programs are compared by.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario.h"

namespace stepgate {

struct KernelWorkload {
  std::string workload;  // "scenario/variant"
  std::string kernel;    // its name in the catalogue
  bool operator==(const KernelWorkload&) const = default;
};

// "kernel_us(layer_norm)", as an assertion writes it.
std::string metric_text(const KernelWorkload&);
// "scenario/variant.kernel_us(layer_norm)", the name by which it is loaded.
std::string name_of(const KernelWorkload&);
// nullopt for any other name.
std::optional<KernelWorkload> kernel_workload_named(std::string_view name);
// The workload itself, or that of the kernel.
std::string workload_in(const std::string& name);

// The names of those whose time the scenario's assertions ask for, each once.
std::vector<std::string> kernel_workloads_of(const Scenario&);

}  // namespace stepgate
