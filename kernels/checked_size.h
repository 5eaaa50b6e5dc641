// SPDX-License-Identifier: MIT
// A number of elements, bytes or operations, computed from user input. It never wraps: a number
// that exceeds 63 bits becomes too large, and so does everything computed from it.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace stepgate {

class CheckedSize {
 public:
  constexpr CheckedSize() = default;
  template <std::integral Whole>
  constexpr CheckedSize(Whole size) : size_(static_cast<std::int64_t>(size)) {}

  // The largest int64_t if the number does not fit. It is never a valid size: plans have a far
  // lower limit.
  constexpr operator std::int64_t() const { return size_; }
  constexpr bool fits() const { return size_ != too_large; }

  constexpr CheckedSize& operator+=(CheckedSize other) {
    if (!fits() || !other.fits() || __builtin_add_overflow(size_, other.size_, &size_))
      size_ = too_large;
    return *this;
  }
  constexpr CheckedSize& operator-=(CheckedSize other) {
    if (!fits() || !other.fits() || __builtin_sub_overflow(size_, other.size_, &size_))
      size_ = too_large;
    return *this;
  }
  constexpr CheckedSize& operator*=(CheckedSize other) {
    if (!fits() || !other.fits() || __builtin_mul_overflow(size_, other.size_, &size_))
      size_ = too_large;
    return *this;
  }
  constexpr CheckedSize& operator/=(CheckedSize other) {
    size_ = fits() && other.fits() ? size_ / other.size_ : too_large;
    return *this;
  }

 private:
  static constexpr std::int64_t too_large = std::numeric_limits<std::int64_t>::max();
  std::int64_t size_ = 0;
};

// Two sizes, or one and a whole number.
template <class A, class B>
concept OneIsChecked = (std::same_as<A, CheckedSize> && std::same_as<B, CheckedSize>) ||
                       (std::same_as<A, CheckedSize> && std::integral<B>) ||
                       (std::integral<A> && std::same_as<B, CheckedSize>);

template <class A, class B>
requires OneIsChecked<A, B>
constexpr CheckedSize operator+(A a, B b) {
  return CheckedSize(a) += b;
}
template <class A, class B>
requires OneIsChecked<A, B>
constexpr CheckedSize operator-(A a, B b) {
  return CheckedSize(a) -= b;
}
template <class A, class B>
requires OneIsChecked<A, B>
constexpr CheckedSize operator*(A a, B b) {
  return CheckedSize(a) *= b;
}
template <class A, class B>
requires OneIsChecked<A, B>
constexpr CheckedSize operator/(A a, B b) {
  return CheckedSize(a) /= b;
}

// The smallest multiple that is at least `size`.
constexpr CheckedSize rounded_up(CheckedSize size, std::int64_t multiple) {
  return (size + (multiple - 1)) / multiple * multiple;
}

}  // namespace stepgate
