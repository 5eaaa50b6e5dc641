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

  // A contrast log(left / right) that was seen, and the places that its sides had.
  void add(double contrast, int left_place, int right_place);

  // The part that the places alone are expected to add to the contrast; 0 at first. By ridge
  // regression of the contrasts on the places, with an intercept for theta and a penalty of two
  // rounds, so that few rounds predict little. Contrasts further than three robust scales from
  // their median count as if they were there.
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
  std::vector<Seen> seen_;             // the first
  std::vector<SortedValues> on_left_;  // all of them, by the place of their left side
  std::vector<SortedValues> on_right_;
  RobustScale scale_;
  std::vector<std::vector<double>> matrix_;  // of the normal equations
};

}  // namespace stepgate
