// SPDX-License-Identifier: MIT
#include "base/stats/place_effects.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepgate {
namespace {

// Up to this many rounds the right sides are summed contrast by contrast.
constexpr std::size_t many_rounds = 1000;
constexpr double penalty = 2;         // in rounds
constexpr double most_deviation = 3;  // in robust scales

// Solves a symmetric positive definite system by elimination without pivoting.
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
  for (std::size_t left = size; left > 0; --left) {
    const std::size_t row = left - 1;
    for (std::size_t column = row + 1; column < size; ++column)
      right[row] -= matrix[row][column] * right[column];
    right[row] /= matrix[row][row];
  }
  return right;
}

}  // namespace

PlaceEffects::PlaceEffects(int places)
    : places_(static_cast<std::size_t>(places)),
      on_left_(places_),
      on_right_(places_),
      matrix_(places_ + 1, std::vector<double>(places_ + 1, 0.0)) {
  for (std::size_t place = 0; place < places_; ++place) matrix_[place][place] = penalty;
}

// The entries of the matrix are counts of rounds, so their sums are exact in any order.
void PlaceEffects::add(double contrast, int left_place, int right_place) {
  const Seen seen{contrast, static_cast<std::size_t>(left_place),
                  static_cast<std::size_t>(right_place)};
  if (seen_.size() < many_rounds) seen_.push_back(seen);
  on_left_[seen.left].add(contrast);
  on_right_[seen.right].add(contrast);
  scale_.add(contrast);
  ++rounds_;
  const std::array<std::pair<std::size_t, double>, 3> terms{
      {{seen.left, 1.0}, {seen.right, -1.0}, {places_, 1.0}}};
  for (const auto& [row, of_row] : terms) {
    for (const auto& [column, of_column] : terms) matrix_[row][column] += of_row * of_column;
  }
}

double PlaceEffects::predict(int left_place, int right_place) const {
  if (rounds_ < 2) return 0;
  const std::vector<double> effect = effects();
  return effect[static_cast<std::size_t>(left_place)] -
         effect[static_cast<std::size_t>(right_place)];
}

// Solves the normal equations for the effects of the places and, last, the intercept.
std::vector<double> PlaceEffects::effects() const {
  return solve(matrix_, right_sides(scale_.centre(), most_deviation * scale_.value()));
}

// `centre` and `reach` depend on all contrasts so far, so a new round changes every term. With many
// rounds the terms are summed by blocks of sorted values.
std::vector<double> PlaceEffects::right_sides(double centre, double reach) const {
  std::vector<double> right(places_ + 1, 0.0);
  if (rounds_ <= many_rounds) {
    for (const Seen& seen : seen_) {
      const double value = std::clamp(seen.contrast - centre, -reach, reach);
      right[seen.left] += value;
      right[seen.right] -= value;
      right[places_] += value;
    }
    return right;
  }
  for (std::size_t place = 0; place < places_; ++place) {
    const double left = sum_of_bounded_deviations(on_left_[place], centre, reach);
    right[place] = left - sum_of_bounded_deviations(on_right_[place], centre, reach);
    right[places_] += left;
  }
  return right;
}

}  // namespace stepgate
