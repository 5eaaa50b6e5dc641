// SPDX-License-Identifier: MIT
// Evidence that may be looked at after every round: e-processes on paired contrasts, and the
// confidence sequence that inverts them. Knows only numbers; judge knows what a contrast means.
//
// A contrast D is the log-ratio of two sides in one round. The random order and its mirror, in
// random slots, make D - theta symmetric round zero given the past, whatever the noise did (Vovk
// and Wang, Nonparametric e-tests of symmetry). For an odd, increasing f in (-1, 1), the product of
// 1 + f(D - m) is then a supermartingale wherever theta <= m, and by Ville's inequality it ever
// reaches 1 / alpha with probability at most alpha. Here f(x) = stake * tanh(multiplier * x /
// scale), averaged over multipliers: a mixture of supermartingales is one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/stats/sorted_values.h"

namespace stepgate {

// The largest stake of a bet. It is below 1, so that an outlier on the wrong side costs a factor of
// 20 and not everything. It is large enough that 7 rounds reach 1 / 0.01 and 5 rounds 1 / 0.05.
constexpr double stake = 0.95;

// Sizes of the bets, in units of 1 / scale. A bet is near-optimal for an effect of that many
// scales.
constexpr std::array<double, 4> bet_multipliers{0.25, 0.5, 1.0, 2.0};

// The weight of each bet in the mixture. Effects worth gating are more often larger than the noise
// of a round than smaller. These weights decide an effect of twice the noise in 5 % fewer rounds
// than equal weights, and one of half the noise in as many.
constexpr std::array<double, 4> bet_weights{0.1, 0.2, 0.3, 0.4};

// An estimate of the contrasts' noise so far, for the next bet: the median absolute deviation from
// the median, shrunk toward a prior. So one outlier does not make every later bet small. Adding a
// constant to all contrasts does not change it.
class RobustScale {
 public:
  void add(double contrast);
  // Returns the scale, which is comparable with a normal distribution's standard deviation; at
  // least 1e-4.
  double value() const;
  // The median of the contrasts; needs at least one.
  double centre() const { return median_of(sorted_); }

 private:
  SortedValues sorted_;
};

// Returns for each contrast the scale from the earlier ones only.
std::vector<double> predictable_scales(std::span<const double> contrasts);

// The side of the margin on which an e-process tests whether theta lies.
enum class Direction { above, below };  // theta is above the margin; theta is below it

// Evidence that the centre of the contrasts lies on one side of a margin. The e-value starts at 1.
class EProcess {
 public:
  EProcess(Direction direction, double margin) : direction_(direction), margin_(margin) {}

  // `scale` must come from earlier contrasts only.
  void bet(double contrast, double scale);

  // Natural logarithm of the e-value.
  double log_value() const;
  // The e-value, limited to the largest double.
  double value() const;

 private:
  // A product of factors, moved into the logarithm before it over- or underflows.
  struct Component {
    double product = 1;
    double logarithm = 0;
  };

  Direction direction_;
  double margin_;
  std::array<Component, bet_multipliers.size()> components_{};
};

// The fewest rounds after which an e-value can reach 1 / level: 7 at 0.01, 5 at 0.05.
std::int64_t fewest_rounds(double level);

// The expected number of rounds until an e-value reaches 1 / level, for an effect of
// `signal_to_noise` scales. This is log(1 / level) plus the cost of the mixture, divided by the
// growth rate a round. The rate is k^2 / 2 for small k and saturates at log(1 + stake). nullopt
// above a million rounds.
std::optional<double> expected_rounds(double signal_to_noise, double level);

struct ConfidenceSequence {
  double centre = 0;  // where the evidence for "above" and for "below" balances
  // The interval of margins that neither direction has rejected at half the level. A bound is
  // absent while too few rounds can reject anything. Covers theta at all times at once with
  // probability 1 - level.
  std::optional<double> low;
  std::optional<double> high;
};

// Inverts both e-processes by bisection. This is exact, since the scales do not depend on the
// margin and the evidence is monotone in it. At least one contrast; level in (0, 1). `scales`,
// where given, are predictable_scales(contrasts), to save computing them again.
ConfidenceSequence confidence_sequence(std::span<const double> contrasts, double level);
ConfidenceSequence confidence_sequence(std::span<const double> contrasts,
                                       std::span<const double> scales, double level);

}  // namespace stepgate
