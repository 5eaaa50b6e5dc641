// SPDX-License-Identifier: MIT
// Attributes of a launch: facts that it is told besides its sizes (a learning rate, whether a
// result is added to). Each kernel's header names them in namespace `kernels`: `struct Sgd` has the
// kernel's name and its Attributes, an aggregate of at most five numbers or flags. Here those of
// all kernels become one type, so that a launch is one type.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace stepgate {
namespace attribute_members {

struct Anything {
  template <class Member>
  constexpr operator Member() const;
};

template <class Attributes, class... Given>
constexpr std::size_t count() {
  if constexpr (requires { Attributes{Given{}..., Anything{}}; })
    return count<Attributes, Given..., Anything>();
  else
    return sizeof...(Given);
}

// References to the members, in their order.
template <class Attributes>
constexpr auto of(Attributes& attributes) {
  constexpr std::size_t members = count<std::remove_const_t<Attributes>>();
  static_assert(members <= 5, "a kernel has at most five attributes");
  if constexpr (members == 0) {
    return std::tie();
  } else if constexpr (members == 1) {
    auto& [a] = attributes;
    return std::tie(a);
  } else if constexpr (members == 2) {
    auto& [a, b] = attributes;
    return std::tie(a, b);
  } else if constexpr (members == 3) {
    auto& [a, b, c] = attributes;
    return std::tie(a, b, c);
  } else if constexpr (members == 4) {
    auto& [a, b, c, d] = attributes;
    return std::tie(a, b, c, d);
  } else {
    auto& [a, b, c, d, e] = attributes;
    return std::tie(a, b, c, d, e);
  }
}

}  // namespace attribute_members

// Attributes of a kernel that is told nothing.
struct NoAttributes {};

class KernelAttributes {
 public:
  constexpr KernelAttributes() = default;

  template <class Attributes>
  requires std::is_aggregate_v<Attributes>
  constexpr KernelAttributes(const Attributes& attributes) {
    std::apply(
        [this](const auto&... member) {
          std::size_t index = 0;
          ((numbers_[index++] = static_cast<double>(member)), ...);
        },
        attribute_members::of(attributes));
  }

  // As they were given: flags, and whole numbers up to 2^53, come back exactly.
  template <class Attributes>
  constexpr Attributes to() const {
    Attributes attributes;
    std::apply(
        [this](auto&... member) {
          std::size_t index = 0;
          ((member = static_cast<std::remove_reference_t<decltype(member)>>(numbers_[index++])),
           ...);
        },
        attribute_members::of(attributes));
    return attributes;
  }

  // As those of a kernel: as<kernels::Sgd>().learning_rate.
  template <class Kernel>
  constexpr typename Kernel::Attributes as() const {
    return to<typename Kernel::Attributes>();
  }

  // In the order of the members; 0 behind the last.
  constexpr const std::array<double, 5>& numbers() const { return numbers_; }

  auto operator<=>(const KernelAttributes&) const = default;

 private:
  std::array<double, 5> numbers_{};
};

}  // namespace stepgate
