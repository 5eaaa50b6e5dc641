// SPDX-License-Identifier: MIT
#include "stats/place_effects.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stats/e_process.h"
#include "stats/quantile.h"

namespace stepgate {
namespace {

constexpr double penalty = 2;         // in rounds
constexpr double most_deviation = 3;  // in robust scales

// The solution of a symmetric positive definite system: elimination without pivoting.
std::vector<double> solve(std::vector<std::vector<double>> matrix, std::vector<double> right) {
  const std::size_t size = right.size();
  for (std::size_t pivot = 0; pivot < size; ++pivot) {
    for (std::size_t row = pivot + 1; row < size; ++row) {
      const double factor = matrix[row][pivot] / matrix[pivot][pivot];
      for (std::size_t column = pivot; column < size; ++column)
        matrix[row][column] -= factor * matrix[pivot][column];
      right[row] -= factor * right[pivot];
    }
  }
  for (std::size_t row = size; row-- > 0;) {
    for (std::size_t column = row + 1; column < size; ++column)
      right[row] -= matrix[row][column] * right[column];
    right[row] /= matrix[row][row];
  }
  return right;
}

}  // namespace

void PlaceEffects::add(double contrast, int left_place, int right_place) {
  seen_.push_back(
      {contrast, static_cast<std::size_t>(left_place), static_cast<std::size_t>(right_place)});
}

double PlaceEffects::predict(int left_place, int right_place) const {
  if (seen_.size() < 2) return 0;
  const std::vector<double> effect = effects();
  return effect[static_cast<std::size_t>(left_place)] -
         effect[static_cast<std::size_t>(right_place)];
}

// Normal equations in the effects of the places and, last, the intercept.
std::vector<double> PlaceEffects::effects() const {
  std::vector<double> contrasts;
  RobustScale scale;
  for (const Seen& seen : seen_) {
    contrasts.push_back(seen.contrast);
    scale.add(seen.contrast);
  }
  const double centre = quantile(std::move(contrasts), 0.5);
  const double reach = most_deviation * scale.value();
  std::vector<std::vector<double>> matrix(places_ + 1, std::vector<double>(places_ + 1, 0.0));
  std::vector<double> right(places_ + 1, 0.0);
  for (std::size_t place = 0; place < places_; ++place) matrix[place][place] = penalty;
  for (const Seen& seen : seen_) {
    const double value = std::clamp(seen.contrast - centre, -reach, reach);
    const std::array<std::pair<std::size_t, double>, 3> terms{
        {{seen.left, 1.0}, {seen.right, -1.0}, {places_, 1.0}}};
    for (const auto& [row, of_row] : terms) {
      for (const auto& [column, of_column] : terms) matrix[row][column] += of_row * of_column;
      right[row] += of_row * value;
    }
  }
  return solve(std::move(matrix), std::move(right));
}

}  // namespace stepgate
