// SPDX-License-Identifier: MIT
#include "kernels/device_limits.h"

#include <algorithm>

namespace stepgate {
namespace {

std::string value_of(const DeviceLimit& limit) {
  return std::to_string(limit.value).append(limit.unit);
}

}  // namespace

std::string in_words(std::span<const DeviceLimit> limits) {
  std::string text;
  for (const DeviceLimit& limit : limits)
    text.append(text.empty() ? "" : ", ").append(limit.name).append(" ").append(value_of(limit));
  return text;
}

std::string changed_limit(std::span<const DeviceLimit> before, std::span<const DeviceLimit> now) {
  for (const DeviceLimit& old : before) {
    const auto found = std::ranges::find(now, old.name, &DeviceLimit::name);
    if (found == now.end() || found->value == old.value) continue;
    if (old.may_grow && found->value > old.value) continue;
    return old.name + " was " + value_of(old) + " and is " + value_of(*found);
  }
  return "";
}

}  // namespace stepgate
