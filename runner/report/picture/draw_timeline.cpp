// SPDX-License-Identifier: MIT
#include "report/picture/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ostream>
#include <set>

#include "base/require.h"
#include "base/text/units.h"
#include "measure/trace/worst_ranks.h"
#include "plan/compose/step_names.h"
#include "report/picture/svg.h"
#include "report/picture/timeline_parts.h"
#include "report/trace/trace_rows.h"

namespace stepgate {
namespace {

// Sizes are in pixels.
constexpr double row_height = 26;
constexpr double row_gap = 6;
constexpr double step_marks_height = 15;
constexpr double narrowest_left_edge = 128;  // of the time axis; longer row names move it
constexpr double widest_left_edge = 300;
constexpr double row_name_size = 12;
constexpr double row_name_begin = 20;

constexpr std::string_view patterns =
    R"svg(<defs>
<pattern id="wait" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="#fff"/><rect width="2.2" height="5" fill="#000"/></pattern>
<pattern id="copy" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 1.5h6M0 4.5h6" stroke="#fff" stroke-width="1.1" stroke-opacity="0.85"/></pattern>
<pattern id="fill" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2.5" cy="2.5" r="1.1" fill="#fff"/></pattern>
<pattern id="none" width="7" height="7" patternUnits="userSpaceOnUse"><rect width="7" height="7" fill="#f3f3f3"/><circle cx="3.5" cy="3.5" r="0.8" fill="#bbb"/></pattern>
<pattern id="ranks" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6" fill="#fff" fill-opacity="0.55"/><rect width="3" height="6" fill="#fff"/></pattern>
</defs>
)svg";

class Timeline {
 public:
  Timeline(const DeviceIdentity& device, std::span<const DrawnVariant> variants)
      : device_(device), variants_(variants) {
    std::vector<TracesOfRanks> traces;
    for (const DrawnVariant& variant : variants) {
      TracesOfRanks& ranks = traces.emplace_back();
      for (const DrawnRank& rank : variant.ranks) {
        ranks.push_back(&rank.trace);
        make_room_for_names(variant, rank.trace);
      }
    }
    constexpr double shown_steps = 2.1;
    windows_ = windows_of(traces, shown_steps);
  }

  std::string draw() {
    draw_title();
    draw_legend();
    const double top_of_variants = top_;
    Svg lines;  // behind all other shapes
    for (std::size_t index = 0; index < variants_.size(); ++index) draw_variant(index);
    draw_axis(lines, top_of_variants);
    return svg_file(top_, std::string(text_style) + std::string(patterns) +
                              std::string(white_page) + lines.body() + svg_.body());
  }

 private:
  static bool has_several_ranks(const DrawnVariant& variant) {
    return variant.plan.ranks.count > 1;
  }

  static std::string name_of_row(int stream, const std::string& name) {
    return name.empty() ? fmt::format("stream {}", stream) : name + " stream";
  }

  void make_room_for_names(const DrawnVariant& variant, const Trace& trace) {
    std::vector<std::string> names;
    for (const auto& [stream, name] : names_of_streams(variant.plan, trace))
      names.push_back(name_of_row(stream, name));
    if (has_several_ranks(variant)) names.push_back(name_of_ranks(trace));
    for (const std::string& name : names) {
      const double needed = row_name_begin + width_of_text(name, row_name_size) + 12;
      left_edge_ = std::clamp(needed, left_edge_, widest_left_edge);
    }
  }

  void draw_title() {
    const StepPlan& plan = variants_.front().plan;
    svg_.text(20, 32, 20, Anchor::start, plan.scenario, "font-weight=\"bold\"");
    svg_.text(right_edge, 32, 12, Anchor::end,
              fmt::format("{} of steady steps on {}, traced", time_text(windows_.length),
                          in_words(device_)),
              "style=\"fill:#666\"");
    top_ = 46;
  }

  std::set<Phase> phases() const {
    std::set<Phase> all;
    for (const DrawnVariant& variant : variants_) {
      for (const DrawnRank& rank : variant.ranks) add_phases(variant, rank.trace, all);
    }
    return all;
  }

  static void add_phases(const DrawnVariant& variant, const Trace& trace, std::set<Phase>& all) {
    for (const HostSpan& span : trace.spans) {
      if (span.operation >= 0) all.insert(operation(variant, span.operation).phase);
    }
    for (const DeviceWork& work : trace.work) {
      if (work.operation >= 0) all.insert(operation(variant, work.operation).phase);
    }
  }

  void draw_legend() {
    double left = 20;
    const auto entry = [&](const std::vector<std::string>& looks, std::string_view words) {
      for (const std::string& look : looks) svg_.box({left, top_, 22, 13}, look);
      svg_.text(left + 27, top_ + 11, 12, Anchor::start, words);
      left += 27 + width_of_text(words, 12) + 16;
    };
    for (const Phase phase : phases()) {
      entry({fmt::format("fill=\"{}\"", colour_of(phase).fill)}, name_of(phase));
    }
    left = 20;
    top_ += 20;
    entry({"fill=\"#777\"", "fill=\"url(#copy)\""}, "copy");
    entry({"fill=\"#777\"", "fill=\"url(#fill)\""}, "fill");
    entry({"fill=\"url(#wait)\" stroke=\"#000\""}, "the host waits for the device");
    entry({"fill=\"#fff\" stroke=\"#bbb\""}, "idle");
    entry({fmt::format("fill=\"{}\"", runners_own.fill)}, "held back by stepgate, not in the step");
    entry({"fill=\"url(#none)\""}, "not recorded");
    if (std::ranges::any_of(variants_, has_several_ranks))
      entry({"fill=\"#777\"", "fill=\"url(#ranks)\""}, "a collective waits for a rank");
    top_ += 26;
  }

  static const Operation& operation(const DrawnVariant& variant, int index) {
    return variant.plan.operations.at(static_cast<std::size_t>(index));
  }

  void draw_variant(std::size_t index) {
    const DrawnVariant& variant = variants_[index];
    const std::vector<Window>& windows = windows_.of_variants[index];
    const bool several = has_several_ranks(variant);
    svg_.text(row_name_begin, top_ + 15, 15, Anchor::start, variant.plan.variant,
              "font-weight=\"bold\"");
    const DrawnRank& first = variant.ranks.front();
    const std::string facts = several                    ? variant.note
                              : first.numbers == nullptr ? std::string()
                                                         : facts_of(*first.numbers);
    if (!facts.empty()) draw_facts(facts, variant.plan.variant);
    top_ += 24;
    for (std::size_t rank = 0; rank < variant.ranks.size(); ++rank) {
      if (several) draw_name_of_ranks(variant.ranks[rank]);
      draw_rank(variant.plan, variant.ranks[rank].trace, windows[rank]);
    }
    top_ += 14;
  }

  void draw_name_of_ranks(const DrawnRank& rank) {
    svg_.text(row_name_begin, top_ + 13, row_name_size, Anchor::start,
              shortened(name_of_ranks(rank.trace), row_name_size, left_edge_ - row_name_begin - 8),
              "font-weight=\"bold\"");
    if (rank.numbers != nullptr)
      svg_.text(left_edge_, top_ + 13, 12, Anchor::start, facts_of(*rank.numbers));
    top_ += 17;
  }

  void draw_rank(const StepPlan& plan, const Trace& trace, const Window& window) {
    const Axis axis(window.begin, windows_.length, left_edge_);
    const Axis of_host(window.begin - window.lead, windows_.length, left_edge_);
    if (window.lead > TraceTime(0)) draw_lead(window.lead);
    draw_step_marks(of_host, steps_of_the_host(trace));
    begin_row("host", of_host, window.host_recorded);
    draw_host(plan, trace, of_host);
    const MeetingsOfRanks meetings = meetings_of(trace);
    bool first = true;
    for (const auto& [stream, name] : names_of_streams(plan, trace)) {
      if (first) draw_step_marks(axis, steps_of_the_device(trace));
      draw_stream(trace, axis, window, name_of_row(stream, name), first,
                  rows_of(plan, trace, meetings, stream));
      first = false;
    }
  }

  void draw_lead(TraceTime lead) {
    svg_.text(left_edge_, top_ + 11, 11, Anchor::start,
              fmt::format("the host is {} ahead of the device; its row shows when it issued the "
                          "steps that the device works on",
                          time_text(lead)),
              "style=\"fill:#555\"");
    top_ += 14;
  }

  // Draws the facts beside the name of the variant, or below a name that leaves no room.
  void draw_facts(const std::string& facts, std::string_view name) {
    constexpr double bold = 1.15;  // width relative to other letters
    const double left = std::max(left_edge_, row_name_begin + bold * width_of_text(name, 15) + 16);
    const bool fits = left + width_of_text(facts, 13) <= right_edge;
    if (!fits) top_ += 18;
    svg_.text(fits ? left : left_edge_, top_ + 15, 13, Anchor::start, facts);
  }

  // Marks the begin of each step on this row with its number. Host and device have separate marks,
  // since the host may be ahead.
  void draw_step_marks(const Axis& axis, const std::vector<NumberedStep>& steps) {
    double free_from = 0;
    for (auto step_at = steps.begin(); step_at != steps.end(); ++step_at) {
      const NumberedStep& step = *step_at;
      const double at = axis.at(step.when.begin);
      if (at <= left_edge_ - 1 || at >= right_edge || !axis.shows(step.when)) continue;
      if (at > left_edge_ || axis.at(step.when.begin + TraceTime(1)) > left_edge_) {
        svg_.line(at, top_ + 3, at, top_ + step_marks_height, "stroke=\"#222\"");
      }
      const std::string words = fmt::format("step {}", step.number);
      const double end = at + 5 + width_of_text(words, 10);
      const double next =
          std::next(step_at) == steps.end() ? right_edge : axis.at(std::next(step_at)->when.begin);
      // A mark must not cross a number.
      if (at < free_from || end > std::min(next, right_edge)) continue;
      svg_.text(at + 3, top_ + 11, 10, Anchor::start, words, "style=\"fill:#555\"");
      free_from = at + width_of_text(words, 10) + 12;
    }
    top_ += step_marks_height;
  }

  void begin_row(std::string_view name, const Axis& axis, const Stretch& recorded) {
    svg_.text(left_edge_ - 8, top_ + row_height / 2 + 4, row_name_size, Anchor::end,
              shortened(name, row_name_size, left_edge_ - row_name_begin - 8));
    svg_.box({left_edge_, top_, right_edge - left_edge_, row_height},
             "fill=\"#fff\" stroke=\"#ccc\" stroke-width=\"0.6\"");
    const double begin = axis.at(recorded.begin);
    const double end = axis.at(recorded.end);
    if (begin > left_edge_) {
      svg_.box({left_edge_, top_, begin - left_edge_, row_height}, "fill=\"url(#none)\"");
    }
    if (end < right_edge)
      svg_.box({end, top_, right_edge - end, row_height}, "fill=\"url(#none)\"");
  }

  void draw_host(const StepPlan& plan, const Trace& trace, const Axis& axis) {
    std::vector<Piece> pieces;
    for (const HostSpan& span : trace.spans) pieces.push_back(piece_of(plan, span));
    RowOfPieces(svg_, axis, top_, row_height).draw(pieces);
    draw_waits(trace, axis);
    top_ += row_height + row_gap;
  }

  // Draws waits over the host's row with a mark above, since a wait may be too short to be visible.
  void draw_waits(const Trace& trace, const Axis& axis) {
    double last_mark = 0;
    for (const HostCall& call : trace.calls) {
      const bool own =
          call.span >= 0 && trace.spans.at(static_cast<std::size_t>(call.span)).operation < 0;
      const Stretch when{call.begin, call.end};
      if (!call.can_block || own || !axis.shows(when)) continue;
      const Box box = axis.box(when, top_ + 1, row_height - 2);
      if (box.width >= narrowest_own_box) {
        svg_.box(
            box, "fill=\"url(#wait)\" stroke=\"#000\" stroke-width=\"1\"",
            fmt::format("{} holds the host for {}", call.name, time_text(call.end - call.begin)));
        const std::string time = time_text(call.end - call.begin);
        std::string label;
        for (const std::string& words : {call.name + " " + time, "waits " + time, time}) {
          if (label.empty() && width_of_text(words, 11) < box.width - 8) label = words;
        }
        if (!label.empty()) {
          svg_.text(box.left + box.width / 2, top_ + row_height / 2 + 4, 11, Anchor::middle, label,
                    "stroke=\"#fff\" stroke-width=\"5\" paint-order=\"stroke\" "
                    "font-weight=\"bold\" pointer-events=\"none\"");
        }
      }
      const double mark = axis.at(call.begin);
      if (mark <= left_edge_ || mark - last_mark < 3) continue;
      svg_.triangle(mark, top_ - 6, "fill=\"#000\"");
      last_mark = mark;
    }
  }

  using Rows = std::map<int, std::vector<Piece>>;  // of one stream, from row 0

  static Rows rows_of(const StepPlan& plan, const Trace& trace, const MeetingsOfRanks& meetings,
                      int stream) {
    Rows by_row;
    std::vector<const DeviceWork*> work;
    std::vector<Stretch> stretches;
    for (const DeviceWork& piece : trace.work) {
      if (piece.stream != stream) continue;
      work.push_back(&piece);
      stretches.push_back({piece.begin, piece.end});
    }
    const std::vector<int> rows = rows_without_overlap(stretches);
    for (std::size_t index = 0; index < work.size(); ++index) {
      for (Piece& piece : pieces_of(plan, *work[index], meetings))
        by_row[rows[index]].push_back(std::move(piece));
    }
    return by_row;
  }

  void draw_stream(const Trace& trace, const Axis& axis, const Window& window,
                   const std::string& name, bool is_first, const Rows& by_row) {
    for (const auto& [row, pieces] : by_row) {
      begin_row(row == 0 ? name : std::string(), axis, window.device_recorded);
      RowOfPieces(svg_, axis, top_, row_height).draw(pieces);
      if (is_first && row == 0) draw_idle(trace, axis);
      top_ += row_height + row_gap;
    }
  }

  // Labels the time in which the device is idle, where there is room.
  void draw_idle(const Trace& trace, const Axis& axis) {
    TraceTime busy_until = trace.work.front().begin;
    for (const DeviceWork& work : trace.work) {  // in order of begin
      const Stretch idle{busy_until, work.begin};
      busy_until = std::max(busy_until, work.end);
      if (idle.end <= idle.begin || !axis.shows(idle)) continue;
      const Box box = axis.box(idle, top_, row_height);
      constexpr double size = 11;
      const std::string words = "idle " + time_text(idle.end - idle.begin);
      if (width_of_text(words, size) > box.width - 6) continue;
      svg_.text(box.left + box.width / 2, top_ + row_height / 2 + 4, size, Anchor::middle, words,
                "style=\"fill:#666\" font-style=\"italic\"");
    }
  }

  void draw_axis(Svg& lines, double top_of_variants) {
    const auto length = static_cast<double>(windows_.length.count());
    constexpr double most_ticks = 12;
    double tick = std::pow(10, std::floor(std::log10(length / most_ticks)));
    for (const double factor : {2.0, 2.5, 2.0}) {
      if (length / tick > most_ticks) tick *= factor;
    }
    const double unit = tick >= 1e5 ? 1e6 : tick >= 100 ? 1e3 : 1;
    const std::string_view unit_name = unit == 1e6 ? "ms" : unit == 1e3 ? "us" : "ns";
    const Axis axis(TraceTime(0), windows_.length, left_edge_);
    for (double at = 0; at <= length; at += tick) {
      const double x = axis.at(TraceTime(std::llround(at)));
      lines.line(x, top_of_variants, x, top_, "stroke=\"#e4e4e4\"");
      svg_.line(x, top_, x, top_ + 5, "stroke=\"#222\"");
      svg_.text(x, top_ + 18, 12, Anchor::middle, fmt::format("{:.6g}", at / unit));
    }
    svg_.line(left_edge_, top_, right_edge, top_, "stroke=\"#222\"");
    svg_.text(left_edge_ - 8, top_ + 18, 12, Anchor::end, unit_name);
    top_ += 30;
  }

  const DeviceIdentity& device_;
  std::span<const DrawnVariant> variants_;
  Windows windows_;
  Svg svg_;
  double top_ = 0;
  double left_edge_ = narrowest_left_edge;
};

// Returns the numbers of the rank whose timeline is drawn.
const TracedStep* numbers_of(const Traced& traced, std::size_t variant, int rank) {
  if (traced.rounds.empty()) return nullptr;
  const std::span<const TracedStep> ranks = ranks_of(traced.rounds.back(), variant);
  const auto own = std::ranges::find(ranks, rank, &TracedStep::rank);
  return own == ranks.end() ? nullptr : &*own;
}

}  // namespace

namespace {

std::filesystem::path with_name(std::filesystem::path file, std::string_view name) {
  const std::string ending = file.has_extension() ? file.extension().string() : ".svg";
  file.replace_extension();
  return file.string() + fmt::format(".{}{}", name, ending);
}

}  // namespace

std::filesystem::path picture_file(const std::filesystem::path& asked_for, const StepPlan& plan,
                                   std::size_t scenarios) {
  return scenarios <= 1 ? asked_for : with_name(asked_for, plan.scenario);
}

std::filesystem::path picture_file(const std::filesystem::path& asked_for,
                                   const ReportedSweep& sweep) {
  return with_name(asked_for, sweep.name);
}

void draw_timeline(std::ostream& out, const DeviceIdentity& device,
                   std::span<const DrawnVariant> variants) {
  require(!variants.empty(), "there is something to draw");
  out << Timeline(device, variants).draw();
}

void draw_timeline(std::ostream& out, const DeviceIdentity& device,
                   std::span<const PlannedStep> plans, const Traced& traced) {
  require(traced.timelines.size() == plans.size(), "every variant has a timeline");
  std::vector<DrawnVariant> variants;
  for (std::size_t index = 0; index < plans.size(); ++index) {
    const DrawnRanks drawn = drawn_ranks(
        traced.timelines[index], index < traced.worst.size() ? traced.worst[index] : WorstRanks{});
    DrawnVariant variant{.plan = plans[index], .ranks = {}, .note = drawn.note};
    for (const Trace* trace : drawn.traces)
      variant.ranks.push_back({*trace, numbers_of(traced, index, trace->rank)});
    variants.push_back(std::move(variant));
  }
  draw_timeline(out, device, variants);
}

}  // namespace stepgate
