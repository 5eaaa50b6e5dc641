// SPDX-License-Identifier: MIT
// GEMMs that cuBLASLt computes. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// GEMM, row-major: C[M,N] = op(A) op(B), or C += op(A) op(B).
//   shape     rows = M; columns = N; depth = K; groups = number of such GEMMs, each operand's
//             matrices one after another
//   operands  a ([M][K], or [K][M] when transposed), b ([K][N], or [N][K]), c ([M][N])
// c is read only when accumulating. A GEMM launches blocks for as many multiprocessors as it may
// use. Where another kernel holds some of these, the remaining blocks run after the others have
// ended, and the GEMM takes up to twice as long. In CUDA builds operands must be aligned to 16
// bytes.
struct Matmul {
  static constexpr std::string_view name = "matmul";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "rows columns depth groups";
    Size rows = 1;
    Size columns = 1;
    Size depth = 1;
    Size groups = 1;  // number of such GEMMs

    bool operator==(const Sizes&) const = default;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names =
        "transpose_a transpose_b accumulate spare_multiprocessors";
    bool transpose_a = false;
    bool transpose_b = false;
    bool accumulate = false;
    int spare_multiprocessors = 0;  // multiprocessors left to concurrent kernels
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// A linear layer, row-major, with its weight as PyTorch stores it: y = x W^T + bias.
//   shape     rows = samples M; columns = outputs N; depth = inputs K
//   operands  x ([M][K]), weight ([N][K]), bias ([N]), y ([M][N])
// In CUDA builds operands must be aligned to 16 bytes.
struct Linear {
  static constexpr std::string_view name = "linear";
  using Shape = Matmul::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// A linear layer and the gelu behind it in one GEMM: up = x W^T + bias, y = gelu(up), by the tanh
// approximation that pointwise.h has. y is computed from the sum before up is rounded.
//   shape     as Linear; columns and depth must be multiples of 8
//   operands  x ([M][K]), weight ([N][K]), bias ([N]), up ([M][N], which the gradient needs), y
struct LinearGelu {
  static constexpr std::string_view name = "linear_gelu";
  using Shape = Matmul::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradient of what a gelu reads, of the linear layer behind it: d_up = (d_y W) gelu'(up), where
// the product is not rounded.
//   shape     rows = samples M; columns = inputs N of the layer; depth = outputs K; the last two
//             must be multiples of 8
//   operands  d_y ([M][K]), weight ([K][N]), up ([M][N]), d_up ([M][N])
struct MatmulGeluGradient {
  static constexpr std::string_view name = "matmul_gelu_gradient";
  using Shape = Matmul::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// A GEMM of factors in fp8 (fp8_numbers.h), row-major: C = s A B^T, or C += s A B^T. s is the
// product of the factors' inverse scales. B is e4m3. A is e4m3 too, or e5m2 for a gradient. Tensor
// cores add in fp32; for gradients, sums of tensor cores are added up more exactly, as
// TransformerEngine does by default (use_split_accumulator). In CUDA builds operands, the scales
// too, must be aligned to 16 bytes.
//   shape     as Linear; all must be multiples of 16
//   operands  a (bytes [M][K]), b (bytes [N][K]), a_inverse_scale (fp32 [1]), b_inverse_scale
//             (fp32 [1]), c ([M][N])
struct MatmulFp8 {
  static constexpr std::string_view name = "matmul_fp8";
  using Shape = Matmul::Shape;
  struct Attributes {
    static constexpr std::string_view names = "gradient accumulate spare_multiprocessors";
    bool gradient = false;
    bool accumulate = false;
    int spare_multiprocessors = 0;  // as Matmul's
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// A linear layer of factors in fp8: y = s x W^T + bias, as matmul_fp8 without a gradient.
//   shape     as Linear; all must be multiples of 16
//   operands  x (bytes [M][K]), weight (bytes [N][K]), x_inverse_scale (fp32 [1]),
//             weight_inverse_scale (fp32 [1]), bias ([N]), y ([M][N])
struct LinearFp8 {
  static constexpr std::string_view name = "linear_fp8";
  using Shape = Matmul::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The products a b^T and a^T b.
inline constexpr kernels::Matmul::Attributes by_transposed{.transpose_b = true};
inline constexpr kernels::Matmul::Attributes transposed_by{.transpose_a = true};

std::vector<Kernel> gemm_kernels();

}  // namespace stepgate
