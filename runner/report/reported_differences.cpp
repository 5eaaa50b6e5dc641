// SPDX-License-Identifier: MIT
#include "report/reported_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text/units.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr double smallest_share = 0.01;  // of a step, to be shown
constexpr std::size_t most_work = 8;

double most_of(const std::vector<CountedProcess>& processes, CallCount count) {
  double most = 0;
  for (const CountedProcess& process : processes) {
    if (process.problem.empty())
      most = std::max(most, process.mean[static_cast<std::size_t>(count)]);
  }
  return most;
}

std::string difference_in_words(double base, double now, const std::string& difference) {
  const char* sign = now > base ? "+" : "-";
  if (base == 0) return sign + difference;
  return fmt::format("{}{} ({:+.1f} %)", sign, difference, 100 * (now - base) / base);
}

std::string time_in_words(double seconds) {
  return in_words(seconds, MetricUnit::seconds);
}

std::vector<std::string> time_row(const std::string& name, double base, double now) {
  return {name, time_in_words(base), time_in_words(now),
          difference_in_words(base, now, time_in_words(std::abs(now - base)))};
}

const VariantMechanism* variant_named(const Mechanism& mechanism, std::string_view beginning) {
  const auto found = std::ranges::find_if(mechanism.variants, [&](const auto& variant) {
    return variant.variant.starts_with(beginning);
  });
  return found == mechanism.variants.end() ? nullptr : &*found;
}

void add_work(const VariantMechanism& base, const VariantMechanism& now,
              std::vector<std::vector<std::string>>& rows) {
  std::set<std::string> names;
  for (const auto* side : {&base, &now}) {
    for (const auto& [name, time] : side->work) names.insert(name);
  }
  const auto of = [](const VariantMechanism& side, const std::string& name) {
    const auto found = side.work.find(name);
    return found == side.work.end() ? WorkTime{} : found->second;
  };
  std::vector<std::string> differ;
  for (const std::string& name : names) {
    const WorkTime then = of(base, name);
    const WorkTime is = of(now, name);
    if (std::abs(then.times - is.times) > 1e-9 ||
        std::abs(then.seconds - is.seconds) >= smallest_share * base.time.step)
      differ.push_back(name);
  }
  std::ranges::stable_sort(differ, std::greater<>(), [&](const std::string& name) {
    return std::abs(of(now, name).seconds - of(base, name).seconds);
  });
  if (differ.size() > most_work) differ.resize(most_work);
  const auto cell = [](const WorkTime& work) {
    return fmt::format("{:.4g}x {}", work.times, time_in_words(work.seconds));
  };
  for (const std::string& name : differ) {
    const WorkTime then = of(base, name);
    const WorkTime is = of(now, name);
    rows.push_back({name, cell(then), cell(is),
                    difference_in_words(then.seconds, is.seconds,
                                        time_in_words(std::abs(is.seconds - then.seconds)))});
  }
}

}  // namespace

std::vector<std::vector<std::string>> reported_differences(const Verdict& verdict) {
  if (!verdict.program || verdict.program_base.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"differs, a step", "base", "trace", "change"}};
  for (const CallCountRow& row : call_count_table()) {
    const double base = most_of(verdict.program_base, row.count);
    const double now = most_of(*verdict.program, row.count);
    if (std::abs(now - base) <= 1e-9 * std::max(now, base)) continue;
    const auto words = [&](double value) {
      return row.count == CallCount::copy_bytes ? bytes_text(static_cast<std::int64_t>(value))
                                                : fmt::format("{:.6g}", value);
    };
    rows.push_back({std::string(row.name), words(base), words(now),
                    difference_in_words(base, now, words(std::abs(now - base)))});
  }
  if (verdict.mechanism) {
    const VariantMechanism* base = variant_named(*verdict.mechanism, "base");
    const VariantMechanism* now = variant_named(*verdict.mechanism, "trace");
    if (base != nullptr && now != nullptr && base->time.step > 0) {
      const auto differs = [&](double one, double other) {
        return std::abs(one - other) >= smallest_share * base->time.step;
      };
      if (differs(base->time.step, now->time.step))
        rows.push_back(time_row("traced step", base->time.step, now->time.step));
      for (int part = 0; part < time_part_count; ++part) {
        const double then = part_of(base->time, static_cast<TimePart>(part));
        const double is = part_of(now->time, static_cast<TimePart>(part));
        if (differs(then, is))
          rows.push_back(time_row(std::string(in_words(static_cast<TimePart>(part))), then, is));
      }
      add_work(*base, *now, rows);
    }
  }
  return rows.size() > 1 ? rows : std::vector<std::vector<std::string>>{};
}

}  // namespace stepgate
