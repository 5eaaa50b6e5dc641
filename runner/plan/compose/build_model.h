// SPDX-License-Identifier: MIT
// The operations of the model: forward, loss, backward and optimizer. build_input.h says how the
// batch arrives.
#pragma once

#include <optional>
#include <vector>

#include "plan/compose/ranks/buckets.h"
#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// Bytes of one sample that the model reads, on average: its features as fp32 and a label, its
// tokens, or its indices and a label.
std::int64_t model_sample_bytes(const Knobs&);

// Tokens of a transformer's sample on average, without padding.
std::int64_t mean_tokens_of_a_sample(const Knobs&);

// Weights and gradients of a model that learns: one flat buffer each, and their tensors in the
// order of the forward pass.
struct LearnedParts {
  int weights = 0;    // buffer
  int gradients = 0;  // buffer
  std::vector<FlatTensor> tensors;
  std::int64_t elements = 0;  // of each of these buffers
};

// Buffers and operations of the model that the rest of the step uses.
struct ModelParts {
  int loss = 0;     // buffer: the step's loss, one fp32
  int weights = 0;  // of a model that learns: buffer of all parameters
  // Set for models that learn, where the update reads all gradients together.
  std::optional<LearnedParts> learned = {};
};

// Appends the model's operations, which read the batch from buffer `batch`, and sets the plan's
// facts about the model.
ModelParts build_model(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

// Builds a stack of square layers: a = relu(a W^T + b), the last without relu, followed by a
// softmax cross-entropy. A recommender has embedding tables below the layers.
ModelParts build_mlp(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

// Builds a GPT: token and position embeddings, blocks of attention and an MLP, a norm and an untied
// head (Radford et al.: Language models are unsupervised multitask learners, 2019). AdamW, Lion
// or SGD with momentum trains it.
ModelParts build_transformer(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

// Builds a ResNet: a convolution, bottleneck blocks with batch norms, a mean over the pixels and a
// linear head (resnet/resnet_shape.h).
ModelParts build_resnet(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

// Builds a UNet that predicts the noise of noisy images: residual blocks with group norms and skips
// between equal levels, and attention (unet/unet_shape.h).
ModelParts build_unet(StepBuilder&, const Knobs&, int batch, std::int64_t sample_bytes);

}  // namespace stepgate
