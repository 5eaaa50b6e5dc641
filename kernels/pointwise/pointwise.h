// SPDX-License-Identifier: MIT
// Kernels that map elements to elements, or sum columns. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// sum = x + branch, element by element; sum may be x.
//   shape     rows, columns (only their product counts)
//   operands  x, branch, sum
struct Add {
  static constexpr std::string_view name = "add";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// y[r][c] = activation(x[r][c] + bias[c]).
//   shape     rows, columns
//   operands  x, bias ([columns]), y; y may be x
struct BiasActivation {
  static constexpr std::string_view name = "bias_activation";
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "relu";
    bool relu = false;  // otherwise no activation
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Additions behind a convolution, each rounded once:
//   time_bias: y[n][p][c] = x[n][p][c] + bias[c] + time[n][c], an embedding of the sample's time
//   residual_bias: y[n][p][c] = x[n][p][c] + bias[c] + residual[n][p][c]
//   time_bias    residual_bias
//   shape     samples, pixels, columns
//   operands  time_bias: x ([samples][pixels][columns]), bias ([columns]), time
//               ([samples][columns]), y (may be x)
//             residual_bias: x, bias ([columns]), residual, y (may be x)
struct TimeBias {
  static constexpr std::string_view name = "time_bias";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "samples pixels columns";
    Size samples = 1;
    Size pixels = 1;
    Size columns = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ResidualBias {
  static constexpr std::string_view name = "residual_bias";
  using Shape = TimeBias::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// db[c] = sum over rows of dy[r][c], or db[c] += that sum. The order of the sum depends on the
// shape alone.
//   shape     rows, columns
//   operands  dy, db ([columns]; read only when accumulating)
struct BiasGradient {
  static constexpr std::string_view name = "bias_gradient";
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "accumulate";
    bool accumulate = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// partials[p][c] = sum of dy[r][c] over the rows r of part p, which are p, p + parts, ... This is
// the first half of a bias's gradient, for matrices too tall and too narrow for bias_gradient to
// fill the device. sum_parts is the second half.
//   shape     rows, columns, parts (column_parts(rows, columns))
//   operands  dy, partials (fp32 [parts][columns])
struct ColumnParts {
  static constexpr std::string_view name = "column_parts";
  using Shape = PartsShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Number of columns of a part that one block sums.
constexpr std::int64_t columns_of_part = 256;

// Number of parts that gives eight blocks to each of the 132 multiprocessors of an H200. A part has
// at least 32 rows, so that the partial sums stay small compared with the rows.
constexpr std::int64_t column_parts(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t blocks = 8 * 132, least_rows = 32;
  const std::int64_t most = blocks / ((columns + columns_of_part - 1) / columns_of_part);
  const std::int64_t parts = rows / least_rows < most ? rows / least_rows : most;
  return parts < 1 ? 1 : parts;
}

namespace kernels {

// Copies numbers from the model's storage to fp32 (widen) and back, rounded to nearest (narrow).
// Gradients are widened for a collective that adds them in fp32.
//   shape     numbers
//   operands  widen: numbers, wide (fp32), one for each
//             narrow: wide (fp32), numbers, one for each
struct Widen {
  static constexpr std::string_view name = "widen";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "numbers";
    Size numbers = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct Narrow {
  static constexpr std::string_view name = "narrow";
  using Shape = Widen::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The Gaussian error linear unit in its tanh approximation (Hendrycks and Gimpel: Gaussian Error
// Linear Units, 2016, section 2):
//   gelu(x) = x / 2 (1 + tanh(u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
//   gelu    gelu_gradient    bias_gelu
//   shape     rows, columns
//   operands  gelu: x, y (may be x)
//             gelu_gradient: x, d_y, d_x (may be d_y); d_x = d_y gelu'(x)
//             bias_gelu: x, bias ([columns]), pre, y; pre = x + bias (may be x), y = gelu of the
//               stored pre, which the gradient needs
struct Gelu {
  static constexpr std::string_view name = "gelu";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct GeluGradient {
  static constexpr std::string_view name = "gelu_gradient";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct BiasGelu {
  static constexpr std::string_view name = "bias_gelu";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

constexpr double gelu_slope = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;
// The flops of gelu, where an exponential and a division count 1 each.
constexpr std::int64_t gelu_operations = 7;
double gelu(double x);
double gelu_slope_at(double x);

namespace kernels {

// The sigmoid-weighted linear unit (Elfwing, Uchibe and Doya: Sigmoid-weighted linear units, 2017,
// equations 2 and 6):
//   silu(x) = x s,  silu'(x) = s (1 + x (1 - s)),  s = 1 / (1 + exp(-x))
//   silu    silu_gradient
//   shape     rows, columns
//   operands  silu: x, y (may be x)
//             silu_gradient: x, d_y, d_x (may be d_y); d_x = d_y silu'(x)
struct Silu {
  static constexpr std::string_view name = "silu";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct SiluGradient {
  static constexpr std::string_view name = "silu_gradient";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// y = max(x, 0), element by element; a NaN stays a NaN.
//   shape     rows, columns (only their product counts)
//   operands  x, y (may be x)
struct Relu {
  static constexpr std::string_view name = "relu";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// dx = dy where the activation y was positive, else 0.
//   shape     rows x columns elements
//   operands  y, dy, dx; dx may be dy
struct ReluGradient {
  static constexpr std::string_view name = "relu_gradient";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// sums[c] = sum over parts of partials[p][c], or sums[c] += that sum. This is the second half of a
// sum over rows whose first half summed parts. The order of the sum depends on the shape alone.
//   shape     columns, parts
//   operands  partials (fp32 [parts][columns]), sums ([columns]; read only when accumulating)
struct SumParts {
  static constexpr std::string_view name = "sum_parts";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "columns parts";
    Size columns = 1;
    Size parts = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "accumulate";
    bool accumulate = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gated linear unit whose gate is a SiLU (Shazeer: GLU variants improve transformer, 2020,
// equation 6; biases are added by the GEMM):
//   swiglu(gate, up) = silu(gate) up,  silu(z) = z s,  s = 1 / (1 + exp(-z))
//   swiglu    swiglu_gradient
//   shape     rows; columns = F, width of the result
//   operands  swiglu: x ([rows][2 F], in each row gate, then up), y [rows][F]
//             swiglu_gradient: x, d_y [rows][F], d_x ([rows][2 F], may be x)
//               d_gate = d_y up s (1 + gate (1 - s)),  d_up = d_y gate s
struct Swiglu {
  static constexpr std::string_view name = "swiglu";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct SwigluGradient {
  static constexpr std::string_view name = "swiglu_gradient";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> pointwise_kernels();

}  // namespace stepgate
