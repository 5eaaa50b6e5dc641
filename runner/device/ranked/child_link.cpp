// SPDX-License-Identifier: MIT
#include "device/ranked/child_link.h"

#include "base/process/child.h"

namespace stepgate {
namespace {

// A device needs up to this time to release its resources.
constexpr std::chrono::seconds time_to_finish{5};

class ChildLink : public RankLink {
 public:
  ChildLink(const Command& command, std::string_view first_line)
      : child_({.command = command, .name = "a rank", .stall = time_to_finish, .stopped = {}}) {
    ChildLink::send(first_line);
  }

  void send(std::string_view line) override {
    try {
      child_.ask(line);
    } catch (const WorkerError& error) {  // it wrote unrequested output
      spoiled_ = error.what();
    }
  }

  std::optional<std::string> take() override {
    if (!spoiled_.empty()) throw RankGone(spoiled_);
    try {
      if (auto line = child_.take_line()) return line;
    } catch (const WorkerError& error) {
      throw RankGone(error.what());
    }
    if (auto end = child_.end_in_words()) throw RankGone(*end);
    return std::nullopt;
  }

  int descriptor() const override { return child_.descriptor(); }

  void finish() override {
    try {
      child_.finish("");
    } catch (const WorkerError&) {  // its answers are complete, and it ends now
    }
  }

 private:
  Child child_;
  std::string spoiled_;
};

}  // namespace

std::unique_ptr<RankLink> start_rank(const Command& command, std::string_view first_line) {
  return std::make_unique<ChildLink>(command, first_line);
}

}  // namespace stepgate
