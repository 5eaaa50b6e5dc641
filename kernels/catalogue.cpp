// SPDX-License-Identifier: MIT
#include "kernels/catalogue.h"

#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "kernels/kernels.h"

namespace stepgate {

std::span<const Kernel> kernel_catalogue() {
  static const std::vector<Kernel> catalogue = [] {
    std::vector<Kernel> all;
    for (const auto kernels_of_family : {
#include "kernels_of_families.inc"
         }) {
      const std::vector<Kernel> some = kernels_of_family();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return catalogue;
}

const Kernel& kernel(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Kernel*> all;
    for (const Kernel& kernel : kernel_catalogue()) all.emplace(kernel.name, &kernel);
    return all;
  }();
  const auto found = by_name.find(name);
  if (found != by_name.end()) return *found->second;
  std::fprintf(stderr, "no kernel is named '%.*s'\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace stepgate
