// SPDX-License-Identifier: MIT
// The words of a scenario file for the values of those enums whose own names they are not, or not
// alone; a row has those of any other enum as choices<Enum>. Choices without a value are of the
// format, but not built yet. Only fields.cpp includes this.
#pragma once

#include <algorithm>
#include <array>

#include "base/text/enumerators.h"
#include "scenario/knobs/field_row.h"

namespace stepgate::field_choices {

using field_row::choice;

// Whether files can write every value of the enum.
template <class Enum, std::size_t count>
constexpr bool name_all_of(const std::array<Choice, count>& choices) {
  for (std::size_t value = 0; value < enumerators<Enum>.size(); ++value) {
    const auto means_it = [&](const Choice& one) {
      return one.value == static_cast<std::int64_t>(value);
    };
    if (std::ranges::none_of(choices, means_it)) return false;
  }
  return true;
}

inline constexpr std::array model_kinds{choice("mlp", ModelKind::mlp),
                                        choice("spin", ModelKind::spin),
                                        choice("transformer", ModelKind::transformer),
                                        choice("elementwise", ModelKind::elementwise),
                                        choice("chase", ModelKind::chase),
                                        choice("recommender", ModelKind::recommender)};
inline constexpr std::array layouts{choice("soa", Layout::arrays), choice("aos", Layout::records)};
inline constexpr std::array host_memories{choice("resident", HostMemory::resident),
                                          choice("pageable", HostMemory::pageable),
                                          choice("pinned", HostMemory::pinned),
                                          choice("registered", HostMemory::registered),
                                          choice("pin_each_step", HostMemory::pin_each_step),
                                          choice("mapped"),
                                          choice("managed", HostMemory::managed),
                                          choice("managed_prefetch", HostMemory::managed_prefetch)};
inline constexpr std::array allocators{
    choice("static", Allocator::fixed),          choice("cuda", Allocator::cuda),
    choice("cuda_async", Allocator::cuda_async), choice("arena", Allocator::arena),
    choice("caching", Allocator::caching),       choice("expandable", Allocator::expandable),
    choice("first_fit", Allocator::first_fit)};
inline constexpr std::array alloc_rounds{choice("none", AllocRound::none),
                                         choice("pow2/4", AllocRound::quarters),
                                         choice("pow2/8", AllocRound::eighths)};
inline constexpr std::array fuses{choice("attention", Fuse::attention),
                                  choice("pointwise", Fuse::pointwise), choice("none", Fuse::none)};
inline constexpr std::array gemm_choices{choice("heuristic", GemmChoice::heuristic),
                                         choice("autotune", GemmChoice::autotune)};
inline constexpr std::array<Choice, 9> checkpoints{{{"none", 0},
                                                    {"full", 1},
                                                    {"every 2", 2},
                                                    {"every 3", 3},
                                                    {"every 4", 4},
                                                    {"every 6", 6},
                                                    {"every 8", 8},
                                                    {"every 12", 12},
                                                    {"every 16", 16}}};
inline constexpr std::array rank_links{choice("default", RankLinks::usual),
                                       choice("no_p2p", RankLinks::no_p2p)};
inline constexpr std::array interleave_choices{choice("auto", Interleave::automatic),
                                               choice("segments", Interleave::segments)};

static_assert(name_all_of<ModelKind>(model_kinds) && name_all_of<Layout>(layouts) &&
              name_all_of<HostMemory>(host_memories) && name_all_of<Allocator>(allocators) &&
              name_all_of<AllocRound>(alloc_rounds) && name_all_of<Fuse>(fuses) &&
              name_all_of<GemmChoice>(gemm_choices) && name_all_of<RankLinks>(rank_links) &&
              name_all_of<Interleave>(interleave_choices));

}  // namespace stepgate::field_choices
