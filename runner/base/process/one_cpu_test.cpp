// SPDX-License-Identifier: MIT
#include "base/process/one_cpu.h"

#include <gtest/gtest.h>

#include <set>

namespace stepgate {
namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

TEST(OneCpu, KeepsTheThreadOnOneOfItsProcessorsAndLetsItGo) {
  const cpu_set_t before = allowed();
  std::set<int> used;
  for (std::uint64_t draw = 0; draw < 64; ++draw) {
    const OneCpu pinned(draw);
    const cpu_set_t now = allowed();
    EXPECT_EQ(CPU_COUNT(&now), 1);
    EXPECT_TRUE(CPU_ISSET(::sched_getcpu(), &now));
    EXPECT_TRUE(CPU_ISSET(::sched_getcpu(), &before));
    used.insert(::sched_getcpu());
  }
  const cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(std::ssize(used), std::min(CPU_COUNT(&before), 64)) << "each draw may be another";
}

TEST(OneCpu, IsTheSameForTheSameDraw) {
  const auto cpu_of = [](std::uint64_t draw) {
    const OneCpu pinned(draw);
    return ::sched_getcpu();
  };
  EXPECT_EQ(cpu_of(~0ull), cpu_of(~0ull));
}

TEST(OneCpu, IsAnotherForEachMember) {
  const cpu_set_t before = allowed();
  const int members = CPU_COUNT(&before);
  for (const std::uint64_t draw : {0ull, 7ull, ~0ull}) {
    std::set<int> used;
    for (int member = 0; member < members; ++member) {
      const OneCpu pinned(draw, member, members);
      used.insert(::sched_getcpu());
    }
    EXPECT_EQ(std::ssize(used), members);
  }
}

}  // namespace
}  // namespace stepgate
