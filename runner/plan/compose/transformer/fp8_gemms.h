// SPDX-License-Identifier: MIT
// The GEMMs of a transformer's blocks with factors in fp8 (model.fp8): each factor is scaled as a
// whole, by its own largest number or by those of earlier steps, and written in e4m3, or in e5m2
// where it is a gradient. A GEMM in fp8 sums along the rows of both factors, so that each tensor is
// written as it is and transposed. For the backward pass a block keeps the transposed inputs of its
// GEMMs in 8 bits, in place of the 16-bit inputs that nothing else reads.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "plan/compose/step_builder.h"
#include "plan/compose/transformer/transformer_shape.h"

namespace stepgate {

class Fp8Gemms {
 public:
  // Adds the buffers. Blocks of the same place, a layer's index modulo `places`, share those that
  // are kept for the backward pass.
  Fp8Gemms(StepBuilder&, const TransformerShape&, const ParameterTable&, ModelFp8,
           std::int64_t places);

  // Below, a GEMM is named by the tensor of its weight, and `name` begins the names of operations.

  // Writes the weights of a block in fp8. They stay so until the update.
  void quantize_weights(const std::string& name, const ParameterTable&, std::int64_t layer,
                        int weights);
  // Writes the input of a GEMM, [rows][inputs], for one multiplication and for the weight gradient.
  void quantize_input(const std::string& name, std::size_t tensor, int in);
  // Multiplies the input written last; `bias` is nullptr where the GEMM adds none.
  void multiply(const std::string& name, std::size_t tensor, int out, const BufferUse* bias);
  // Writes the gradient of a GEMM's result, [rows][outputs], for the two launches after it.
  void quantize_gradient(const std::string& name, std::size_t tensor, int d_out);
  void weight_gradient(const std::string& name, std::size_t tensor, const BufferUse& gradient,
                       bool accumulate);
  void input_gradient(const std::string& name, std::size_t tensor, int d_in);
  // Moves the maxima of all tensors on, where scales are delayed.
  void end_step();

 private:
  struct Gemm {
    std::string name;  // of the weight
    std::int64_t index = 0, inputs = 0, outputs = 0;
    std::int64_t weight = 0;   // its first byte among the weights in fp8
    int transposed_input = 0;  // the buffer kept for the backward pass
  };
  enum class Factor { input, weight, gradient };
  static constexpr std::int64_t factors = 3;

  const Gemm& gemm(std::size_t tensor) const { return gemms_.at(tensor); }
  StepBuilder::Operand inverse_scale(const Gemm& gemm, Factor factor) const;
  void quantize(const std::string& name, const Gemm&, Factor, MatrixShape,
                const StepBuilder::Operand& x, const StepBuilder::Operand& out,
                const StepBuilder::Operand& transposed);

  StepBuilder& builder_;
  std::int64_t rows_;
  bool is_delayed_;
  std::map<std::size_t, Gemm> gemms_;  // by the tensor of the weight
  int weights_ = 0, transposed_weights_ = 0;
  int matrix_ = 0;               // the input or the gradient written last
  int transposed_gradient_ = 0;  // the gradient written last
  int inverse_scales_ = 0;       // one for each factor of each GEMM
  int maxima_ = 0;               // of one tensor in parts, or delayed, of all tensors
};

}  // namespace stepgate
