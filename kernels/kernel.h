// SPDX-License-Identifier: MIT
// A kernel is a name, the buffers it touches, its work, a host reference and a CUDA launcher.
// Knows nothing of steps, streams or scenarios; `runner/` is never included from here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/aggregate_value.h"
#include "kernels/checked_size.h"

struct CUstream_st;  // cudaStream_t is a pointer to it: this header needs no CUDA toolkit

namespace stepgate {

// How numbers are stored and multiplied. tf32 stores fp32 and rounds the operands of GEMMs to 10
// bits of mantissa. bf16 has the exponents of fp32 and 7 bits of mantissa, fp16 (IEEE half) 10 bits
// and nothing above 65504.
enum class DType { fp32, tf32, bf16, fp16 };

constexpr bool is_16_bit(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::fp16;
}

constexpr std::int64_t bytes_of(DType dtype) {
  return is_16_bit(dtype) ? 2 : 4;
}

// The sizes of one launch. Each kernel's header names its own: `struct Matmul` in namespace
// `kernels` has a Shape, an aggregate of whole numbers.
struct KernelShape : AggregateValue {
  using AggregateValue::AggregateValue;

  // As those of a kernel: as<kernels::Matmul>().depth.
  template <class Kernel>
  typename Kernel::Shape as() const {
    return to<typename Kernel::Shape>();
  }
};

// Sizes that several kernels share are declared once for whole numbers and once for products that
// may not fit, since a plan may be of a step that no machine has room for.
template <class Size>
struct MatrixSizes {
  Size rows = 1;
  Size columns = 1;
};
using MatrixShape = MatrixSizes<std::int64_t>;

// A matrix whose rows are divided among parts: part p takes rows p, p + parts, ...
template <class Size>
struct PartsSizes {
  Size rows = 1;
  Size columns = 1;
  Size parts = 1;
};
using PartsShape = PartsSizes<std::int64_t>;

// Each row holds all heads side by side. The rows are whole sequences of `tokens` rows each, one
// after another.
template <class Size>
struct PackedHeadsSizes {
  Size rows = 1;
  Size columns = 1;
  Size tokens = 1;
  Size heads = 1;

  auto operator<=>(const PackedHeadsSizes&) const = default;
};
using PackedHeadsShape = PackedHeadsSizes<std::int64_t>;

// The shape of a kernel that has no sizes.
struct NoShape {};

template <template <class> class Sizes>
constexpr Sizes<CheckedSize> checked(const Sizes<std::int64_t>& shape) {
  return std::bit_cast<Sizes<CheckedSize>>(shape);
}
constexpr NoShape checked(const NoShape& shape) {
  return shape;
}

// Elements of a matrix of rows and columns.
template <class Shape>
constexpr auto elements_of(const Shape& shape) {
  return shape.rows * shape.columns;
}

// Parameters of a launch besides its sizes (a learning rate, whether the result is accumulated).
// Each kernel's header names them in namespace `kernels`: `struct Sgd` has the kernel's name and
// its Attributes, an aggregate.
struct KernelAttributes : AggregateValue {
  using AggregateValue::AggregateValue;

  // As those of a kernel: as<kernels::Sgd>().learning_rate.
  template <class Kernel>
  typename Kernel::Attributes as() const {
    return to<typename Kernel::Attributes>();
  }
};

// Attributes of a kernel that has none.
struct NoAttributes {};

// A number that overflows is the largest int64_t (checked_size.h).
struct KernelWork {
  std::int64_t bytes_read = 0;     // each input once
  std::int64_t bytes_written = 0;  // each output once
  std::int64_t flops = 0;          // a multiply-add counts 2
};

enum class Access { read, write, read_write };

// storage: numbers of the launch's dtype; single: fp32. index: int32. count: 64 bits; word: 32
// bits; byte: 8 bits, all unsigned. control: see update_control.h. scratch: bytes that a launch may
// leave anything in.
enum class OperandFormat { storage, single, index, count, word, byte, control, scratch };

constexpr std::int64_t bytes_of(OperandFormat format, DType dtype) {
  switch (format) {
    case OperandFormat::storage:
      return bytes_of(dtype);
    case OperandFormat::count:
      return 8;
    case OperandFormat::byte:
    case OperandFormat::scratch:
      return 1;
    default:
      return 4;
  }
}

// A kernel says this of a launch of it. declare.h makes one of a function of the kernel's own shape
// and attributes.
template <class Result>
using OfLaunch = Result (*)(const KernelShape&, DType, const KernelAttributes&);
template <class Result>
using OfAttributes = Result (*)(const KernelAttributes&);

// How many elements an operand has.
using Extent = OfLaunch<CheckedSize>;

// The index of no operand.
constexpr std::size_t no_operand = static_cast<std::size_t>(-1);

struct KernelOperand {
  std::string_view name;
  Access access = Access::read;
  Extent elements = nullptr;
  OperandFormat format = OperandFormat::storage;
  // Null, or whether a launch with these attributes reads what is read_write: otherwise it is only
  // written.
  OfAttributes<bool> accumulates = nullptr;
  // Null, or how many of the elements a launch moves, where that is not all of them.
  Extent touched = nullptr;
  // It is read_write only because a part of it stays as it was: no launch reads it.
  bool keeps_rest = false;
  // An operand that is read, whose buffer this one may be: it is read before it is overwritten.
  std::size_t may_replace = no_operand;
  // Indices that are read are each in [0, below).
  Extent below = nullptr;
};

// Everything a host reference needs. Pointers are host pointers, one per operand of the kernel, in
// its order.
struct KernelCall {
  KernelShape shape;
  DType dtype;
  KernelAttributes attributes;
  std::span<void* const> buffers;
};

class Cudnn;          // kernels/attention/cudnn/cudnn_attention.h
class GemmAutotuner;  // kernels/gemm/gemm_autotuner.h

// The kernels that a launcher took, where a library has some that may be missing or may not suit.
struct KernelChoice {
  std::string kernel;   // "attention_gradient"
  std::string library;  // "cuDNN 9.14.0"; empty where it took ours
  std::string reason;   // why ours, in words; empty where it took the library's

  bool operator==(const KernelChoice&) const = default;
};

// Services that CUDA launchers may need besides their operands. `blas` is a cublasLtHandle_t;
// without `dnn`, kernels do without cuDNN; without `gemm_autotuner`, cuBLASLt's heuristics choose
// its algorithms.
struct LaunchContext {
  void* blas = nullptr;
  Cudnn* dnn = nullptr;
  GemmAutotuner* gemm_autotuner = nullptr;
  std::string_view cudnn_unavailable_reason = {};  // why there is none, in words
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
  // Most shared memory of a block; 0: the limit of the device. Tests set it to imitate devices that
  // allow less.
  std::int64_t shared_bytes = 0;
  // Launchers append their choice of kernel here, each choice once. Null: not recorded.
  std::vector<KernelChoice>* choices = nullptr;
};

// A chain of dependent loads (each needs the result of the previous one) and its footprint in
// bytes.
struct DependentLoads {
  std::int64_t count = 0;
  std::int64_t footprint_bytes = 0;
};

// Enqueues one launch on the stream, on device pointers in the operands' order. Never waits, never
// allocates.
using Launch = std::function<void(void* const* buffers, CUstream_st* stream)>;

// A launch takes this beside its work; a function that is null is not known or not needed.
struct KernelCost {
  // Share of a GEMM's rate that its arithmetic can have.
  double share_of_rate = 1;
  // Memory traffic when no cache holds the operands; null: the bytes in its KernelWork.
  OfLaunch<KernelWork> uncached_work = nullptr;
  // Most memory sectors that one load or store of a warp touches; null: not known.
  OfLaunch<std::int64_t> sectors_per_request = nullptr;
  // The duration that an attribute sets, whatever the kernel computes; null: no attribute sets one.
  OfAttributes<double> delay_microseconds = nullptr;
  // The loads whose latency limits it; null where they are on their way at once.
  OfLaunch<DependentLoads> dependent_loads = nullptr;
};

// A kernel has this of libraries.
struct KernelLibrary {
  bool uses_workspace = false;  // what it launches writes to that of the context
  // A matrix product, with or without something behind it, that a library computes: its launch
  // costs the host more than one of ours. Its shape is that of kernels::Matmul.
  bool is_gemm = false;
  // GEMMs with a softmax between them, which a library may compute in one; never in tf32.
  bool is_attention = false;
  // How many multiprocessors it leaves to kernels beside it, and the attributes with which it
  // leaves so many; null where it cannot.
  OfAttributes<int> spare_multiprocessors = nullptr;
  KernelAttributes (*sparing)(const KernelAttributes&, int multiprocessors) = nullptr;
};

struct Kernel {
  std::string_view name;
  std::span<const KernelOperand> operands;
  OfLaunch<CheckedSize> flops;
  // Accumulates in double and rounds once to the storage type.
  void (*reference)(const KernelCall&);
  // Does everything that may be slow (heuristics, attributes) once. Null where the build has no
  // CUDA.
  Launch (*prepare)(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
  KernelLibrary library = {};
  KernelCost cost = {};
};

// How a launch with these attributes accesses the operand.
Access access_of(const KernelOperand&, const KernelAttributes&);

// The largest number there is where it does not fit.
std::int64_t operand_bytes(const KernelOperand&, const KernelShape&, DType,
                           const KernelAttributes&);

// Work from the operands' bytes and the kernel's flops.
KernelWork work_of(const Kernel&, const KernelShape&, DType, const KernelAttributes&);

}  // namespace stepgate
