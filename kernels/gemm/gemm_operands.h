// SPDX-License-Identifier: MIT
// Operands to measure GEMMs on: random factors and bias, and two results, to compare two
// algorithms. Independent of cuBLASLt. Only in CUDA builds. All work is on the legacy stream;
// failures throw std::runtime_error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/gemm/prepare_gemm.h"

namespace stepgate {

class GemmOperands {
 public:
  // Returns nullopt where memory does not suffice.
  static std::optional<GemmOperands> make(const GemmShape&);
  static std::int64_t bytes_of(const GemmShape&);

  // Pointers in the kernel's order of operands.
  void* const* pointers() const { return pointers_.data(); }

  // Clears the result before each launch, since GEMMs may add to it; keep_result copies it for
  // comparison.
  void clear_result() const;
  void keep_result() const;
  bool result_is_as_kept() const;

 private:
  enum Index : std::size_t { a, b, bias, result, kept, flag };

  struct Free {
    void operator()(void* memory) const noexcept;
  };
  using Memory = std::unique_ptr<void, Free>;

  GemmOperands() = default;
  static Memory room_for(std::int64_t bytes);
  // Numbers of elements of all operands except the flag, by Index.
  static std::vector<std::int64_t> elements_of(const GemmShape&);
  void fill_with_noise(Index, std::int64_t count, DType) const;
  std::size_t result_size() const { return static_cast<std::size_t>(result_bytes_); }

  std::vector<Memory> memory_;  // by Index
  std::vector<void*> pointers_;
  std::int64_t result_bytes_ = 0;
};

}  // namespace stepgate
