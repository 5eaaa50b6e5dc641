// SPDX-License-Identifier: MIT
#include "report/picture/timeline_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/require.h"
#include "base/text/units.h"
#include "plan/compose/step_names.h"
#include "report/trace/trace_events.h"
#include "report/trace/trace_rows.h"

namespace stepgate {
namespace {

constexpr const char* clocks_differ = "each on a clock of its own";

DrawnRanks chosen_ranks(std::span<const Trace> all, const WorstRanks& worst) {
  std::map<int, std::string> why;  // by rank
  why[all.front().rank] = "";
  why[all.back().rank] = "";
  if (const auto exposed = worst.metrics.find(Metric::exposed_comm_us);
      exposed != worst.metrics.end())
    why[exposed->second] = ", whose collectives are hidden least";
  why[worst.shown] = ", which the report is of";
  DrawnRanks drawn;
  std::vector<std::string> words;
  for (const auto& [rank, reason] : why) {
    const auto trace = std::ranges::find(all, rank, &Trace::rank);
    if (trace == all.end()) continue;
    drawn.traces.push_back(&*trace);
    words.push_back(fmt::format("{}{}", rank, reason));
  }
  drawn.note = fmt::format("of {} ranks {}", all.size(), fmt::join(words, "; "));
  return drawn;
}

}  // namespace

DrawnRanks drawn_ranks(std::span<const Trace> all, const WorstRanks& worst) {
  require(!all.empty(), "a variant has a timeline");
  DrawnRanks drawn;
  if (all.size() > most_drawn_ranks) {
    drawn = chosen_ranks(all, worst);
  } else {
    for (const Trace& trace : all) drawn.traces.push_back(&trace);
  }
  if (drawn.traces.size() > 1 && !std::ranges::all_of(all, shares_its_clock))
    drawn.note += drawn.note.empty() ? clocks_differ : fmt::format("; {}", clocks_differ);
  return drawn;
}

namespace {

template <class Records>
Stretch covered(const Records& records) {
  if (records.empty()) return {};
  Stretch all{records.front().begin, records.front().end};
  for (const auto& record : records) {
    all.begin = std::min(all.begin, record.begin);
    all.end = std::max(all.end, record.end);
  }
  return all;
}

TraceTime time_of_a_step(const Trace& trace) {
  const std::vector<NumberedStep> steps = steps_of_the_device(trace);
  if (steps.empty()) return TraceTime(0);
  if (steps.size() == 1) return steps.front().when.end - steps.front().when.begin;
  return (steps.back().when.begin - steps.front().when.begin) /
         static_cast<std::int64_t>(steps.size() - 1);
}

// Returns the begin of the step from which host and device are both recorded for the longest time.
// If the host is ahead by more than the trace, there is none, and only the device is shown.
TraceTime beginning(const Trace& trace, const Stretch& host) {
  const std::vector<NumberedStep> steps = steps_of_the_device(trace);
  const auto both = std::find_if(steps.begin(), steps.end(), [&](const NumberedStep& step) {
    return step.when.begin >= host.begin;
  });
  // Prefers the second step, since the first one of a trace begins before the step is steady.
  if (both != steps.end() && both == steps.begin() && steps.size() > 3) {
    return std::next(both)->when.begin;
  }
  if (both != steps.end()) return both->when.begin;
  return steps.empty() ? host.begin : steps.front().when.begin;
}

// Returns how much earlier the host began the step with which the window begins, where the host is
// recorded for less than half of what the window shows of the device.
TraceTime lead_of(const Trace& trace, const Window& window, TraceTime length) {
  const TraceTime end = std::min(window.device_recorded.end, window.begin + length);
  const TraceTime both =
      std::min(window.host_recorded.end, end) - std::max(window.host_recorded.begin, window.begin);
  if (2 * both >= end - window.begin) return TraceTime(0);
  for (const NumberedStep& drawn : steps_of_the_device(trace)) {
    if (drawn.when.begin < window.begin) continue;
    for (const NumberedStep& issued : steps_of_the_host(trace)) {
      if (issued.number == drawn.number)
        return std::max(drawn.when.begin - issued.when.begin, TraceTime(0));
    }
  }
  return TraceTime(0);
}

}  // namespace

std::vector<NumberedStep> steps_of_the_device(const Trace& trace) {
  // Other streams may already work for the next step: a prefetch must not look like its begin.
  std::map<int, int> pieces;  // by stream
  for (const DeviceWork& work : trace.work) {
    if (work.operation >= 0) ++pieces[work.stream];
  }
  const auto busiest = std::max_element(
      pieces.begin(), pieces.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  std::vector<NumberedStep> steps;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.stream != busiest->first) continue;
    auto step = std::find_if(steps.rbegin(), steps.rend(),
                             [&](const NumberedStep& known) { return known.number == work.step; });
    if (step == steps.rend()) {
      steps.push_back({work.step, {work.begin, work.end}});
      continue;
    }
    step->when.begin = std::min(step->when.begin, work.begin);
    step->when.end = std::max(step->when.end, work.end);
  }
  return steps;
}

Windows windows_of(std::span<const TracesOfRanks> variants, double steps) {
  Windows windows;
  TraceTime slowest{0};
  TraceTime shortest = TraceTime::max();  // recorded time after a window's begin
  for (const TracesOfRanks& ranks : variants) {
    std::vector<Window>& of_ranks = windows.of_variants.emplace_back();
    for (const Trace* trace : ranks) {
      Window& window = of_ranks.emplace_back();
      window.host_recorded = covered(trace->spans);
      window.device_recorded = covered(trace->work);
      window.begin = beginning(*trace, window.host_recorded);
      slowest = std::max(slowest, time_of_a_step(*trace));
    }
    if (std::ranges::all_of(ranks, [](const Trace* rank) { return shares_its_clock(*rank); })) {
      const TraceTime first = std::ranges::min(of_ranks, {}, &Window::begin).begin;
      for (Window& window : of_ranks) window.begin = first;
    }
    for (const Window& window : of_ranks) {
      const TraceTime end = std::max(window.host_recorded.end, window.device_recorded.end);
      shortest = std::min(shortest, end - window.begin);
    }
  }
  const TraceTime wanted(std::llround(static_cast<double>(slowest.count()) * steps));
  windows.length = std::max({std::min(wanted, shortest), std::min(wanted, slowest), TraceTime(1)});
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    for (std::size_t rank = 0; rank < variants[variant].size(); ++rank) {
      Window& window = windows.of_variants[variant][rank];
      window.lead = lead_of(*variants[variant][rank], window, windows.length);
    }
  }
  return windows;
}

namespace {

constexpr double narrowest_box = 0.5;  // in pixels; below, neighbours are merged

// The colours of Okabe and Ito by phase, which can be distinguished with any colour vision, and two
// greys.
constexpr std::array<Colour, phase_count> colours{
    Colour{"#E69F00", "#000"}, Colour{"#56B4E9", "#000"}, Colour{"#0072B2", "#fff"},
    Colour{"#D55E00", "#000"}, Colour{"#009E73", "#000"}, Colour{"#000000", "#fff"},
    Colour{"#CC79A7", "#000"}, Colour{"#F0E442", "#000"}, Colour{"#999999", "#000"},
    Colour{"#555555", "#fff"}};

}  // namespace

const Colour& colour_of(Phase phase) {
  return colours.at(static_cast<std::size_t>(phase));
}

void RowOfPieces::draw(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (!axis_.shows(piece.when)) continue;
    const Box box = axis_.box(piece.when, top_, height_);
    if (box.width < narrowest_box) {
      merge(box, piece);
      continue;
    }
    flush();
    if (box.width < narrowest_own_box) {
      small(box, piece, 1);
    } else {
      draw_alone(box, piece);
    }
  }
  flush();
  svg_.flush_small_boxes();
}

void RowOfPieces::draw_alone(const Box& box, const Piece& piece) {
  svg_.box(box, fmt::format("fill=\"{}\"", piece.colour->fill), piece.words);
  if (!piece.pattern.empty()) {
    svg_.box(box, fmt::format("fill=\"url(#{})\" pointer-events=\"none\"", piece.pattern));
  }
  constexpr double size = 11;
  const std::string label = shortened(piece.label, size, box.width - 6);
  if (label.empty()) return;
  // On a pattern, letters need an outline. Where the pattern hides most of the colour, they are
  // black.
  const bool pale = piece.pattern == waiting_pattern;
  std::string look = pale ? "" : fmt::format("style=\"fill:{}\" ", piece.colour->ink);
  if (!piece.pattern.empty()) {
    look += fmt::format("stroke=\"{}\" stroke-width=\"3\" paint-order=\"stroke\" ",
                        pale ? "#fff" : piece.colour->fill);
  }
  svg_.text(box.left + box.width / 2, top_ + height_ / 2 + 4, size, Anchor::middle, label,
            look + "pointer-events=\"none\"");
}

void RowOfPieces::merge(const Box& box, const Piece& piece) {
  constexpr double widest = 1;
  const double end = merged_.left + merged_.width;
  const bool goes_on = last_ != nullptr && last_->colour == piece.colour &&
                       last_->pattern == piece.pattern && box.left - end < narrowest_box &&
                       box.left + box.width - merged_.left <= widest;
  if (!goes_on) {
    flush();
    merged_ = box;
    filled_ = 0;
  }
  merged_.width = std::max(merged_.width, box.left + box.width - merged_.left);
  filled_ += box.width;
  last_ = &piece;
}

void RowOfPieces::flush() {
  if (last_ == nullptr) return;
  const double width = std::max(merged_.width, narrowest_box);
  const double share = std::min(1.0, filled_ / width);
  merged_.width = width;
  small(merged_, *last_, share);
  last_ = nullptr;
}

void RowOfPieces::small(const Box& box, const Piece& piece, double share) {
  // Few shades make few shapes.
  const double shade = std::clamp(std::round(share * 5) / 5, 0.2, 1.0);
  svg_.small_box(box, shade == 1 ? fmt::format("fill=\"{}\"", piece.colour->fill)
                                 : fmt::format("fill=\"{}\" fill-opacity=\"{:.1f}\"",
                                               piece.colour->fill, shade));
}

std::string time_text(TraceTime time) {
  return seconds_text(static_cast<double>(time.count()) * 1e-9);
}

std::string facts_of(const TracedStep& numbers) {
  std::vector<std::string> all;
  if (numbers.time.step > 0) all.push_back("step " + seconds_text(numbers.time.step));
  const auto value = [&](Metric metric) -> std::optional<double> {
    const auto found = numbers.values.find(metric);
    return found == numbers.values.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto idle = value(Metric::gpu_idle)) {
    all.push_back("GPU idle " + percent_text(*idle));
  }
  if (const auto waits = value(Metric::host_waits_per_step)) {
    all.push_back(fmt::format("{:.3g} host wait{} a step", *waits, *waits == 1 ? "" : "s"));
  }
  if (const auto blocked = value(Metric::host_blocked_us); blocked && *blocked > 0) {
    all.push_back("host blocked " + seconds_text(*blocked));
  }
  if (const auto exposed = value(Metric::exposed_copy_us); exposed && *exposed > 0) {
    all.push_back("copies not hidden " + seconds_text(*exposed));
  }
  if (const auto exposed = value(Metric::exposed_comm_us); exposed && *exposed > 0) {
    all.push_back("collectives not hidden " + seconds_text(*exposed));
  }
  return fmt::format("{}", fmt::join(all, "  \u00b7  "));
}

Piece piece_of(const StepPlan& plan, const HostSpan& span) {
  Piece piece{{span.begin, span.end}, &runners_own, {}, "held back", "held back by stepgate"};
  if (span.operation < 0) return piece;
  const Operation& what = operation_at(plan, span.operation);
  piece.colour = &colour_of(what.phase);
  piece.label = what.name;
  piece.words = fmt::format("{}: {}, step {}, {}", name_of(what.phase), what.name, span.step,
                            time_text(span.end - span.begin));
  return piece;
}

Piece piece_of(const StepPlan& plan, const DeviceWork& work) {
  Piece piece{{work.begin, work.end}, &runners_own, {}, name_of_work(work), {}};
  std::string place = "not part of the step";
  if (work.operation >= 0) {
    const Operation& what = operation_at(plan, work.operation);
    piece.colour = &colour_of(what.phase);
    piece.label = what.name;
    place = fmt::format("{}: {}, step {}", name_of(what.phase), what.name, work.step);
  }
  if (work.kind == WorkKind::copy) piece.pattern = "copy";
  if (work.kind == WorkKind::fill) piece.pattern = "fill";
  piece.words =
      fmt::format("{} ({}), {}", place, name_of_work(work), time_text(work.end - work.begin));
  if (work.kind != WorkKind::kernel) {
    piece.words += ", " + rounded_bytes_text(static_cast<double>(work.bytes));
  }
  return piece;
}

std::vector<Piece> pieces_of(const StepPlan& plan, const DeviceWork& work,
                             const MeetingsOfRanks& meetings) {
  Piece whole = piece_of(plan, work);
  const auto wait = wait_for_rank(work, meetings);
  if (!wait) return {whole};
  whole.words += fmt::format(", of which {} of waiting for rank {}",
                             time_text(wait->until - work.begin), wait->rank);
  Piece waits = whole;
  waits.when.end = wait->until;
  waits.pattern = waiting_pattern;
  waits.label = fmt::format("waits for rank {}", wait->rank);
  whole.when.begin = wait->until;
  return {waits, whole};
}

}  // namespace stepgate
