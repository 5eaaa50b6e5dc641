// SPDX-License-Identifier: MIT
// A kernel is a name, its operands, its work, a host reference and a CUDA launcher. It is
// independent of steps, streams and scenarios; `runner/` is never included from here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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
// and nothing above 65504. fp64 is for host references alone: tests compare whole models in it.
enum class DType { fp32, tf32, bf16, fp16, fp64 };

constexpr bool is_16_bit(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::fp16;
}

// "fp32", as scenarios spell it.
std::string_view name_of(DType);

constexpr std::int64_t bytes_of(DType dtype) {
  return is_16_bit(dtype) ? 2 : dtype == DType::fp64 ? 8 : 4;
}

// The type of sums, statistics and losses of a launch: fp32, or fp64 beside fp64.
constexpr DType single_of(DType dtype) {
  return dtype == DType::fp64 ? DType::fp64 : DType::fp32;
}

// The sizes of one launch. Each kernel's header declares its own: `struct Matmul` in namespace
// `kernels` has a Shape, an aggregate of whole numbers.
struct KernelShape : AggregateValue {
  using AggregateValue::AggregateValue;

  // Returns the sizes in the type of a kernel: as<kernels::Matmul>().depth.
  template <class Kernel>
  typename Kernel::Shape as() const {
    return to<typename Kernel::Shape>();
  }
};

// Sizes that several kernels share. Size is int64_t, or CheckedSize for computations that may
// overflow, since a plan may be for a step that no machine has memory for.
template <class Size>
struct MatrixSizes {
  static constexpr std::string_view names = "rows columns";
  Size rows = 1;
  Size columns = 1;
};
using MatrixShape = MatrixSizes<std::int64_t>;

// A matrix whose rows are divided among parts: part p takes rows p, p + parts, ...
template <class Size>
struct PartsSizes {
  static constexpr std::string_view names = "rows columns parts";
  Size rows = 1;
  Size columns = 1;
  Size parts = 1;
};
using PartsShape = PartsSizes<std::int64_t>;

// Each row holds all heads side by side. The rows are whole sequences of `tokens` rows each, one
// after another.
template <class Size>
struct PackedHeadsSizes {
  static constexpr std::string_view names = "rows columns tokens heads";
  Size rows = 1;
  Size columns = 1;
  Size tokens = 1;
  Size heads = 1;

  auto operator<=>(const PackedHeadsSizes&) const = default;
};
using PackedHeadsShape = PackedHeadsSizes<std::int64_t>;

// The shape of a kernel without sizes.
struct NoShape {};

template <template <class> class Sizes>
constexpr Sizes<CheckedSize> checked(const Sizes<std::int64_t>& shape) {
  return std::bit_cast<Sizes<CheckedSize>>(shape);
}
constexpr NoShape checked(const NoShape& shape) {
  return shape;
}

// The number of elements of a matrix.
template <class Shape>
constexpr auto elements_of(const Shape& shape) {
  return shape.rows * shape.columns;
}

// Parameters of a launch other than its sizes (a learning rate, whether the result is accumulated).
// Each kernel's header declares its own: `struct Sgd` in namespace `kernels` has Attributes, an
// aggregate.
struct KernelAttributes : AggregateValue {
  using AggregateValue::AggregateValue;

  // Returns the attributes in the type of a kernel: as<kernels::Sgd>().learning_rate.
  template <class Kernel>
  typename Kernel::Attributes as() const {
    return to<typename Kernel::Attributes>();
  }
};

// The attributes of a kernel without parameters.
struct NoAttributes {};

// The work of a launch. A number that overflows is the largest int64_t (checked_size.h).
struct KernelWork {
  std::int64_t bytes_read = 0;     // each input once
  std::int64_t bytes_written = 0;  // each output once
  std::int64_t flops = 0;          // a multiply-add counts 2
};

enum class Access { read, write, read_write };

// The element type of an operand. storage: the launch's dtype; single: single_of(dtype); index:
// int32; count, word, byte: unsigned with 64, 32 and 8 bits; control: see update_control.h;
// scratch: bytes without a defined content after a launch.
enum class OperandFormat { storage, single, index, count, word, byte, control, scratch };

constexpr std::int64_t bytes_of(OperandFormat format, DType dtype) {
  switch (format) {
    case OperandFormat::storage:
      return bytes_of(dtype);
    case OperandFormat::single:
      return bytes_of(single_of(dtype));
    case OperandFormat::count:
      return 8;
    case OperandFormat::byte:
    case OperandFormat::scratch:
      return 1;
    default:
      return 4;
  }
}

// A function of a launch of the kernel. declare.h makes it from a function of the kernel's own
// shape and attributes.
template <class Result>
using OfLaunch = Result (*)(const KernelShape&, DType, const KernelAttributes&);
template <class Result>
using OfAttributes = Result (*)(const KernelAttributes&);

// The number of elements of an operand.
using Extent = OfLaunch<CheckedSize>;

// The index that stands for no operand.
constexpr std::size_t no_operand = static_cast<std::size_t>(-1);

struct KernelOperand {
  std::string_view name;
  Access access = Access::read;
  Extent elements = nullptr;
  OperandFormat format = OperandFormat::storage;
  // Whether a launch with these attributes reads a read_write operand; if not, it only writes it.
  // Null: it always reads.
  OfAttributes<bool> accumulates = nullptr;
  // The number of elements that a launch accesses. Null: all elements.
  Extent touched = nullptr;
  // The operand is read_write only because some elements stay unchanged: no launch reads it.
  bool keeps_rest = false;
  // The index of an input whose buffer may also be this operand's: the kernel reads it before it
  // overwrites it.
  std::size_t may_replace = no_operand;
  // Upper limit for indices that are read: each is in [0, below).
  Extent below = nullptr;
};

// The arguments of a host reference. Pointers are host pointers, one per operand of the kernel, in
// its order.
struct KernelCall {
  KernelShape shape;
  DType dtype;
  KernelAttributes attributes;
  std::span<void* const> buffers;
};

class Cudnn;          // kernels/cudnn/open_cudnn.h
class GemmAutotuner;  // kernels/gemm/gemm_autotuner.h

// The kernel that a launcher chose, where a library has one that may be missing or unsuitable.
struct KernelChoice {
  std::string kernel;   // "attention_gradient"
  std::string library;  // "cuDNN 9.14.0"; empty for the project's own kernel
  std::string reason;   // why not the library's, or what its launch does otherwise; else empty
  // Launches a step that the project's own kernel makes, and all of the kernel, where a user's
  // library does not support the shapes of the former (Otherwise::ours).
  std::int64_t own_launches = 0;
  std::int64_t launches = 0;

  bool operator==(const KernelChoice&) const = default;
};

// Services that CUDA launchers may need besides their operands. `blas` is a cublasLtHandle_t.
// Without `dnn`, kernels do not use cuDNN; without `gemm_autotuner`, the heuristics of cuBLASLt and
// cuDNN choose algorithms of GEMMs and engines of convolutions.
struct LaunchContext {
  void* blas = nullptr;
  Cudnn* dnn = nullptr;
  GemmAutotuner* gemm_autotuner = nullptr;
  std::string_view cudnn_unavailable_reason = {};  // why `dnn` is null, in words
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
  // Upper limit of the shared memory of a block; 0: the limit of the device. Tests set it to
  // imitate devices with less.
  std::int64_t shared_bytes = 0;
  // Launchers append their choice of kernel here, each choice once. Null: not recorded.
  std::vector<KernelChoice>* choices = nullptr;
};

// Appends the choice of a launcher to the context's, once.
void record_choice(const LaunchContext&, KernelChoice);

// A chain of dependent loads (each needs the result of the previous one) and its footprint in
// bytes.
struct DependentLoads {
  std::int64_t count = 0;
  std::int64_t footprint_bytes = 0;
};

// Enqueues one launch on the stream, on device pointers in the operands' order. Never waits, never
// allocates.
using Launch = std::function<void(void* const* buffers, CUstream_st* stream)>;

// Costs of a launch beyond its work; a null function means not known or not needed.
struct KernelCost {
  // Share of the device's speed that it reaches: rates of GEMMs and of copies, latency of memory.
  double share_of_rate = 1;
  OfAttributes<double> share_by_attributes = nullptr;  // in its place; null: one share for all
  // Memory traffic when no cache holds the operands; null: the bytes in its KernelWork.
  OfLaunch<KernelWork> uncached_work = nullptr;
  // Most memory sectors that one load or store of a warp touches; null: not known.
  OfLaunch<std::int64_t> sectors_per_request = nullptr;
  // The duration that an attribute sets, whatever the kernel computes; null: no attribute sets one.
  OfAttributes<double> delay_microseconds = nullptr;
  // The loads whose latency limits the kernel; null where its loads are independent.
  OfLaunch<DependentLoads> dependent_loads = nullptr;
};

// The sizes of equal products of matrices, [rows][depth] by [depth][columns]; `groups` is their
// number.
struct GemmSizes {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t depth = 1;
  std::int64_t groups = 1;
};

// The kernel's use of libraries.
struct KernelLibrary {
  bool uses_workspace = false;  // its launch writes to the context's workspace
  // The products that a launch computes, if the kernel is a GEMM or a convolution, with or without
  // an epilogue, that a library computes; else null. Such a launch costs the host more than a
  // launch of the project's own kernels.
  OfLaunch<GemmSizes> gemm = nullptr;
  // Whether the kernel consists of GEMMs with a softmax between them, which a library may compute
  // in one kernel; never in tf32.
  bool is_attention = false;
  // The number of multiprocessors that the kernel leaves to concurrent kernels, and the attributes
  // with which it leaves so many; null where it cannot.
  OfAttributes<int> spare_multiprocessors = nullptr;
  KernelAttributes (*sparing)(const KernelAttributes&, int multiprocessors) = nullptr;

  bool is_gemm() const { return gemm != nullptr; }
};

// Says who launches shapes that a user's library does not support: nobody, or the own kernel.
enum class Otherwise { refuse, ours };

// Names a function of a user's library, or a table of a launch, which launches a kernel in the
// catalogue's place.
struct KernelReplacement {
  std::string library;               // path as written: "build/libmine.so", "layer_norm.toml"
  std::string function;              // "layer_norm"
  std::int64_t launches = 1;         // kernels that a call enqueues
  std::int64_t workspace_bytes = 0;  // of device memory that a call may use
  // Its time, for simulated devices, which cannot know it otherwise.
  std::optional<double> microseconds = {};
  Otherwise otherwise = Otherwise::refuse;
  bool operator==(const KernelReplacement&) const = default;
};

struct Kernel {
  std::string_view name;
  std::span<const KernelOperand> operands;
  OfLaunch<CheckedSize> flops;
  // Computes the result on the host: accumulates in double and rounds once to the storage type.
  void (*reference)(const KernelCall&);
  // Makes a launch: does everything that may be slow (heuristics, attributes) once. Null where the
  // build has no CUDA.
  Launch (*prepare)(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
  KernelLibrary library = {};
  KernelCost cost = {};
  // Set in a row of a plan: a library launches it, and `prepare` is null.
  std::optional<KernelReplacement> replacement = {};
};

// The least alignment of an operand's address in bytes: GEMM libraries need whole packs.
std::int64_t operand_alignment(const Kernel&);

// How a launch with these attributes accesses the operand.
Access access_of(const KernelOperand&, const KernelAttributes&);

// The size of an operand in bytes; the largest int64_t if it does not fit.
std::int64_t operand_bytes(const KernelOperand&, const KernelShape&, DType,
                           const KernelAttributes&);

// Computes the work of a launch from the operands' bytes and the kernel's flops.
KernelWork work_of(const Kernel&, const KernelShape&, DType, const KernelAttributes&);

}  // namespace stepgate
