// SPDX-License-Identifier: MIT
// A kernel is a name, the buffers it touches, its work, a host reference and a CUDA launcher.
// Knows nothing of steps, streams or scenarios; `runner/` is never included from here.
#pragma once

#include <compare>
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

// The sizes of one launch. Each kernel's header says what they mean for it; unused ones stay 1.
struct KernelShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t depth = 1;
  std::int64_t groups = 1;  // matrices of a batched GEMM, heads of attention

  auto operator<=>(const KernelShape&) const = default;
};

// The same sizes, for products that may not fit: a plan may be of a step that no machine has room
// for.
struct CheckedShape {
  CheckedSize rows = 1;
  CheckedSize columns = 1;
  CheckedSize depth = 1;
  CheckedSize groups = 1;
};

constexpr CheckedShape checked(const KernelShape& shape) {
  return {shape.rows, shape.columns, shape.depth, shape.groups};
}

// Elements of a matrix of rows and columns.
constexpr std::int64_t elements_of(const KernelShape& shape) {
  return shape.rows * shape.columns;
}
constexpr CheckedSize elements_of(const CheckedShape& shape) {
  return shape.rows * shape.columns;
}

// Facts that a launch is told besides its sizes (a learning rate, whether a result is added to).
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

// Attributes of a kernel that is told nothing.
struct NoAttributes {};

// One that does not fit is the largest number there is (checked_size.h).
struct KernelWork {
  std::int64_t bytes_read = 0;     // each input once
  std::int64_t bytes_written = 0;  // each output once
  std::int64_t flops = 0;          // a multiply-add counts 2
};

enum class Access { read, write, read_write };

// storage: numbers of the launch's dtype; single: fp32. label: the index of a column, token: one in
// [0, depth), both int32. count: 64 bits; word: 32 bits; byte: 8 bits, all unsigned. control: see
// update_control.h. scratch: bytes that a launch may leave anything in.
enum class OperandFormat { storage, single, label, token, count, word, byte, control, scratch };

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

// How many elements an operand has; extents.h has those that several kernels share.
using Extent = CheckedSize (*)(const CheckedShape&, DType, const KernelAttributes&);

// The index of no operand.
constexpr std::size_t no_operand = static_cast<std::size_t>(-1);

struct KernelOperand {
  std::string_view name;
  Access access = Access::read;
  Extent elements = nullptr;
  OperandFormat format = OperandFormat::storage;
  // Null, or whether a launch with these attributes reads what is read_write: otherwise it is only
  // written.
  bool (*accumulates)(const KernelAttributes&) = nullptr;
  // Null, or how many of the elements a launch moves, where that is not all of them.
  Extent touched = nullptr;
  // It is read_write only because a part of it stays as it was: no launch reads it.
  bool keeps_rest = false;
  // An operand that is read, whose buffer this one may be: it is read before it is overwritten.
  std::size_t may_replace = no_operand;
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
  // That a block may have at most; 0: as much as the device gives one. For tests, which play
  // devices that give less.
  std::int64_t shared_bytes = 0;
  // Where launchers write down what they chose, the same thing once. Null: nobody asks.
  std::vector<KernelChoice>* choices = nullptr;
};

// Loads of which each needs what the one before brought, and the bytes that they are spread over.
struct DependentLoads {
  std::int64_t count = 0;
  std::int64_t footprint_bytes = 0;
};

// Enqueues one launch on the stream, on device pointers in the operands' order. Never waits, never
// allocates.
using Launch = std::function<void(void* const* buffers, CUstream_st* stream)>;

struct Kernel {
  std::string_view name;
  std::span<const KernelOperand> operands;
  CheckedSize (*flops)(const CheckedShape&, const KernelAttributes&);
  // Accumulates in double and rounds once to the storage type.
  void (*reference)(const KernelCall&);
  // Does everything that may be slow (heuristics, attributes) once. Null where the build has no
  // CUDA.
  Launch (*prepare)(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
  bool uses_workspace = false;  // what it launches writes to that of the context
  // A matrix product, with or without something behind it, that a library computes: its launch
  // costs the host more than one of ours.
  bool is_gemm = false;
  // How many multiprocessors it leaves to kernels beside it, and the attributes with which it
  // leaves so many; null where it cannot.
  int (*spare_multiprocessors)(const KernelAttributes&) = nullptr;
  KernelAttributes (*sparing)(const KernelAttributes&, int multiprocessors) = nullptr;
  // GEMMs with a softmax between them, which a library may compute in one; never in tf32.
  bool is_attention = false;
  // Share of a GEMM's rate that its arithmetic can have.
  double share_of_rate = 1;
  // Traffic of memory where no cache holds its operands; null: as much as its work says.
  KernelWork (*uncached_work)(const KernelShape&, DType, const KernelAttributes&) = nullptr;
  // Sectors of memory that one load or store of a warp touches at most; null: of the accesses that
  // suit it, nobody knows.
  std::int64_t (*sectors_per_request)(const KernelShape&, DType, const KernelAttributes&) = nullptr;
  // How long it is told to take, whatever it computes; null where nobody tells it.
  double (*delay_microseconds)(const KernelAttributes&) = nullptr;
  // The loads whose latency limits it; null where they are on their way at once.
  DependentLoads (*dependent_loads)(const KernelShape&, const KernelAttributes&) = nullptr;
};

// How a launch with these attributes accesses the operand.
Access access_of(const KernelOperand&, const KernelAttributes&);

// The largest number there is where it does not fit.
std::int64_t operand_bytes(const KernelOperand&, const KernelShape&, DType,
                           const KernelAttributes&);

// Work from the operands' bytes and the kernel's flops.
KernelWork work_of(const Kernel&, const KernelShape&, DType, const KernelAttributes&);

}  // namespace stepgate
