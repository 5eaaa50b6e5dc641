// SPDX-License-Identifier: MIT
#include "measure/trace/worst_ranks.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/require.h"
#include "base/stats/quantile.h"

namespace stepgate {
namespace {

using Medians = std::vector<std::optional<double>>;  // by index of the rank

// The results of one variant's ranks over all rounds.
class RanksOfVariant {
 public:
  RanksOfVariant(Traced& traced, std::size_t variant) : traced_(traced), variant_(variant) {
    for (const TracedRound& round : traced.rounds) {
      require(std::ranges::equal(round.ranks[variant], first(), {}, &TracedStep::rank,
                                 &TracedStep::rank),
              "every round has the same ranks");
    }
  }

  WorstRanks take() {
    const std::size_t shown = shown_place();
    WorstRanks worst{.shown = first()[shown].rank, .metrics = {}, .kernels = {}};
    for (TracedRound& round : traced_.rounds) {
      round.variants[variant_] = round.ranks[variant_][shown];
    }
    for (const MetricRow& row : metric_table()) {
      if (row.evidence != Evidence::traced || row.better == Better::neither) continue;
      const auto place = worst_place(medians_of(row.metric), row.better, shown);
      if (!place) continue;
      worst.metrics[row.metric] = first()[*place].rank;
      for (TracedRound& round : traced_.rounds) take_value(round, *place, row.metric);
    }
    for (const std::string& kernel : kernels()) {
      const auto place = worst_place(medians_of(kernel), Better::less, shown);
      if (!place) continue;
      worst.kernels[kernel] = first()[*place].rank;
      for (TracedRound& round : traced_.rounds) take_work(round, *place, kernel);
    }
    return worst;
  }

 private:
  const std::vector<TracedStep>& first() const { return traced_.rounds.front().ranks[variant_]; }

  // The median of each rank's value, over the rounds that have one.
  template <class ValueOf>
  Medians medians(ValueOf&& value_of) const {
    Medians all;
    for (std::size_t place = 0; place < first().size(); ++place) {
      std::vector<double> values;
      for (const TracedRound& round : traced_.rounds) {
        const std::optional<double> value = value_of(round.ranks[variant_][place]);
        if (value) values.push_back(*value);
      }
      all.push_back(values.empty() ? std::nullopt
                                   : std::optional(quantile(std::move(values), 0.5)));
    }
    return all;
  }

  Medians medians_of(Metric metric) const {
    return medians([&](const TracedStep& step) -> std::optional<double> {
      const auto found = step.values.find(metric);
      if (found == step.values.end()) return std::nullopt;
      return found->second;
    });
  }

  Medians medians_of(const std::string& kernel) const {
    return medians([&](const TracedStep& step) -> std::optional<double> {
      const auto found = step.work.find(kernel);
      return found == step.work.end() ? 0 : found->second.seconds;
    });
  }

  // Returns the index of the worst rank; nullopt where the ranks do not differ.
  static std::optional<std::size_t> worst_place(const Medians& medians, Better better,
                                                std::size_t shown) {
    std::size_t worst = shown;
    bool differs = false;
    for (std::size_t place = 0; place < medians.size(); ++place) {
      const auto& one = medians[place];
      const auto& most = medians[worst];
      if (one == most) continue;
      differs = true;
      if (!one) continue;
      if (!most || (better == Better::more ? *one < *most : *one > *most)) worst = place;
    }
    return differs ? std::optional(worst) : std::nullopt;
  }

  // Counts the last arrivals in one rank's results, since all ranks of a round record the same
  // arrivals.
  std::size_t shown_place() const {
    std::map<int, std::int64_t> times_last;
    for (const TracedRound& round : traced_.rounds) {
      const auto& values = round.ranks[variant_].front().values;
      if (const auto last = values.find(Metric::last_rank); last != values.end())
        ++times_last[static_cast<int>(last->second)];
    }
    const auto most =
        std::ranges::max_element(times_last, {}, [](const auto& rank) { return rank.second; });
    if (most != times_last.end()) {
      const auto last = std::ranges::find(first(), most->first, &TracedStep::rank);
      if (last != first().end()) return static_cast<std::size_t>(last - first().begin());
    }
    const Medians steps =
        medians([](const TracedStep& step) { return std::optional(step.time.step); });
    return static_cast<std::size_t>(std::ranges::max_element(steps) - steps.begin());
  }

  std::set<std::string> kernels() const {
    std::set<std::string> names;
    for (const TracedRound& round : traced_.rounds) {
      for (const TracedStep& step : round.ranks[variant_]) {
        for (const auto& [name, time] : step.work) names.insert(name);
      }
    }
    return names;
  }

  void take_value(TracedRound& round, std::size_t place, Metric metric) const {
    const std::map<Metric, double>& from = round.ranks[variant_][place].values;
    std::map<Metric, double>& to = round.variants[variant_].values;
    to.erase(metric);
    if (const auto value = from.find(metric); value != from.end()) to.insert(*value);
  }

  void take_work(TracedRound& round, std::size_t place, const std::string& kernel) const {
    const WorkTimes& from = round.ranks[variant_][place].work;
    WorkTimes& to = round.variants[variant_].work;
    to.erase(kernel);
    if (const auto time = from.find(kernel); time != from.end()) to.insert(*time);
  }

  Traced& traced_;
  std::size_t variant_;
};

}  // namespace

void take_worst_ranks(Traced& traced) {
  traced.worst.clear();
  if (traced.rounds.empty()) return;
  for (TracedRound& round : traced.rounds) round.ranks.resize(round.variants.size());
  traced.worst.resize(traced.rounds.front().variants.size());
  for (std::size_t variant = 0; variant < traced.worst.size(); ++variant) {
    for (TracedRound& round : traced.rounds) {
      std::vector<TracedStep>& ranks = round.ranks[variant];
      if (ranks.size() != 1) continue;
      round.variants[variant] = std::move(ranks.front());
      ranks.clear();
    }
    if (traced.rounds.front().ranks[variant].empty()) {
      traced.worst[variant].shown = traced.rounds.front().variants[variant].rank;
    } else {
      traced.worst[variant] = RanksOfVariant(traced, variant).take();
    }
  }
}

std::span<const TracedStep> ranks_of(const TracedRound& round, std::size_t variant) {
  if (variant < round.ranks.size() && !round.ranks[variant].empty()) return round.ranks[variant];
  if (variant >= round.variants.size()) return {};
  return std::span(round.variants).subspan(variant, 1);
}

}  // namespace stepgate
