// SPDX-License-Identifier: MIT
// Effects that stick to a place, learned from earlier rounds so that they can be taken off the next
// one. A prediction from the past is as likely for one assignment of sides to places as for the
// other. So the rest of a contrast is still symmetric round theta: taking the effects off costs no
// validity.
#pragma once

#include <vector>

#include "base/stats/e_process.h"

namespace stepgate {

class PlaceEffects {
 public:
  explicit PlaceEffects(int places);

  // Adds a contrast log(left / right) and the places of its two sides.
  void add(double contrast, int left_place, int right_place);

  // The part of a contrast that the places alone are expected to cause; 0 before two rounds. Ridge
  // regression of the contrasts on the places, with an intercept for theta and a penalty of two
  // rounds, so that few rounds predict little. Contrasts further than three robust scales from
  // their median are clipped to that distance.
  double predict(int left_place, int right_place) const;

 private:
  struct Seen {
    double contrast;
    std::size_t left;
    std::size_t right;
  };

  std::vector<double> effects() const;
  std::vector<double> right_sides(double centre, double reach) const;

  std::size_t places_;
  std::size_t rounds_ = 0;
  std::vector<Seen> seen_;             // the first many_rounds contrasts
  std::vector<SortedValues> on_left_;  // all contrasts, by the place of their left side
  std::vector<SortedValues> on_right_;
  RobustScale scale_;
  std::vector<std::vector<double>> matrix_;  // normal equations
};

}  // namespace stepgate
