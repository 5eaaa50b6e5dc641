// SPDX-License-Identifier: MIT
// An aggregate of whole numbers, real numbers and flags that keeps its type behind one common type.
// The sizes and the attributes of a launch are such values, so that a launch is one type. The
// members are derived from the declaration of the aggregate and never listed twice. Comparing,
// printing and digesting go through them in declaration order. Only their names, which libraries
// and people are told, are written beside them:
//   static constexpr std::string_view names = "rows columns";
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace stepgate {

// The value of a member; an int is widened to 64 bits.
using AggregateMember = std::variant<bool, std::int64_t, double>;

namespace aggregate {

struct Anything {
  template <class Member>
  constexpr operator Member() const;
};

template <class Member>
struct Exactly {
  template <std::same_as<Member> Same>
  constexpr operator Same() const;
};

template <class... Members>
struct List {
  static constexpr std::size_t count = sizeof...(Members);
};

template <class Aggregate, class... Known>
concept BeginsWith = requires {
  Aggregate{Exactly<Known>{}...};
};

// Determines the types of the members that follow the known ones.
template <class Aggregate, class... Known>
constexpr auto members() {
  if constexpr (BeginsWith<Aggregate, Known..., bool>) {
    return members<Aggregate, Known..., bool>();
  } else if constexpr (BeginsWith<Aggregate, Known..., int>) {
    return members<Aggregate, Known..., int>();
  } else if constexpr (BeginsWith<Aggregate, Known..., std::int64_t>) {
    return members<Aggregate, Known..., std::int64_t>();
  } else if constexpr (BeginsWith<Aggregate, Known..., double>) {
    return members<Aggregate, Known..., double>();
  } else {
    static_assert(
        !requires {
          Aggregate{Exactly<Known>{}..., Anything{}};
        },
        "members are of type bool, int, std::int64_t or double");
    return List<Known...>();
  }
}

// The position of a member and the function that reads it.
struct Place {
  std::size_t offset = 0;
  AggregateMember (*read)(const std::byte*) = nullptr;
};

template <class Member>
AggregateMember read(const std::byte* from) {
  Member member;
  std::memcpy(&member, from, sizeof member);
  if constexpr (std::same_as<Member, int>)
    return std::int64_t{member};
  else
    return member;
}

template <class... Members>
constexpr auto places(List<Members...>, std::size_t bytes) {
  std::array<Place, sizeof...(Members)> all{};
  std::size_t index = 0, end = 0;
  [[maybe_unused]] const auto add = [&]<class Member>(std::type_identity<Member>) {
    const std::size_t offset = (end + alignof(Member) - 1) / alignof(Member) * alignof(Member);
    all[index++] = {offset, read<Member>};
    end = offset + sizeof(Member);
  };
  (add(std::type_identity<Members>()), ...);
  if (!all.empty() && (end > bytes || bytes - end >= alignof(std::max_align_t)))
    throw "members lie as they are declared";
  return all;
}

template <class Aggregate>
inline constexpr auto places_in = places(members<Aggregate>(), sizeof(Aggregate));

// The name at an index of a list such as "rows columns"; empty beyond its end.
constexpr std::string_view name_at(std::string_view names, std::size_t index) {
  for (; index > 0 && !names.empty(); --index) {
    const std::size_t blank = names.find(' ');
    names = blank == std::string_view::npos ? std::string_view() : names.substr(blank + 1);
  }
  return names.substr(0, names.find(' '));
}

template <class Aggregate>
constexpr std::string_view names_in() {
  if constexpr (requires { Aggregate::names; }) {
    constexpr std::size_t count = places_in<Aggregate>.size();
    static_assert(
        !name_at(Aggregate::names, count - 1).empty() && name_at(Aggregate::names, count).empty(),
        "an aggregate names each of its members once");
    return Aggregate::names;
  }
  return {};
}

// The description of a type. Each type has one instance, whose address identifies the type.
struct Type {
  std::span<const Place> places;
  std::string_view names;
};
template <class Aggregate>
inline constexpr Type type_of = {places_in<Aggregate>, names_in<Aggregate>()};

}  // namespace aggregate

class AggregateValue {
 public:
  // Room for twelve 64-bit numbers; a larger aggregate does not compile until this is increased.
  static constexpr std::size_t room = 96;

  AggregateValue() = default;  // without members, like any aggregate that has none

  template <class Aggregate>
  requires(std::is_class_v<Aggregate>&& std::is_aggregate_v<Aggregate> &&
           !std::derived_from<Aggregate, AggregateValue>)
      AggregateValue(const Aggregate& aggregate) {
    static_assert(std::is_trivially_copyable_v<Aggregate> && sizeof(Aggregate) <= room);
    if (aggregate::places_in<Aggregate>.empty()) return;
    type_ = &aggregate::type_of<Aggregate>;
    std::memcpy(bytes_.data(), &aggregate, sizeof aggregate);
  }

  // Returns the aggregate bit for bit, or its default if the value has no members. Aborts if the
  // value was made from another type, since only plans and tests pair kernels and values.
  template <class Aggregate>
  Aggregate to() const {
    Aggregate aggregate;
    if (type_ == nullptr) return aggregate;
    if (!holds<Aggregate>()) {
      std::fprintf(stderr, "a kernel is launched with the sizes or attributes of another kernel\n");
      std::abort();
    }
    std::memcpy(&aggregate, bytes_.data(), sizeof aggregate);
    return aggregate;
  }

  // Whether the value was made from this type; a value without members has no type.
  template <class Aggregate>
  bool holds() const {
    return type_ == &aggregate::type_of<Aggregate>;
  }

  std::size_t size() const { return places().size(); }
  AggregateMember member(std::size_t index) const {
    const aggregate::Place& place = places()[index];
    return place.read(bytes_.data() + place.offset);
  }

  // The name of a member; empty where its aggregate has none.
  std::string_view name(std::size_t index) const {
    return type_ == nullptr ? std::string_view() : aggregate::name_at(type_->names, index);
  }

  // Values are equal if their types and all members are.
  friend bool operator==(const AggregateValue& a, const AggregateValue& b) {
    if (a.type_ != b.type_) return false;
    for (std::size_t index = 0; index < a.size(); ++index) {
      if (a.member(index) != b.member(index)) return false;
    }
    return true;
  }

 private:
  std::span<const aggregate::Place> places() const {
    return type_ == nullptr ? std::span<const aggregate::Place>() : type_->places;
  }

  const aggregate::Type* type_ = nullptr;
  alignas(8) std::array<std::byte, room> bytes_{};
};

// The members in their order, flags as 0 and 1, with `separator` between them: "1 0 0.125".
std::string text_of(const AggregateValue&, const char* separator = " ");

}  // namespace stepgate
