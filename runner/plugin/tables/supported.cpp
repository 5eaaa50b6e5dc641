// SPDX-License-Identifier: MIT
#include "plugin/tables/supported.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "kernels/trial/kernel_trial.h"

namespace stepgate {

std::vector<NamedNumber> names_in(const Kernel& kernel) {
  const TrialRecipe& recipe = trial_recipe(kernel.name);
  return numbers_of(recipe.shapes.front(), recipe.attributes.front());
}

void require_names(const Supported& supported, const Kernel& kernel) {
  for (const SizeLimits& limits : supported.limits) (void)value_of(limits.name, names_in(kernel));
}

void require_supported(const Supported& supported, std::string_view who,
                       const KernelRequest& asked) {
  const auto unsupported = [&](const std::string& why) {
    throw KernelUnsupported(fmt::format("{} does not support {}: {}", who, in_words(asked), why));
  };
  if (!supported.dtypes.empty() &&
      std::ranges::find(supported.dtypes, asked.dtype) == supported.dtypes.end()) {
    std::vector<std::string_view> dtypes;
    for (const DType dtype : supported.dtypes) dtypes.push_back(name_of(dtype));
    unsupported(fmt::format("its table says {}", fmt::join(dtypes, ", ")));
  }
  const std::vector<NamedNumber> names = numbers_of(asked.shape, asked.attributes);
  for (const SizeLimits& limits : supported.limits) {
    const double value = value_of(limits.name, names);
    if (value < limits.at_least)
      unsupported(fmt::format("{} must be at least {}", limits.name, limits.at_least));
    if (value > limits.at_most)
      unsupported(fmt::format("{} must be at most {}", limits.name, limits.at_most));
    if (std::fmod(value, static_cast<double>(limits.multiple_of)) != 0)
      unsupported(fmt::format("{} must be a multiple of {}", limits.name, limits.multiple_of));
  }
}

std::string text_of(const Supported& supported) {
  std::string text;
  for (const DType dtype : supported.dtypes) text += fmt::format(" {}", name_of(dtype));
  for (const SizeLimits& limits : supported.limits) {
    text += fmt::format(" {} {} {} {}", limits.name, limits.at_least, limits.at_most,
                        limits.multiple_of);
  }
  return text;
}

}  // namespace stepgate
