// SPDX-License-Identifier: MIT
// The two graphs of attention, in the patterns that cuDNN's fused attention recognises. The order
// of the operations, the types between them and the multiplication by 1 are part of the pattern.
#include "kernels/attention/cudnn/cudnn_attention.h"

#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/cudnn/graph.h"
#include "kernels/cudnn/plans.h"

namespace stepgate {
namespace {

using GraphTensor = CudnnGraph::Tensor;

enum class AttentionPass { forward, backward };

// Everything that a plan depends on, besides library and handle.
struct AttentionGraph {
  AttentionPass pass = AttentionPass::forward;
  AttentionShape shape;
  AttentionShape rows_of;  // the heads that a row has, all of them or more than the shape's
  DType dtype = DType::bf16;
  SumOrder order = SumOrder::fixed;  // of the backward pass
  bool causal = true;

  std::string name() const {
    return std::string(pass == AttentionPass::forward ? "attention "
                       : order == SumOrder::fixed     ? "gradient of attention "
                                                      : "gradient of attention in any order ") +
           (causal ? "" : "of all tokens ") + text_of(KernelShape(shape)) +
           (rows_of == shape ? "" : " of " + text_of(KernelShape(rows_of))) + ' ' +
           std::string(name_of(dtype));
  }
};

struct Sizes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t time;
  std::int64_t head_size;
  std::int64_t columns;      // of a row of q and of out
  std::int64_t qkv_columns;  // of a row of q | k | v
  cudnnDataType_t type;

  bool shares_heads() const { return kv_heads != heads; }
  // Shapes of the queries in qkv, of its keys or values, of out, of the scores, and of one number
  // for each row of scores.
  TensorShape q() const { return heads_in_rows(heads, qkv_columns); }
  TensorShape kv() const { return heads_in_rows(kv_heads, qkv_columns); }
  TensorShape out() const { return heads_in_rows(heads, columns); }
  TensorShape scores() const { return packed({batch, heads, time, time}); }
  TensorShape per_row() const { return packed({batch, heads, time, 1}); }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_size)); }

 private:
  TensorShape heads_in_rows(std::int64_t count, std::int64_t row) const {
    return {{batch, count, time, head_size}, {time * row, head_size, row, 1}};
  }
};

std::optional<Sizes> sizes_of(const AttentionShape& shape, const AttentionShape& rows_of,
                              DType dtype, std::string* reason) {
  const auto refuse = [&](const char* why) {
    *reason = std::string("cuDNN's attention takes ") + why;
    return std::nullopt;
  };
  if (!is_16_bit(dtype)) return refuse("bf16 and fp16 only");
  const bool whole = shape.heads > 0 && shape.tokens > 0 && shape.columns % shape.heads == 0 &&
                     shape.rows % shape.tokens == 0;
  if (!whole) return refuse("rows that are whole sequences and columns that are whole heads");
  if (shape.kv_heads <= 0 || shape.heads % shape.kv_heads != 0)
    return refuse("keys and values of a number of heads that divides that of the queries");
  const std::int64_t head_size = shape.columns / shape.heads;
  if (head_size % 8 != 0) return refuse("heads of a multiple of 8 columns");
  return Sizes{.batch = shape.rows / shape.tokens,
               .heads = shape.heads,
               .kv_heads = shape.kv_heads,
               .time = shape.tokens,
               .head_size = head_size,
               .columns = rows_of.columns,
               .qkv_columns = qkv_columns(rows_of),
               .type = dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF};
}

// Scores of keys behind the query become -infinity (the lowest number, as older versions want it).
GraphTensor masked(CudnnGraph& graph, const Cudnn& cudnn, const Sizes& sizes, GraphTensor scores) {
  const bool knows_infinity = cudnn.version() >= 91000;
  const GraphTensor lowest = graph.number(knows_infinity ? -std::numeric_limits<float>::infinity()
                                                         : std::numeric_limits<float>::lowest());
  const GraphTensor rows =
      graph.indices(scores, 2, graph.computed(sizes.scores(), CUDNN_DATA_INT32));
  const GraphTensor columns =
      graph.indices(scores, 3, graph.computed(sizes.scores(), CUDNN_DATA_INT32));
  const GraphTensor seen =
      graph.pointwise(CUDNN_POINTWISE_CMP_GE, {rows, columns},
                      graph.computed(sizes.scores(), CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
  return graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {scores, lowest, seen},
                         graph.computed(sizes.scores()));
}

// Builds the forward graph with buffers q, k, v, out, log_sums. A product of matrices repeats the
// heads of k and v where they are fewer.
void build_forward(CudnnGraph& graph, const Cudnn& cudnn, const Sizes& sizes, bool causal) {
  const GraphTensor q = graph.buffer(sizes.type, sizes.q());
  const GraphTensor k = graph.buffer(sizes.type, sizes.kv().transposed());
  const GraphTensor v = graph.buffer(sizes.type, sizes.kv());
  const GraphTensor out = graph.buffer(sizes.type, sizes.out());
  const GraphTensor log_sums = graph.buffer(CUDNN_DATA_FLOAT, sizes.per_row());
  const auto a_score = [&] { return graph.computed(sizes.scores()); };
  const auto a_row = [&] { return graph.computed(sizes.per_row()); };

  const GraphTensor products = graph.multiply_matrices(q, k, a_score());
  const GraphTensor scaled =
      graph.pointwise(CUDNN_POINTWISE_MUL, {products, graph.number(sizes.scale())}, a_score());
  const GraphTensor scores = causal ? masked(graph, cudnn, sizes, scaled) : scaled;
  const GraphTensor largest = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, a_row());
  const GraphTensor below = graph.pointwise(CUDNN_POINTWISE_SUB, {scores, largest}, a_score());
  const GraphTensor exponentials = graph.pointwise(CUDNN_POINTWISE_EXP, {below}, a_score());
  const GraphTensor sums = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, a_row());
  const GraphTensor logarithms = graph.pointwise(CUDNN_POINTWISE_LOG, {sums}, a_row());
  graph.pointwise(CUDNN_POINTWISE_ADD, {largest, logarithms}, log_sums);
  const GraphTensor probabilities = graph.pointwise(CUDNN_POINTWISE_DIV, {exponentials, sums},
                                                    graph.computed(sizes.scores(), sizes.type));
  graph.multiply_matrices(probabilities, v, out);
}

// Builds the backward graph with buffers q, k, v, out, d_out, log_sums, dots, d_q, d_k, d_v, and
// the sums of order `any`. With that order, blocks add to the gradient of q in memory in arrival
// order. With `fixed`, one GEMM computes it from the score gradients in the workspace.
void build_backward(CudnnGraph& graph, const Cudnn& cudnn, const Sizes& sizes, SumOrder order,
                    bool causal) {
  const TensorShape rows_of_head = packed({sizes.batch, sizes.heads, sizes.time, sizes.head_size});
  const GraphTensor q = graph.buffer(sizes.type, sizes.q());
  const GraphTensor k = graph.buffer(sizes.type, sizes.kv().transposed());
  const GraphTensor v = graph.buffer(sizes.type, sizes.kv().transposed());
  const GraphTensor out = graph.buffer(sizes.type, sizes.out());
  const GraphTensor d_out = graph.buffer(sizes.type, sizes.out());
  const GraphTensor log_sums = graph.buffer(CUDNN_DATA_FLOAT, sizes.per_row());
  const GraphTensor dots = graph.buffer(CUDNN_DATA_FLOAT, sizes.per_row());
  const GraphTensor d_q = graph.buffer(sizes.type, sizes.q());
  const GraphTensor d_k = graph.buffer(sizes.type, sizes.kv());
  const GraphTensor d_v = graph.buffer(sizes.type, sizes.kv());
  const GraphTensor scale = graph.number(sizes.scale());
  const auto a_score = [&] { return graph.computed(sizes.scores()); };
  const auto transposed = [&](GraphTensor scores) {
    return graph.reshape(scores, graph.computed(sizes.scores().transposed(), sizes.type));
  };
  // The gradient of k or v: a product for each head of q, summed where heads share theirs.
  const auto multiply_to_shared = [&](GraphTensor a, GraphTensor b, GraphTensor to) {
    if (!sizes.shares_heads()) return graph.multiply_matrices(a, b, to);
    const GraphTensor products = graph.computed(rows_of_head, sizes.type);
    return graph.reduce(CUDNN_REDUCE_TENSOR_ADD, graph.multiply_matrices(a, b, products), to);
  };

  // dots = the sum over a row of d_out * out
  const GraphTensor d_out_out =
      graph.pointwise(CUDNN_POINTWISE_MUL, {d_out, out}, graph.computed(rows_of_head));
  const GraphTensor dot =
      graph.reduce(CUDNN_REDUCE_TENSOR_ADD, d_out_out, graph.computed(sizes.per_row()));
  graph.pointwise(CUDNN_POINTWISE_MUL, {dot, graph.number(1)}, dots);

  // probabilities = exp(scale q k' - log_sums);  d_v = probabilities' d_out
  const GraphTensor products = graph.multiply_matrices(q, k, a_score());
  const GraphTensor scaled = graph.pointwise(CUDNN_POINTWISE_MUL, {products, scale}, a_score());
  const GraphTensor below = graph.pointwise(CUDNN_POINTWISE_SUB, {scaled, log_sums}, a_score());
  const GraphTensor scores = causal ? masked(graph, cudnn, sizes, below) : below;
  const GraphTensor probabilities = graph.pointwise(CUDNN_POINTWISE_EXP, {scores}, a_score());
  multiply_to_shared(transposed(probabilities), d_out, d_v);

  // d_scores = scale probabilities (d_out v' - dots);  d_k = d_scores' q
  const GraphTensor d_probabilities = graph.multiply_matrices(d_out, v, a_score());
  const GraphTensor centred =
      graph.pointwise(CUDNN_POINTWISE_SUB, {d_probabilities, dots}, a_score());
  const GraphTensor weighted =
      graph.pointwise(CUDNN_POINTWISE_MUL, {centred, probabilities}, a_score());
  const GraphTensor d_scores = graph.pointwise(CUDNN_POINTWISE_MUL, {weighted, scale}, a_score());
  multiply_to_shared(transposed(d_scores), q, d_k);

  // d_q = d_scores k
  const GraphTensor rows_of_k = graph.reshape(k, graph.computed(sizes.kv()));
  if (order == SumOrder::fixed) {
    graph.multiply_matrices(d_scores, rows_of_k, d_q);
  } else {
    const GraphTensor sums = graph.buffer(CUDNN_DATA_FLOAT, rows_of_head);
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, {graph.multiply_matrices(d_scores, rows_of_k, sums)},
                    d_q);
  }
}

std::unique_ptr<CudnnPlan> forward_plan(Cudnn& cudnn, const Sizes& sizes, bool causal,
                                        std::string* reason) {
  CudnnGraph graph(cudnn);
  build_forward(graph, cudnn, sizes, causal);
  return graph.plan(reason);
}

std::unique_ptr<CudnnPlan> backward_plan(Cudnn& cudnn, const Sizes& sizes, SumOrder order,
                                         bool causal, std::string* reason) {
  // These versions need an extra mask for a last tile that is not full.
  if (cudnn.version() <= 91500 && sizes.time % 128 != 0) {
    *reason = "cuDNN " + version_of(cudnn) +
              ": the gradient of attention takes sequences of a multiple of 128";
    return nullptr;
  }
  // These versions need the sums cleared before each launch.
  if (cudnn.version() < 90600 && order == SumOrder::any) {
    *reason = "cuDNN " + version_of(cudnn) +
              ": the gradient of attention in any order takes cuDNN 9.6 or newer";
    return nullptr;
  }
  CudnnGraph graph(cudnn);
  build_backward(graph, cudnn, sizes, order, causal);
  return graph.plan(reason);
}

// A plan with its sizes. The library keeps the plan, and the plan keeps the library loaded.
struct SizedPlan {
  Sizes sizes;
  std::shared_ptr<const CudnnPlan> plan;
};

std::optional<SizedPlan> plan_of(Cudnn& cudnn, const AttentionGraph& graph, std::string* reason) {
  const std::optional<Sizes> sizes = sizes_of(graph.shape, graph.rows_of, graph.dtype, reason);
  if (!sizes) return std::nullopt;
  const PlanOrReason& made = cudnn.plans().of(graph.name(), [&] {
    PlanOrReason making;
    making.plan = graph.pass == AttentionPass::forward
                      ? forward_plan(cudnn, *sizes, graph.causal, &making.reason)
                      : backward_plan(cudnn, *sizes, graph.order, graph.causal, &making.reason);
    return making;
  });
  if (made.plan == nullptr) {
    *reason = made.reason;
    return std::nullopt;
  }
  return SizedPlan{*sizes, {cudnn.shared_from_this(), made.plan.get()}};
}

AttentionGraph forward_graph(const AttentionShape& shape, DType dtype, bool causal = true) {
  return {.pass = AttentionPass::forward,
          .shape = shape,
          .rows_of = shape,
          .dtype = dtype,
          .causal = causal};
}

AttentionGraph backward_graph(const AttentionShape& shape, AttentionShape rows_of, DType dtype,
                              SumOrder order, bool causal = true) {
  rows_of.rows = shape.rows;  // sequences more or fewer are the same graph
  return {.pass = AttentionPass::backward,
          .shape = shape,
          .rows_of = rows_of,
          .dtype = dtype,
          .order = order,
          .causal = causal};
}

// Upper limit of the workspace that cuDNN may request in addition to the operands of attention; it
// requests a few bytes.
constexpr std::int64_t most_own_bytes = 1 << 20;

struct Free {
  void operator()(void* memory) const noexcept { (void)cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, Free>;

std::optional<DeviceMemory> own_workspace(std::int64_t bytes, std::string* reason) {
  if (bytes > most_own_bytes) {
    *reason = "cuDNN's attention asks for a workspace of " + std::to_string(bytes) +
              " bytes, which no operand offers";
    return std::nullopt;
  }
  void* memory = nullptr;
  const cudaError_t status = bytes > 0 ? cudaMalloc(&memory, bytes) : cudaSuccess;
  if (status == cudaSuccess) return DeviceMemory(memory);
  *reason = std::string("allocate cuDNN's workspace: ") + cudaGetErrorString(status);
  return std::nullopt;
}

// Parts of the gradient's scratch: dots, the sums of SumOrder::any, and cuDNN's own workspace.
struct Scratch {
  std::int64_t sums;
  std::int64_t workspace;
  std::int64_t bytes;
};

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

Scratch scratch_of(const Sizes& sizes, SumOrder order, const CudnnPlan& plan) {
  const std::int64_t rows = sizes.batch * sizes.heads * sizes.time;
  const std::int64_t sums = order == SumOrder::any ? 4 * rows * sizes.head_size : 0;
  Scratch scratch{};
  scratch.sums = aligned(4 * rows);
  scratch.workspace = scratch.sums + aligned(sums);
  scratch.bytes = scratch.workspace + plan.workspace_bytes();
  return scratch;
}

// Pointers to the three parts of packed q | k | v.
struct Parts {
  void* q;
  void* k;
  void* v;
};

// The element of a buffer of 16-bit numbers.
char* address_of(void* buffer, std::int64_t index) {
  return static_cast<char*>(buffer) + 2 * index;
}

// Where in `whole` a share begins: with the sequence of this row, and these heads of queries and of
// keys.
struct ShareStart {
  std::int64_t row = 0;
  std::int64_t head = 0;
  std::int64_t kv_head = 0;
};

Parts parts_of(void* qkv, const AttentionShape& whole, const ShareStart& start = {}) {
  const std::int64_t head_size = whole.columns / whole.heads;
  const std::int64_t row = start.row * qkv_columns(whole);
  const std::int64_t k = row + whole.columns + start.kv_head * head_size;
  return {address_of(qkv, row + start.head * head_size), address_of(qkv, k),
          address_of(qkv, k + whole.kv_heads * head_size)};
}

// The share of the last launch: the sequences or heads that are left.
AttentionShape last_share(const AttentionShape& whole, const AttentionShape& share) {
  const auto last_of = [](std::int64_t all, std::int64_t each) {
    return all % each > 0 ? all % each : each;
  };
  return part_of(whole, last_of(whole.rows, share.rows) / whole.tokens,
                 last_of(whole.kv_heads, share.kv_heads));
}

void require_alignment(std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0) continue;
    throw std::runtime_error("cuDNN's attention takes operands that are aligned to 16 bytes");
  }
}

}  // namespace

std::optional<Launch> cudnn_attention(Cudnn& cudnn, const AttentionShape& shape, DType dtype,
                                      std::string* reason, bool causal) {
  const auto made = plan_of(cudnn, forward_graph(shape, dtype, causal), reason);
  if (!made) return std::nullopt;
  std::optional<DeviceMemory> memory = own_workspace(made->plan->workspace_bytes(), reason);
  if (!memory) return std::nullopt;
  const std::shared_ptr<void> workspace = *std::move(memory);
  const auto launcher = std::make_shared<PlanLauncher>(made->plan);
  return [launcher, workspace, shape](void* const* buffers, CUstream_st* stream) {
    require_alignment({buffers[0], buffers[1], buffers[2]});
    const auto [q, k, v] = parts_of(buffers[0], shape);
    launcher->launch({q, k, v, buffers[1], buffers[2]}, workspace.get(), stream);
  };
}

std::optional<Launch> cudnn_attention_gradient(Cudnn& cudnn, const AttentionShape& whole,
                                               const AttentionShape& share, DType dtype,
                                               std::int64_t scratch_bytes, std::string* reason,
                                               SumOrder order, bool causal) {
  struct Planned {
    std::shared_ptr<PlanLauncher> launcher;
    Scratch scratch;
  };
  const auto planned = [&](const AttentionShape& part) -> std::optional<Planned> {
    const auto made = plan_of(cudnn, backward_graph(part, whole, dtype, order, causal), reason);
    if (!made) return std::nullopt;
    const Scratch scratch = scratch_of(made->sizes, order, *made->plan);
    if (scratch.bytes <= scratch_bytes)
      return Planned{std::make_shared<PlanLauncher>(made->plan), scratch};
    *reason = "cuDNN's gradient of attention needs " + std::to_string(scratch.bytes) +
              " bytes of scratch and has " + std::to_string(scratch_bytes);
    return std::nullopt;
  };
  const AttentionShape rest = last_share(whole, share);
  const std::optional<Planned> of_share = planned(share);
  const std::optional<Planned> of_rest = rest == share || !of_share ? of_share : planned(rest);
  if (!of_rest) return std::nullopt;
  return [=](void* const* buffers, CUstream_st* stream) {
    require_alignment({buffers[0], buffers[1], buffers[2], buffers[3], buffers[4], buffers[5]});
    auto* own = static_cast<char*>(buffers[4]);
    const auto launch_part = [&](const Planned& part, const ShareStart& start) {
      const auto [q, k, v] = parts_of(buffers[0], whole, start);
      const auto [d_q, d_k, d_v] = parts_of(buffers[5], whole, start);
      const std::int64_t first =
          start.row * whole.columns + start.head * (whole.columns / whole.heads);
      float* log_sums =
          static_cast<float*>(buffers[3]) + start.row * whole.heads + start.head * whole.tokens;
      std::vector<void*> pointers = {
          q,   k,   v,  address_of(buffers[1], first), address_of(buffers[2], first), log_sums, own,
          d_q, d_k, d_v};
      if (order == SumOrder::any) pointers.push_back(own + part.scratch.sums);
      part.launcher->launch(pointers, own + part.scratch.workspace, stream);
    };
    for (ShareStart start; start.row < whole.rows; start.row += share.rows) {
      for (start.head = start.kv_head = 0; start.head < whole.heads; start.head += share.heads) {
        const bool is_whole_share =
            start.row + share.rows <= whole.rows && start.head + share.heads <= whole.heads;
        launch_part(is_whole_share ? *of_share : *of_rest, start);
        start.kv_head += share.kv_heads;
      }
    }
  };
}

std::optional<std::int64_t> cudnn_attention_gradient_bytes(Cudnn& cudnn,
                                                           const AttentionShape& shape, DType dtype,
                                                           std::string* reason, SumOrder order) {
  const auto made = plan_of(cudnn, backward_graph(shape, shape, dtype, order), reason);
  if (!made) return std::nullopt;
  return scratch_of(made->sizes, order, *made->plan).bytes;
}

std::optional<std::int64_t> cudnn_attention_bytes(Cudnn& cudnn, const AttentionShape& shape,
                                                  DType dtype, std::string* reason) {
  const auto made = plan_of(cudnn, forward_graph(shape, dtype), reason);
  if (!made) return std::nullopt;
  return made->plan->workspace_bytes();
}

}  // namespace stepgate
