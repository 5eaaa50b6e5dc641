// SPDX-License-Identifier: MIT
#include "compare/worker/kernel_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenario/assertions/expectation.h"

namespace stepgate {

std::string metric_text(const KernelWorkload& one) {
  return metric_text(MetricOf{.variant = {}, .metric = Metric::kernel_us, .kernel = one.kernel});
}

std::string name_of(const KernelWorkload& one) {
  return one.workload + '.' + metric_text(one);
}

std::optional<KernelWorkload> kernel_workload_named(std::string_view name) {
  const std::string before = fmt::format(".{}(", row_of(Metric::kernel_us).name);
  const std::size_t metric = name.rfind(before);
  if (metric == std::string_view::npos || !name.ends_with(')')) return std::nullopt;
  const std::size_t kernel = metric + before.size();
  return KernelWorkload{.workload = std::string(name.substr(0, metric)),
                        .kernel = std::string(name.substr(kernel, name.size() - kernel - 1))};
}

std::string workload_in(const std::string& name) {
  const auto kernel = kernel_workload_named(name);
  return kernel ? kernel->workload : name;
}

std::vector<std::string> kernel_workloads_of(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const Expectation& assertion : scenario.expect) {
    for (const MetricOf& of : metrics_in(assertion)) {
      if (of.metric != Metric::kernel_us || of.stored) continue;
      std::string name = name_of(KernelWorkload{scenario.name + '/' + of.variant, of.kernel});
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace stepgate
