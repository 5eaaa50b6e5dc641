// SPDX-License-Identifier: MIT
#include "program/shown_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/files/write_file.h"
#include "base/text/visible_text.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int between_looks_milliseconds = 100;
// A process that left the program may hold its stream open.
constexpr std::chrono::seconds most_time_for_rest{2};

}  // namespace

ShownOutput::ShownOutput() {
  if (::isatty(STDERR_FILENO) != 0) {
    write_ = copy_of(STDERR_FILENO);
    return;
  }
  Pipe pipe = make_pipe();
  read_ = std::move(pipe.read);
  write_ = std::move(pipe.write);
  thread_ = std::thread([this] { copy(); });
}

ShownOutput::~ShownOutput() {
  write_.close();
  is_over_ = true;
  if (thread_.joinable()) thread_.join();
}

OwnedDescriptor ShownOutput::stream() const {
  return copy_of(write_.get());
}

void ShownOutput::copy() {
  VisibleText text({.lines = true});
  std::array<char, 1 << 16> chunk{};
  std::optional<Clock::time_point> deadline;
  while (true) {
    if (is_over_ && !deadline) deadline = Clock::now() + most_time_for_rest;
    pollfd news{read_.get(), POLLIN, 0};
    const int ready = ::poll(&news, 1, between_looks_milliseconds);
    if (deadline && (ready <= 0 || Clock::now() > *deadline)) break;
    if (ready <= 0) continue;
    const ssize_t length = ::read(read_.get(), chunk.data(), chunk.size());
    if (length <= 0) break;
    const auto end = chunk.begin() + length;
    std::replace(chunk.begin(), end, '\r', '\n');
    std::replace(chunk.begin(), end, '\t', ' ');
    // Our own words may have ended the line that the program began.
    text.begin_line();
    (void)write_all(STDERR_FILENO,
                    text.add(std::string_view(chunk.data(), static_cast<std::size_t>(length)),
                             VisibleText::Rest::comes_later));
  }
  (void)write_all(STDERR_FILENO, text.add({}, VisibleText::Rest::none));
}

}  // namespace stepgate
