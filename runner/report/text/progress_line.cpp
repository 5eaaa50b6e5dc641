// SPDX-License-Identifier: MIT
#include "report/text/progress_line.h"

#include <fmt/format.h>

#include <ostream>

namespace stepgate {

void ProgressLine::show(const std::string& scenario, std::int64_t rounds,
                        std::chrono::nanoseconds spent) {
  if (!terminal_) return;
  const double seconds = std::chrono::duration<double>(spent).count();
  const std::string state = rounds == 0 ? "warmed up" : fmt::format("round {}", rounds);
  const std::string text = fmt::format("{}: {}, {:.1f} s", scenario, state, seconds);
  show(text);
}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  clear();
  *terminal_ << '\r' << text << std::flush;
  width_ = text.size();
}

void ProgressLine::clear() {
  if (!terminal_ || width_ == 0) return;
  *terminal_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace stepgate
