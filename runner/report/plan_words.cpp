// SPDX-License-Identifier: MIT
#include "report/plan_words.h"

#include <array>
#include <cstddef>

namespace stepgate {
namespace {

constexpr std::array<std::string_view, phase_count> phases{
    "data wait", "h2d", "forward", "backward", "optimizer", "log", "sync", "host"};
constexpr std::array<std::string_view, stream_count> streams{"compute", "side", "legacy"};

}  // namespace

std::string_view in_words(Phase phase) {
  return phases.at(static_cast<std::size_t>(phase));
}

std::string_view in_words(StreamName stream) {
  return streams.at(static_cast<std::size_t>(stream));
}

}  // namespace stepgate
