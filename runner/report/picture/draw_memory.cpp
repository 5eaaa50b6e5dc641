// SPDX-License-Identifier: MIT
#include "report/picture/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "base/require.h"
#include "base/text/units.h"
#include "plan/compose/step_names.h"
#include "report/picture/svg.h"
#include "report/text/print_plan.h"

namespace stepgate {
namespace {

// Sizes are in pixels.
constexpr double plot_left = 96;
constexpr double plot_right = 1180;
constexpr double plot_height = 190;
constexpr double phases_height = 17;
constexpr double overlap = 0.3;  // of neighbours, so that rounding leaves no gap
// Operations without changes; longer runs are drawn with this width.
constexpr double longest_run = 12;
constexpr double headroom = 1.12;  // above the highest line, for the label of the peak

// Layers from the bottom upwards: persistent purposes before temporary ones. The colours of Okabe
// and Ito can be distinguished with any colour vision.
struct Layer {
  Purpose purpose;
  std::string_view fill;
};
constexpr std::array<Layer, purpose_count> layers{
    Layer{Purpose::weights, "#0072B2"},   Layer{Purpose::optimizer_state, "#56B4E9"},
    Layer{Purpose::batch, "#E69F00"},     Layer{Purpose::bookkeeping, "#999999"},
    Layer{Purpose::workspace, "#F0E442"}, Layer{Purpose::staging, "#CC79A7"},
    Layer{Purpose::gradients, "#D55E00"}, Layer{Purpose::activations, "#009E73"}};

constexpr std::string_view need_look = "stroke=\"#000\" stroke-width=\"1.3\"";
constexpr std::string_view arena_look =
    "stroke=\"#000\" stroke-width=\"1.3\" stroke-dasharray=\"7 4\"";
constexpr std::string_view held_look =
    "stroke=\"#777\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\"";
constexpr std::string_view halo =
    "stroke=\"#fff\" stroke-width=\"4\" paint-order=\"stroke\" pointer-events=\"none\"";

struct DrawnMemory {
  const StepPlan& plan;
  const StepMemory& memory;
  std::int64_t held_bytes;
};

// Bytes between two ticks of the axis: 1, 2 or 5 times a power of ten, or similar in a binary unit.
double tick_of(double most_bytes) {
  constexpr double most_ticks = 6;
  double tick = 1;
  while (most_bytes / tick > most_ticks) {
    for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0, 2.0, 2.5, 2.0, 1.024}) {
      if (most_bytes / tick > most_ticks) tick *= factor;
    }
  }
  return tick;
}

class MemoryPicture {
 public:
  explicit MemoryPicture(std::span<const PlannedStep> steps) {
    for (const PlannedStep& step : steps) {
      variants_.push_back({step, step.facts().memory, step.facts().held.most_bytes});
      const DrawnMemory& drawn = variants_.back();
      const auto most = std::max(drawn.memory.arena.bytes, drawn.held_bytes);
      most_bytes_ = std::max(most_bytes_, static_cast<double>(most));
    }
    scale_ = plot_height / (most_bytes_ * headroom);
  }

  std::string draw() {
    draw_title();
    draw_legend();
    for (const DrawnMemory& variant : variants_) draw_variant(variant);
    svg_.text(
        plot_left, top_ + 4, 12, Anchor::start,
        "operations of a steady step, in the order in which the host issues them; where nothing "
        "changes for more than 12 of them, they are narrower",
        "style=\"fill:#666\"");
    top_ += 20;
    return svg_file(top_, std::string(text_style) + std::string(white_page) + svg_.body());
  }

 private:
  void draw_title() {
    svg_.text(20, 32, 20, Anchor::start, variants_.front().plan.scenario, "font-weight=\"bold\"");
    svg_.text(plot_right, 32, 12, Anchor::end, "device memory of a step, by its plan",
              "style=\"fill:#666\"");
    top_ = 46;
  }

  bool has(Purpose purpose) const {
    return std::any_of(variants_.begin(), variants_.end(), [&](const DrawnMemory& variant) {
      const auto& live = variant.memory.live;
      return std::any_of(live.begin(), live.end(), [&](const BytesByPurpose& bytes) {
        return bytes[static_cast<std::size_t>(purpose)] > 0;
      });
    });
  }

  void draw_legend() {
    double left = 20;
    const auto words = [&](std::string_view text) {
      svg_.text(left + 27, top_ + 11, 12, Anchor::start, text);
      left += 27 + width_of_text(text, 12) + 16;
    };
    for (const Layer& layer : layers) {
      if (!has(layer.purpose)) continue;
      svg_.box({left, top_, 22, 13}, fmt::format("fill=\"{}\"", layer.fill));
      words(name_of(layer.purpose));
    }
    left = 20;
    top_ += 20;
    for (const auto& [look, text] :
         {std::pair(need_look, "need: the most live at once"),
          std::pair(arena_look, "arena: places planned from the lifetimes"),
          std::pair(held_look, "held: every buffer its own, as the plan is")}) {
      svg_.line(left, top_ + 7, left + 22, top_ + 7, look);
      words(text);
    }
    top_ += 28;
  }

  void draw_variant(const DrawnMemory& variant) {
    const StepMemory& memory = variant.memory;
    svg_.text(20, top_ + 12, 15, Anchor::start, variant.plan.variant, "font-weight=\"bold\"");
    svg_.text(
        plot_right, top_ + 12, 13, Anchor::end,
        fmt::format("need {}  \u00b7  arena {}  \u00b7  held {}", size_text(memory.need_bytes),
                    size_text(memory.arena.bytes), size_text(variant.held_bytes)));
    top_ += 20;
    bottom_ = top_ + plot_height;
    lefts_ = lefts_of(variant);
    draw_axis();
    draw_layers(memory);
    draw_level(variant.held_bytes, held_look);
    draw_level(memory.arena.bytes, arena_look);
    draw_level(memory.need_bytes, need_look);
    draw_phases(variant.plan);
    draw_words_under_the_pointer(variant);
    draw_peak(variant);
    top_ = bottom_ + phases_height + 22;
  }

  double height_of(std::int64_t bytes) const { return static_cast<double>(bytes) * scale_; }
  double left_of(std::size_t operation) const { return lefts_[operation]; }

  // Returns the left edge of each operation and the right edge of the last one. All have the same
  // width, except in long runs of one phase without changes, such as a batch of 500 copies.
  static std::vector<double> lefts_of(const DrawnMemory& variant) {
    const std::vector<BytesByPurpose>& live = variant.memory.live;
    const std::vector<Operation>& operations = variant.plan.operations;
    std::vector<double> ends{0};  // in units of operations
    for (std::size_t first = 0; first < live.size();) {
      std::size_t end = first + 1;
      while (end < live.size() && live[end] == live[first] &&
             operations[end].phase == operations[first].phase)
        ++end;
      const auto length = static_cast<double>(end - first);
      for (std::size_t at = first; at < end; ++at)
        ends.push_back(ends.back() + std::min(1.0, longest_run / length));
      first = end;
    }
    const double per_operation = (plot_right - plot_left) / ends.back();
    for (double& end : ends) end = plot_left + end * per_operation;
    return ends;
  }

  void draw_axis() {
    svg_.box({plot_left, top_, plot_right - plot_left, plot_height}, "fill=\"#fafafa\"");
    const double tick = tick_of(most_bytes_);
    for (double bytes = 0; bytes * scale_ <= plot_height; bytes += tick) {
      const double y = bottom_ - bytes * scale_;
      if (bytes > 0) svg_.line(plot_left, y, plot_right, y, "stroke=\"#e0e0e0\"");
      svg_.line(plot_left - 5, y, plot_left, y, "stroke=\"#222\"");
      svg_.text(plot_left - 9, y + 4, 12, Anchor::end, rounded_bytes_text(bytes));
    }
    svg_.line(plot_left, top_, plot_left, bottom_, "stroke=\"#222\"");
  }

  // Draws one shape for each purpose, with a step wherever a buffer begins or ends.
  void draw_layers(const StepMemory& memory) {
    std::vector<std::int64_t> below(memory.live.size());
    for (const Layer& layer : layers) {
      const auto purpose = static_cast<std::size_t>(layer.purpose);
      const auto bytes = [&](std::size_t at) { return memory.live[at][purpose]; };
      for (std::size_t first = 0; first < below.size();) {
        std::size_t end = first + 1;
        while (end < below.size() && bytes(end) == bytes(first) && below[end] == below[first])
          ++end;
        const double top = bottom_ - height_of(below[first] + bytes(first));
        const double height = height_of(bytes(first));
        if (height > 0) {
          svg_.small_box({left_of(first), top, left_of(end) - left_of(first) + overlap, height},
                         fmt::format("fill=\"{}\" shape-rendering=\"crispEdges\"", layer.fill));
        }
        first = end;
      }
      for (std::size_t at = 0; at < below.size(); ++at) below[at] += bytes(at);
    }
    svg_.flush_small_boxes();
    svg_.line(plot_left, bottom_, plot_right, bottom_, "stroke=\"#222\"");
  }

  void draw_level(std::int64_t bytes, std::string_view look) {
    const double y = bottom_ - height_of(bytes);
    svg_.line(plot_left, y, plot_right, y, look);
  }

  // Draws the boundaries of phases below the axis, with their names where there is room.
  void draw_phases(const StepPlan& plan) {
    constexpr std::size_t most_phases = 60;
    bool dark = false;
    const std::vector<OperationGroup> groups = operation_groups(plan, most_phases);
    for (auto begin = groups.begin(); begin != groups.end();) {
      const auto end = std::find_if(begin, groups.end(), [&](const OperationGroup& group) {
        return group.phase != begin->phase;
      });
      const double left = left_of(begin->first);
      const double width = left_of(std::prev(end)->last + 1) - left;
      const std::string_view name = name_of(begin->phase);
      svg_.box({left, bottom_ + 1, width, phases_height},
               fmt::format("fill=\"{}\"", dark ? "#d8d8d8" : "#ececec"), name);
      const std::string label = shortened(name, 11, width - 6);
      if (!label.empty()) {
        svg_.text(left + width / 2, bottom_ + 13, 11, Anchor::middle, label,
                  "pointer-events=\"none\"");
      }
      if (begin != groups.begin())
        svg_.line(left, top_, left, bottom_ + phases_height,
                  "stroke=\"#fff\" stroke-opacity=\"0.6\"");
      dark = !dark;
      begin = end;
    }
  }

  void draw_words_under_the_pointer(const DrawnMemory& variant) {
    constexpr std::size_t most_operations = 2000;  // with more, files become large and columns thin
    const std::vector<Operation>& operations = variant.plan.operations;
    if (operations.size() > most_operations) return;
    for (std::size_t at = 0; at < operations.size(); ++at) {
      const BytesByPurpose& live = variant.memory.live[at];
      std::string words = fmt::format("{}: {}, {} live", name_of(operations[at].phase),
                                      operations[at].name, size_text(sum_of(live)));
      for (const Layer& layer : layers) {
        const std::int64_t bytes = live[static_cast<std::size_t>(layer.purpose)];
        if (bytes > 0) words += fmt::format(", {} {}", name_of(layer.purpose), size_text(bytes));
      }
      svg_.box({left_of(at), top_, left_of(at + 1) - left_of(at), plot_height},
               "fill=\"#fff\" fill-opacity=\"0\"", words);
    }
  }

  void draw_peak(const DrawnMemory& variant) {
    if (variant.plan.operations.empty()) return;
    const std::size_t peak = variant.memory.peak_operation;
    const double x = (left_of(peak) + left_of(peak + 1)) / 2;
    const double y = bottom_ - height_of(variant.memory.need_bytes);
    svg_.triangle(x, y - 7, "fill=\"#000\"");
    const std::string words = fmt::format("peak: {}", variant.plan.operations[peak].name);
    const double width = width_of_text(words, 12);
    const Anchor anchor = x - width / 2 < plot_left + 4    ? Anchor::start
                          : x + width / 2 > plot_right - 4 ? Anchor::end
                                                           : Anchor::middle;
    svg_.text(x, y - 11, 12, anchor, words, halo);
  }

  std::vector<DrawnMemory> variants_;
  double most_bytes_ = 1;
  double scale_ = 1;           // pixels per byte
  std::vector<double> lefts_;  // of the operations being drawn
  Svg svg_;
  double top_ = 0;
  double bottom_ = 0;  // of the plot being drawn
};

}  // namespace

void draw_memory(std::ostream& out, std::span<const PlannedStep> steps) {
  require(!steps.empty(), "there is something to draw");
  out << MemoryPicture(steps).draw();
}

}  // namespace stepgate
