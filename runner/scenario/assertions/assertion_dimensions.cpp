// SPDX-License-Identifier: MIT
// The few dimensions that metrics have, as one table.
#include "scenario/assertions/assertion_dimensions.h"

#include <array>

namespace stepgate {
namespace {

struct NamedPowers {
  int bytes;
  int seconds;
  std::string_view name;
  std::string_view hint;
};

constexpr std::array<NamedPowers, 4> named_powers{{
    {0, 0, "a plain number", "compare a number without a unit"},
    {1, 0, "a size", "compare a size, as in 64 KiB"},
    {0, 1, "a time", "compare a time, as in 2 ms"},
    {1, -1, "a rate in bytes per second", "compare a rate, as in 10 GB/s"},
}};

const NamedPowers* row_of(const Powers& powers) {
  for (const NamedPowers& row : named_powers) {
    if (row.bytes == powers.bytes && row.seconds == powers.seconds) return &row;
  }
  return nullptr;
}

}  // namespace

Powers powers_of(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::bytes:
      return {1, 0};
    case MetricUnit::seconds:
      return {0, 1};
    case MetricUnit::bytes_per_second:
      return {1, -1};
    case MetricUnit::count:
    case MetricUnit::ratio:
    case MetricUnit::per_second:
    case MetricUnit::flops:
    case MetricUnit::bound_class:
      return {0, 0};
  }
  return {0, 0};
}

Powers powers_of(const Quantity& quantity) {
  const bool fits_anything = quantity.value == 0 && quantity.dimension == Dimension::plain;
  switch (quantity.dimension) {
    case Dimension::bytes:
      return {1, 0};
    case Dimension::seconds:
      return {0, 1};
    case Dimension::bytes_per_second:
      return {1, -1};
    case Dimension::plain:
      return {0, 0, fits_anything ? Powers::Fit::anything : Powers::Fit::exactly};
  }
  return {0, 0};
}

Powers times(const Powers& a, const Powers& b) {
  const bool fits_anything = a.fit == Powers::Fit::anything || b.fit == Powers::Fit::anything;
  return {a.bytes + b.bytes, a.seconds + b.seconds,
          fits_anything ? Powers::Fit::anything : Powers::Fit::exactly};
}

bool compatible(const Powers& a, const Powers& b) {
  if (a.fit == Powers::Fit::anything || b.fit == Powers::Fit::anything) return true;
  return a.bytes == b.bytes && a.seconds == b.seconds;
}

std::string powers_text(const Powers& powers) {
  const NamedPowers* row = row_of(powers);
  return row != nullptr ? std::string(row->name) : "a product of unlike units";
}

std::string unit_hint(const Powers& powers) {
  const NamedPowers* row = row_of(powers);
  return row != nullptr ? std::string(row->hint) : "multiply fewer metrics";
}

}  // namespace stepgate
