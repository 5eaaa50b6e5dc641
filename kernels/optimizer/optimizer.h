// SPDX-License-Identifier: MIT
// Updates of the weights, and the norm of the gradients, by which they are clipped. Launchers exist
// only in CUDA builds.
#pragma once

#include <algorithm>

#include "kernels/kernel.h"
#include "kernels/optimizer/update_rule.h"

namespace stepgate {

namespace kernels {

// AdamW with decoupled weight decay (Loshchilov and Hutter, ICLR 2019, algorithm 2), plain, clipped
// and with an fp32 master of the weights. g is the gradient times the control's factor, t the
// number of updates including this one.
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= learning_rate ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w)
//   adamw    adamw_clipped    adamw_master
//   shape     rows x columns parameters
//   operands  adamw: weights, gradients, m and v (fp32), counter (uint64 [1]: t)
//             adamw_clipped: weights, gradients, m, v, control (fp32 [8]: the factor, the loss
//               scale, good updates since it last changed, t, the norm, and three unused numbers)
//             adamw_master: weights, gradients, master (fp32), m, v, control
// Where the factor is 0 nothing changes. Where there is a master, the weights are the rounded
// master and are never read.
struct Adamw {
  static constexpr std::string_view names[] = {"adamw", "adamw_clipped", "adamw_master"};
  static constexpr std::string_view name = names[0];
  static constexpr std::size_t moments = 2;
  static constexpr bool counts_updates = true;
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "learning_rate beta1 beta2 epsilon weight_decay";
    double learning_rate = 0;
    double beta1 = 0;
    double beta2 = 0;
    double epsilon = 0;
    double weight_decay = 0;
  };
};

// Lion (Chen et al.: Symbolic Discovery of Optimization Algorithms, NeurIPS 2023, algorithm 2),
// plain, clipped and with an fp32 master of the weights. g is the gradient times the control's
// factor.
//   c = beta1 m + (1 - beta1) g;  w -= learning_rate (sign(c) + weight_decay w)
//   m = beta2 m + (1 - beta2) g
//   lion    lion_clipped    lion_master
//   shape     rows x columns parameters
//   operands  those of adamw, adamw_clipped and adamw_master, without v and the counter
struct Lion {
  static constexpr std::string_view names[] = {"lion", "lion_clipped", "lion_master"};
  static constexpr std::string_view name = names[0];
  static constexpr std::size_t moments = 1;
  static constexpr bool counts_updates = false;
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "learning_rate beta1 beta2 weight_decay";
    double learning_rate = 0;
    double beta1 = 0;
    double beta2 = 0;
    double weight_decay = 0;
  };
};

// Stochastic gradient descent with momentum and with the decay as part of the gradient (Sutskever
// et al.: On the importance of initialization and momentum in deep learning, ICML 2013, as
// torch.optim.SGD(momentum=, weight_decay=) computes it), plain, clipped and with an fp32 master of
// the weights. Dampening is 0 and the momentum is not Nesterov's. g is the gradient times the
// control's factor.
//   m = momentum m + (g + weight_decay w);  w -= learning_rate m
//   momentum    momentum_clipped    momentum_master
//   shape     rows x columns parameters
//   operands  those of lion, lion_clipped and lion_master
struct Momentum {
  static constexpr std::string_view names[] = {"momentum", "momentum_clipped", "momentum_master"};
  static constexpr std::string_view name = names[0];
  static constexpr std::size_t moments = 1;
  static constexpr bool counts_updates = false;
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "learning_rate momentum weight_decay";
    double learning_rate = 0;
    double momentum = 0;
    double weight_decay = 0;
  };
};

// Stochastic gradient descent: w -= learning_rate * g.
//   shape     rows x columns parameters
//   operands  weights, gradients
struct Sgd {
  static constexpr std::string_view name = "sgd";
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "learning_rate";
    double learning_rate = 0;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// A moving average of the weights: average += (1 - decay) * (weights - average).
//   shape     rows x columns parameters
//   operands  average (fp32), weights
struct MovingAverage {
  static constexpr std::string_view name = "moving_average";
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "decay";
    double decay = 0;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The passes of AdamW as a "foreach" optimizer computes it, in their order.
enum class ForeachPass { unscale, decay, lerp, mul, addcmul, sqrt, div, add, addcdiv };

namespace kernels {

// AdamW as a "foreach" optimizer computes it: one pass over all tensors for each elementary
// operation, with every intermediate in memory (torch.optim.AdamW(foreach=True) of PyTorch 2). All
// passes in order equal adamw_clipped up to rounding. Each pass reads and writes what its operation
// needs. Together they move 88 bytes per parameter in fp32, where adamw_clipped moves 28.
//   foreach_unscale    gradients *= factor
//   foreach_decay      weights *= 1 - learning_rate * weight_decay
//   foreach_lerp       m += (1 - beta1) (gradients - m)
//   foreach_mul        v *= beta2
//   foreach_addcmul    v += (1 - beta2) gradients^2
//   foreach_sqrt       denominators = sqrt(v); no control, as they are temporary
//   foreach_div        denominators /= sqrt(1 - beta2^t)
//   foreach_add        denominators += epsilon; no control
//   foreach_addcdiv    weights -= learning_rate / (1 - beta1^t) * m / denominators
//   shape     rows x columns numbers
//   operands  the target, other tensors, control (that of adamw_clipped); m, v and denominators are
//             fp32
//   attributes   those of adamw; t = control's updates
// Where the control's factor is 0 no weight, gradient or moment changes.
inline constexpr std::string_view foreach_names[] = {
    "foreach_unscale", "foreach_decay", "foreach_lerp", "foreach_mul",    "foreach_addcmul",
    "foreach_sqrt",    "foreach_div",   "foreach_add",  "foreach_addcdiv"};

template <ForeachPass pass>
struct Foreach {
  static constexpr std::string_view name = foreach_names[static_cast<std::size_t>(pass)];
  using Shape = MatrixShape;
  using Attributes = Adamw::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Decides one update from the norm of all gradients: the factor of every gradient, whether the
// update is skipped, and the next loss scale. Gradients are clipped as in
// torch.nn.utils.clip_grad_norm_, the scale changes as in torch.amp.GradScaler (whose defaults are
// growth 2, backoff 0.5, growth_interval 2000).
//   shape     partials, the number of sums
//   operands  partials (fp32, of square_sums), control (fp32 [8]: the factor, loss_scale,
//             good_updates, updates, the norm, and three unused numbers)
//   norm = sqrt(sum of partials) / loss_scale
//   norm finite:  factor = min(1, max_norm / (norm + 1e-6)) / loss_scale;  updates += 1
//                 good_updates += 1; at growth_interval: loss_scale *= growth, good_updates = 0
//   otherwise:    factor = 0;  good_updates = 0;  loss_scale *= backoff unless it is fixed
// The factor uses the loss scale before the change, with which the gradients were computed.
struct Clip {
  static constexpr std::string_view name = "clip";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "partials";
    Size partials = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "max_norm growth_interval growth backoff";
    double max_norm = 0;         // 0: no clipping
    double growth_interval = 0;  // 0: the scale is fixed, but inf and NaN still skip
    double growth = 2;
    double backoff = 0.5;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

constexpr double clip_epsilon = 1e-6;

namespace kernels {

// The first of two stages of the norm of all gradients: partials[p] is the sum of squares of the
// p-th piece of the numbers. clip is the second stage. The order of a sum depends on the sizes and
// the alignment of the gradients alone.
//   shape     numbers, pieces (square_sum_pieces returns the best number for a GPU)
//   operands  gradients ([numbers]), partials (fp32 [pieces])
// A square that overflows fp32 makes its piece infinite, and clip skips the update.
struct SquareSums {
  static constexpr std::string_view name = "square_sums";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "numbers pieces";
    Size numbers = 1;
    Size pieces = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Number of pieces: 12 blocks for each of 132 multiprocessors, which is two waves, so that the
// second evens out the load of the first. Pieces are large enough that reading one takes longer
// than starting its block.
constexpr std::int64_t square_sum_pieces(std::int64_t count) {
  constexpr std::int64_t most = 12 * 132;
  constexpr std::int64_t smallest_piece = 4096;
  return std::clamp<std::int64_t>((count + smallest_piece - 1) / smallest_piece, 1, most);
}

// Number of elements of every piece except the last ones, which may be shorter or empty. It is a
// multiple of 8, so that all pieces of an aligned operand are aligned.
constexpr std::int64_t square_sum_piece(const kernels::SquareSums::Shape& shape) {
  const std::int64_t share = (shape.numbers + shape.pieces - 1) / shape.pieces;
  return (share + 7) / 8 * 8;
}

std::vector<Kernel> optimizer_kernels();

}  // namespace stepgate
