// SPDX-License-Identifier: MIT
#include "plugin/testing/fake_trial_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/testing/fake_stream.h"

namespace stepgate {
namespace {

constexpr std::size_t guard = 64;
constexpr std::byte guard_value{0xa5};
constexpr std::size_t whole_alignment = 256;

class PlayedStream : public FakeStream {
 public:
  void enqueue(std::function<void()> work) override {
    if (is_capturing) {
      ++captured.nodes;
      return;
    }
    queue_.push_back(std::move(work));
  }
  void synchronize() override {
    if (is_capturing) captured.problem = "it waits";
    run();
  }
  void allocate(std::int64_t bytes) override {
    if (is_capturing) captured.problem = "it allocates";
    free_bytes -= bytes;
  }
  void set_limit(int value) override { limit = value; }
  void fail(const char* why) override { problem = why; }

  void run() {
    while (!queue_.empty()) {
      const auto work = std::move(queue_.front());
      queue_.pop_front();
      work();
    }
  }

  bool is_capturing = false;
  CapturedWork captured;
  std::int64_t free_bytes = std::int64_t{1} << 40;
  int limit = 1024;
  std::string problem;

 private:
  std::deque<std::function<void()>> queue_;
};

class HostOperands : public PlacedOperands {
 public:
  HostOperands(PlayedStream& stream, const KernelTrial& trial, const PlacedAs& as)
      : stream_(stream), trial_(trial), offset_(static_cast<std::size_t>(as.offset_bytes)) {
    for (const std::vector<std::byte>& content : trial.operands) {
      std::vector<std::byte>& memory =
          memory_.emplace_back(content.size() + 2 * guard + offset_ + whole_alignment, guard_value);
      const auto address = reinterpret_cast<std::uintptr_t>(memory.data()) + guard;
      const std::size_t aligned =
          (address + whole_alignment - 1) / whole_alignment * whole_alignment - address;
      const bool stays = as.every_second && begins_.size() % 2 == 0;
      begins_.push_back(guard + aligned + (stays ? 0 : offset_));
      std::ranges::copy(content, memory.begin() + static_cast<std::ptrdiff_t>(begins_.back()));
      pointers_.push_back(memory.data() + begins_.back());
    }
    if (as.in_place) {
      const Kernel& row = kernel(trial.recipe->kernel);
      const std::size_t output = operand_in_place(row);
      pointers_[output] = pointers_[row.operands[output].may_replace];
    }
  }

  void* const* pointers() const override { return pointers_.data(); }

  KernelTrial read_back() const override {
    KernelTrial got = trial_;
    for (std::size_t index = 0; index < pointers_.size(); ++index)
      std::memcpy(got.operands[index].data(), pointers_[index], got.operands[index].size());
    return got;
  }

  bool guards_are_untouched() const override {
    for (std::size_t index = 0; index < memory_.size(); ++index) {
      const auto begin = memory_[index].begin();
      const auto first = begin + static_cast<std::ptrdiff_t>(begins_[index]);
      const auto last = first + static_cast<std::ptrdiff_t>(trial_.operands[index].size());
      const auto is_guard = [](std::byte value) { return value == guard_value; };
      if (!std::all_of(begin, first, is_guard) ||
          !std::all_of(last, memory_[index].end(), is_guard))
        return false;
    }
    return true;
  }

  void write(const KernelTrial& trial) override {
    stream_.run();
    copy(trial);
  }

  void write_later(const KernelTrial& trial, std::chrono::microseconds delay) override {
    stream_.enqueue([this, trial, delay] {
      std::this_thread::sleep_for(delay);
      copy(trial);
    });
  }

 private:
  void copy(const KernelTrial& trial) {
    for (std::size_t index = 0; index < pointers_.size(); ++index)
      std::memcpy(pointers_[index], trial.operands[index].data(), trial.operands[index].size());
  }

  PlayedStream& stream_;
  KernelTrial trial_;
  std::size_t offset_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::size_t> begins_;
  std::vector<void*> pointers_;
};

class FakeTrialDevice : public TrialDevice {
 public:
  DeviceFacts facts() const override {
    return {.capability = 90,
            .multiprocessors = 132,
            .shared_bytes = 227 * 1024,
            .in_words = [](int status, std::uint32_t) { return fmt::format("error {}", status); }};
  }
  CUstream_st* stream() const override {
    return reinterpret_cast<CUstream_st*>(static_cast<FakeStream*>(&stream_));
  }
  std::unique_ptr<PlacedOperands> place(const KernelTrial& trial, const PlacedAs& as) override {
    return std::make_unique<HostOperands>(stream_, trial, as);
  }
  void* workspace(std::int64_t bytes) override {
    constexpr std::byte not_a_number{0xff};
    workspace_.resize(static_cast<std::size_t>(bytes), not_a_number);
    return workspace_.data();
  }
  std::string finish() override {
    stream_.run();
    return stream_.problem;
  }
  CapturedWork capture(const std::function<void()>& call) override {
    stream_.captured = {};
    stream_.is_capturing = true;
    call();
    stream_.is_capturing = false;
    return stream_.captured;
  }
  std::int64_t free_bytes() const override { return stream_.free_bytes; }
  std::string limits() const override { return fmt::format("stack {} B", stream_.limit); }

 private:
  mutable PlayedStream stream_;
  std::vector<std::byte> workspace_;
};

}  // namespace

std::unique_ptr<TrialDevice> make_fake_trial_device() {
  return std::make_unique<FakeTrialDevice>();
}

}  // namespace stepgate
