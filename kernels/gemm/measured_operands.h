// SPDX-License-Identifier: MIT
// Operands to measure the algorithms of a library on, and the choice among these: random inputs,
// and two results, to compare two algorithms. Independent of the libraries. Only in CUDA builds.
// All work is on the legacy stream; failures throw std::runtime_error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace stepgate {

// The numbers of one operand. Bytes are numbers in fp8, in either format.
struct MeasuredNumbers {
  MeasuredNumbers(std::int64_t numbers, OperandFormat of = OperandFormat::storage)
      : count(numbers), format(of) {}

  std::int64_t count;
  OperandFormat format;
};

class MeasuredOperands {
 public:
  // The kernel's operands in its order; the last is its result.
  MeasuredOperands(std::string_view kernel, const std::vector<MeasuredNumbers>& operands, DType);

  // Pointers in the kernel's order of operands.
  void* const* pointers() const { return pointers_.data(); }

  // Clears the result before each launch, since launches may add to it; keep_result copies it for
  // comparison.
  void clear_result() const;
  void keep_result() const;
  bool result_is_as_kept() const;

 private:
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  using Memory = std::unique_ptr<void, Free>;

  // Returns nullptr where memory does not suffice.
  static Memory room_for(std::int64_t bytes);
  std::size_t result_size() const { return static_cast<std::size_t>(result_bytes_); }

  std::vector<Memory> memory_;  // of the operands, the kept result and a flag
  std::vector<void*> pointers_;
  std::int64_t result_bytes_ = 0;
};

struct MeasuredChoice {
  std::size_t index = 0;
  double speedup = 1;  // over the first
};

// Chooses among `count` algorithms, of which enqueue(index) launches one on the operands. Only
// those with the bits of the first compete, so that a choice changes times but never numbers. The
// choice is the first, in their order, within 2 % of the fastest, so that most processes decide
// close cases alike. Waits for the device.
MeasuredChoice choose_by_time(const MeasuredOperands&, std::size_t count,
                              const std::function<void(std::size_t)>& enqueue);

}  // namespace stepgate
