// SPDX-License-Identifier: MIT
// The members of a struct without a list of them, so that none can be forgotten.
#pragma once

#include <cstddef>
#include <type_traits>

namespace stepgate {

namespace members_in_detail {

struct Anything {
  template <class Member>
  operator Member() const;
};

template <class Value, class... Given>
constexpr std::size_t count() {
  if constexpr (requires { Value{Given{}..., Anything{}}; })
    return count<Value, Given..., Anything>();
  else
    return sizeof...(Given);
}

}  // namespace members_in_detail

// Calls visit(first, second, ...) with all members. Does not compile if `count` is not their
// number: "only 1 name provided for structured binding, while DeviceKey decomposes into 2".
template <std::size_t count, class Value, class Visit>
constexpr void with_members(Value& value, Visit&& visit) {
  // clang-format off
  if constexpr (count == 0) static_assert(std::is_empty_v<Value>);
  else if constexpr (count == 1) { auto& [a] = value; visit(a); }
  else if constexpr (count == 2) { auto& [a, b] = value; visit(a, b); }
  else if constexpr (count == 3) { auto& [a, b, c] = value; visit(a, b, c); }
  else if constexpr (count == 4) { auto& [a, b, c, d] = value; visit(a, b, c, d); }
  else if constexpr (count == 5) { auto& [a, b, c, d, e] = value; visit(a, b, c, d, e); }
  else if constexpr (count == 6) { auto& [a, b, c, d, e, f] = value; visit(a, b, c, d, e, f); }
  else if constexpr (count == 7) { auto& [a, b, c, d, e, f, g] = value; visit(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) { auto& [a, b, c, d, e, f, g, h] = value; visit(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) { auto& [a, b, c, d, e, f, g, h, i] = value; visit(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = value; visit(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = value; visit(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (count == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (count == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (count == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (count == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (count == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  else if constexpr (count == 17) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q); }
  else if constexpr (count == 18) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r); }
  else if constexpr (count == 19) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s); }
  else if constexpr (count == 20) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t); }
  else if constexpr (count == 21) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u); }
  else if constexpr (count == 22) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v); }
  else if constexpr (count == 23) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w); }
  else if constexpr (count == 24) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x); }
  else if constexpr (count == 25) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y); }
  else if constexpr (count == 26) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z); }
  else if constexpr (count == 27) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2); }
  else if constexpr (count == 28) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2); }
  else if constexpr (count == 29) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2); }
  else if constexpr (count == 30) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2); }
  else if constexpr (count == 31) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2); }
  else if constexpr (count == 32) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2); }
  else if constexpr (count == 33) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2); }
  else if constexpr (count == 34) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2); }
  else if constexpr (count == 35) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2); }
  else if constexpr (count == 36) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2); }
  else if constexpr (count == 37) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2); }
  else if constexpr (count == 38) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2, l2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2, l2); }
  else if constexpr (count == 39) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2, l2, m2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2, l2, m2); }
  else if constexpr (count == 40) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2, l2, m2, n2] = value; visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2, i2, j2, k2, l2, m2, n2); }
  else static_assert(count == 0, "give this function a line for so many members");
  // clang-format on
}

// Calls visit(member) for each member of an aggregate, in order. Does not compile for an aggregate
// with an array, a base class or a member that anything converts to.
template <class Value, class Visit>
requires std::is_aggregate_v<std::remove_const_t<Value>>
constexpr void for_each_member(Value& value, Visit&& visit) {
  with_members<members_in_detail::count<std::remove_const_t<Value>>()>(
      value, [&](auto&... member) { (visit(member), ...); });
}

}  // namespace stepgate
