// SPDX-License-Identifier: MIT
#include "measure/trace/traced_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "base/files/temporary_folder.h"
#include "base/fnv1a.h"
#include "base/text/json_line.h"
#include "device/trace_json.h"
#include "measure/trace/worst_ranks.h"

namespace stepgate {
namespace {

constexpr std::string_view first_words = "stepgate traces 1 ";  // 1 is the version of the format

bool by_rank(const std::vector<TracedStep>& steps) {
  int last = -1;
  for (const TracedStep& step : steps) {
    if (step.rank <= std::exchange(last, step.rank)) return false;
  }
  return last < most_ranks;
}

bool has_times_beyond_years(const Traced& traced) {
  constexpr std::chrono::nanoseconds most = std::chrono::hours(24 * 365 * 10);
  const auto is_beyond = [&](std::chrono::nanoseconds time) { return time < -most || time > most; };
  return is_beyond(traced.wall_time) || std::ranges::any_of(traced.wall_times.by_part, is_beyond);
}

bool same_ranks(const TracedRound& one, const TracedRound& other) {
  return std::ranges::equal(one.ranks, other.ranks, [](const auto& these, const auto& those) {
    return std::ranges::equal(these, those, {}, &TracedStep::rank, &TracedStep::rank);
  });
}

// Returns why the parts are inconsistent, in words that continue "the trace "; empty if consistent.
std::string contradiction_in(const Traced& traced) {
  if (traced.steps < 0) return "has fewer than no steps";
  if (has_times_beyond_years(traced)) return "took longer than ten years";
  for (const std::vector<Trace>& ranks : traced.timelines) {
    if (ranks.empty()) return "has a variant without a timeline";
    if (std::ranges::adjacent_find(ranks, std::greater_equal{}, &Trace::rank) != ranks.end())
      return "has timelines that are not by rank";
  }
  for (const TracedRound& round : traced.rounds) {
    const std::size_t variants = round.variants.size();
    if (round.ranks.size() != 0 && round.ranks.size() != variants)
      return "has a round without all ranks";
    if (variants != traced.rounds.front().variants.size() ||
        (!traced.timelines.empty() && variants != traced.timelines.size()))
      return "has a round without all variants";
    if (!same_ranks(round, traced.rounds.front())) return "has rounds of other ranks";
    if (!std::ranges::all_of(round.ranks, by_rank)) return "has rounds that are not by rank";
    for (const TracedStep& step : round.variants) {
      if (step.rank < 0 || step.rank >= most_ranks) return "has a rank that cannot be";
    }
  }
  return "";
}

std::string header_of(std::string_view body) {
  return fmt::format("{}{} {:016x}\n", first_words, body.size(), fnv1a(body));
}

// Returns how the text was damaged; empty if it is as it was written.
std::string damage_of(std::string_view text, std::string_view body) {
  if (!text.starts_with(first_words)) return "does not begin as traces of this stepgate do";
  std::size_t written = 0;
  const std::string_view rest = text.substr(first_words.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), written);
  if (body.size() < written)
    return fmt::format("is cut off after {} of {} bytes", body.size(), written);
  return "was changed after it was written";
}

}  // namespace

std::string traced_text(const Traced& traced) {
  const std::string body = json_line(record_json(traced)) + "\n";
  return header_of(body) + body;
}

TracedOrDamaged read_traced_text(std::string_view text) {
  const std::size_t line = text.find('\n');
  const std::string_view body =
      line == std::string_view::npos ? std::string_view() : text.substr(line + 1);
  if (text.substr(0, text.size() - body.size()) != header_of(body))
    return DamagedTrace{damage_of(text, body)};
  try {
    auto traced = record_from<Traced>(parsed_object(body));
    const std::string contradiction = contradiction_in(traced);
    if (!contradiction.empty()) return DamagedTrace{contradiction};
    take_worst_ranks(traced);
    return traced;
  } catch (const WrongRecord& wrong) {
    return DamagedTrace{wrong.what()};
  }
}

void write_traced(const std::filesystem::path& file, const Traced& traced) {
  (void)write_temporary_file(file, traced_text(traced));
}

TracedOrDamaged read_traced(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return DamagedTrace{"was not written"};
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return DamagedTrace{"cannot be read"};
  return read_traced_text(text);
}

}  // namespace stepgate
