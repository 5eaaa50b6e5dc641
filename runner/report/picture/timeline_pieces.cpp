// SPDX-License-Identifier: MIT
#include "report/picture/timeline_pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <vector>

#include "base/text/units.h"
#include "plan/compose/step_names.h"
#include "report/trace/trace_arguments.h"

namespace stepgate {

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
