// SPDX-License-Identifier: MIT
#include "plan/compose/build_model.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/require.h"
#include "kernels/kernels.h"
#include "plan/compose/model_ends.h"

namespace stepgate {
namespace {

constexpr std::int64_t fields_of_a_record = 6;

// The factors alternate, so that numbers keep their magnitude exactly, and a kernel that does
// nothing changes the loss.
constexpr std::array factors = {2.0, 0.5};

// The operations of model.kind = "elementwise": kernels that scale every element of the batch's
// features, in the layout and order that the knobs request. The kernel's cost model accounts for
// the bandwidth that this wastes.
class Elementwise {
 public:
  Elementwise(StepBuilder& builder, const Knobs& knobs)
      : builder_(builder),
        knobs_(knobs),
        elements_(knobs.batch.size * knobs.model.hidden),
        pieces_(square_sum_pieces(elements_)),
        fields_(knobs.model.layout == Layout::records ? fields_of_a_record : 1) {
    require(elements_ % knobs.model.stride == 0, "the stride divides the elements");
    ends_ = add_ends(builder_, pieces_);
    labels_ = add("labels", knobs.batch.size * word_bytes);
    features_ = add("features", field_bytes());
    records_ = add("records", field_bytes() * fields_);
    scaled_ = knobs.model.inplace ? records_ : add("scaled records", field_bytes() * fields_);
    result_ = add("result", field_bytes());
    if (knobs.model.extra_copies > 0) copy_ = add("copy of the result", field_bytes());
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    builder_.enter(Phase::forward);
    builder_.launch<kernels::Ingest>(
        "ingest the batch", {knobs_.batch.size, knobs_.model.hidden, sample_bytes / word_bytes},
        {builder_.whole(batch), builder_.whole(features_), builder_.whole(labels_)});
    scale("lay the features out", {features_, 1}, {records_, fields_}, 1, 1);
    for (std::int64_t index = 0; index < knobs_.model.kernels; ++index) scale_records(index);
    scale("take the result out", {records_, fields_}, {result_, 1}, 1, 1);
    for (std::int64_t index = 0; index < knobs_.model.extra_copies; ++index) copy_result(index);
    builder_.launch<kernels::SquareSums>(
        "square the result", {.numbers = elements_, .pieces = pieces_},
        {builder_.whole(result_), builder_.whole(ends_.row_losses)});
    report_loss(builder_, ends_, pieces_);
    return {.loss = ends_.loss};
  }

 private:
  // A buffer that holds one element in each record of `fields` fields.
  struct Records {
    int buffer = 0;
    std::int64_t fields = 1;
  };

  std::int64_t field_bytes() const { return elements_ * bytes_of(knobs_.model.dtype); }

  int add(const std::string& name, std::int64_t bytes) {
    return builder_.add({.name = name, .purpose = Purpose::activations, .bytes = bytes});
  }

  void scale(const std::string& name, Records from, Records to, std::int64_t stride,
             double factor) {
    builder_.launch<kernels::StridedScale>(
        name, {.rows = knobs_.batch.size, .columns = knobs_.model.hidden, .stride = stride},
        {builder_.whole(from.buffer), builder_.whole(to.buffer)},
        {.factor = factor, .fields_from = from.fields, .fields_to = to.fields});
  }

  // Scales the records; afterwards `records_` is the buffer with the result.
  void scale_records(std::int64_t index) {
    scale("scale " + std::to_string(index), {records_, fields_}, {scaled_, fields_},
          knobs_.model.stride, factors[static_cast<std::size_t>(index) % factors.size()]);
    std::swap(records_, scaled_);
  }

  // Each copy reads the previous one, so that a missing copy changes the loss.
  void copy_result(std::int64_t index) {
    builder_.act("copy the result " + std::to_string(index),
                 CopyBytes{builder_.whole(copy_), builder_.whole(result_)});
    std::swap(result_, copy_);
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  std::int64_t elements_;
  std::int64_t pieces_;
  std::int64_t fields_;
  ModelEnds ends_;
  int labels_ = 0;
  int features_ = 0;
  int records_ = 0;
  int scaled_ = 0;
  int result_ = 0;
  int copy_ = 0;
};

// Builds the elementwise model. Its loss is the mean square of the scaled batch, which is
// independent of layout, order and copies.
ModelParts build_elementwise(StepBuilder& builder, const Knobs& knobs, int batch,
                             std::int64_t sample_bytes) {
  return Elementwise(builder, knobs).build(batch, sample_bytes);
}

// Limit of the features of models that only spin or wait for loads. They have no features of their
// own, and this many let the batch be read at full speed.
constexpr std::int64_t most_plain_features = 256;

// Builds kernels of a given duration on the device's clock. The "loss" is the mean of the batch, so
// a batch that arrived late or was overwritten changes it.
ModelParts build_spin(StepBuilder& builder, const Knobs& knobs, int batch,
                      std::int64_t sample_bytes) {
  const std::int64_t words = sample_bytes / word_bytes;
  const std::int64_t features = std::min<std::int64_t>(words - 1, most_plain_features);
  const std::int64_t rows = knobs.batch.size;
  const ModelEnds ends = add_ends(builder, rows * features);
  const int labels =
      builder.add({.name = "labels", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  const int word =
      builder.add({.name = "spin word", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  builder.enter(Phase::forward);
  builder.launch_as<kernels::Ingest>(
      DType::fp32, "ingest the batch", {rows, features, words},
      {builder.whole(batch), builder.whole(ends.row_losses), builder.whole(labels)});
  for (std::int64_t index = 0; index < knobs.model.kernels; ++index) {
    builder.launch_as<kernels::Spin>(DType::fp32, "spin " + std::to_string(index), {},
                                     {builder.whole(word)},
                                     {.microseconds = static_cast<double>(knobs.model.kernel_us)});
  }
  report_loss(builder, ends, rows * features);
  return {.loss = ends.loss};
}

// Builds dependent loads through the lines of a footprint. The loss depends on the last line, so
// that a missing load changes it.
ModelParts build_chase(StepBuilder& builder, const Knobs& knobs, int batch,
                       std::int64_t sample_bytes) {
  const std::int64_t rows = knobs.batch.size;
  const std::int64_t words = sample_bytes / word_bytes;
  const std::int64_t features = std::min<std::int64_t>(words - 1, most_plain_features);
  const std::int64_t losses = rows * features + 1;
  const ModelEnds ends = add_ends(builder, losses);
  const int labels =
      builder.add({.name = "labels", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  const int chain = builder.add({.name = "chain",
                                 .purpose = Purpose::weights,
                                 .bytes = knobs.model.footprint_bytes,
                                 .content = Content::chain});
  const int position =
      builder.add({.name = "position", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  builder.plan().param_bytes = knobs.model.footprint_bytes;
  builder.enter(Phase::forward);
  builder.launch_as<kernels::Ingest>(
      DType::fp32, "ingest the batch", {rows, features, words},
      {builder.whole(batch), StepBuilder::Operand::from(ends.row_losses, 0),
       builder.whole(labels)});
  builder.launch_as<kernels::Chase>(DType::fp32, "follow the chain",
                                    {.lines = knobs.model.footprint_bytes / chase_line_bytes},
                                    {builder.whole(chain), builder.whole(position),
                                     StepBuilder::Operand::from(ends.row_losses, losses - 1)},
                                    {.accesses = knobs.model.accesses});
  report_loss(builder, ends, losses);
  return {.loss = ends.loss};
}

}  // namespace

std::int64_t mean_tokens_of_a_sample(const Knobs& knobs) {
  const std::vector<std::int64_t>& lengths = knobs.batch.lengths;
  if (lengths.empty()) return knobs.model.seq;
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) / std::ssize(lengths);
}

std::int64_t model_sample_bytes(const Knobs& knobs) {
  const ModelKnobs& model = knobs.model;
  switch (model.kind) {
    case ModelKind::mlp:
    case ModelKind::elementwise:  // its features and a label
      return (model.hidden + 1) * word_bytes;
    case ModelKind::transformer:  // its tokens, and the token after the last
      return ((knobs.batch.packed ? mean_tokens_of_a_sample(knobs) : model.seq) + 1) * word_bytes;
    case ModelKind::recommender:  // an index into each table, and a label
      return (model.tables + 1) * word_bytes;
    case ModelKind::resnet:  // its pixels, and a label
    case ModelKind::unet:    // the label is its time
      return (model.image_channels * model.image * model.image + 1) * word_bytes;
    case ModelKind::spin:
    case ModelKind::chase:
      return 2 * word_bytes;
  }
  require(false, "every model kind reads samples");
  return 0;
}

ModelParts build_model(StepBuilder& builder, const Knobs& knobs, int batch,
                       std::int64_t sample_bytes) {
  switch (knobs.model.kind) {
    case ModelKind::mlp:
    case ModelKind::recommender:
      return build_mlp(builder, knobs, batch, sample_bytes);
    case ModelKind::transformer:
      return build_transformer(builder, knobs, batch, sample_bytes);
    case ModelKind::resnet:
      return build_resnet(builder, knobs, batch, sample_bytes);
    case ModelKind::unet:
      return build_unet(builder, knobs, batch, sample_bytes);
    case ModelKind::spin:
      return build_spin(builder, knobs, batch, sample_bytes);
    case ModelKind::elementwise:
      return build_elementwise(builder, knobs, batch, sample_bytes);
    case ModelKind::chase:
      return build_chase(builder, knobs, batch, sample_bytes);
  }
  require(false, "every model kind is built");
  return {};
}

}  // namespace stepgate
