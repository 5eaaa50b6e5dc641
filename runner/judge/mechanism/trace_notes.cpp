// SPDX-License-Identifier: MIT
#include "judge/mechanism/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "judge/verdict/words.h"
#include "measure/trace/worst_ranks.h"

namespace stepgate {
namespace {

bool alike(const CollectiveAlgorithm& one, const CollectiveAlgorithm& other) {
  return one.kind == other.kind && one.algorithm == other.algorithm &&
         one.protocol == other.protocol && one.channels == other.channels;
}

std::string sizes_in_words(std::int64_t least, std::int64_t most) {
  const auto bytes = [](std::int64_t count) {
    return in_words(static_cast<double>(count), MetricUnit::bytes);
  };
  return least == most ? bytes(least) : bytes(least) + " to " + bytes(most);
}

// "all-reduce of 25 MiB: ring, simple, 16 channels; ...": adjacent sizes with the same algorithm
// are merged.
std::string in_words(const std::set<CollectiveAlgorithm>& algorithms) {
  std::vector<std::string> all;
  for (auto first = algorithms.begin(); first != algorithms.end();) {
    const auto end = std::find_if_not(first, algorithms.end(), [&](const CollectiveAlgorithm& one) {
      return alike(one, *first);
    });
    all.push_back(fmt::format("{} of {}: {}, {}, {} channel{}", name_of(first->kind),
                              sizes_in_words(first->bytes, std::prev(end)->bytes), first->algorithm,
                              first->protocol, first->channels, first->channels == 1 ? "" : "s"));
    first = end;
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string unsteady_note(const std::string& variant, UnsteadyKind kind, std::int64_t times) {
  const std::string head = fmt::format("in the traced steps of '{}' ", variant);
  switch (kind) {
    case UnsteadyKind::module_loading:
      return head + fmt::format(
                        "{} kernel module{} loaded, lazily, which no steady step does; a "
                        "longer warm-up ('measure.warmup') or CUDA_MODULE_LOADING=EAGER "
                        "moves that out of them",
                        times, times == 1 ? " was" : "s were");
    case UnsteadyKind::jit_compilation:
      return head + fmt::format(
                        "the driver compiled {} kernel{} for this GPU, which no steady step "
                        "does; build with its architecture in CMAKE_CUDA_ARCHITECTURES",
                        times, times == 1 ? "" : "s");
    case UnsteadyKind::command_buffer_full:
      return head + fmt::format(
                        "the queue of launches was full {}, so that the host waited in "
                        "launch calls; no count has those waits",
                        times == 1 ? "once" : fmt::format("{} times", times));
    case UnsteadyKind::other:
      break;
  }
  return head + fmt::format("the driver was busy with something else {}",
                            times == 1 ? "once" : fmt::format("{} times", times));
}

}  // namespace

std::vector<std::string> library_record_notes(const Traced& traced) {
  std::set<CollectiveAlgorithm> algorithms;
  std::set<std::string> guessed;
  std::string library;
  bool captured = false;
  for (const TracedRound& round : traced.rounds) {
    for (std::size_t variant = 0; variant < round.variants.size(); ++variant) {
      for (const TracedStep& rank : ranks_of(round, variant)) {
        if (!rank.library) continue;
        library = rank.library->library;
        if (!rank.library->unavailable.empty()) {
          return {fmt::format(
              "collectives of rank {} are counted by plan and trace alone, without {}'s own "
              "record: {}",
              rank.rank, library, rank.library->unavailable)};
        }
        algorithms.insert(rank.library->algorithms.begin(), rank.library->algorithms.end());
        if (!rank.library->guessed.empty()) guessed.insert(rank.library->guessed);
        captured = captured || rank.library->captured;
      }
    }
  }
  std::vector<std::string> notes(guessed.begin(), guessed.end());
  if (algorithms.empty()) return notes;
  notes = {fmt::format("{} itself says how it carries out collectives: {}", library,
                       in_words(algorithms))};
  if (captured) {
    notes.push_back(fmt::format(
        "of collectives in a graph {} speaks when they are captured and not when they run; that "
        "each launch has them is counted by plan and trace alone",
        library));
  }
  return notes;
}

std::vector<std::string> unsteady_notes(std::span<const Subject> subjects, const Traced& traced) {
  std::vector<std::string> notes;
  for (std::size_t variant = 0; variant < subjects.size(); ++variant) {
    std::map<UnsteadyKind, std::int64_t> times;
    for (const TracedRound& round : traced.rounds) {
      for (const TracedStep& rank : ranks_of(round, variant)) {
        for (const auto& [kind, count] : rank.unsteady) times[kind] += count;
      }
    }
    for (const auto& [kind, count] : times) {
      if (count > 0) notes.push_back(unsteady_note(subjects[variant].name, kind, count));
    }
  }
  return notes;
}

}  // namespace stepgate
