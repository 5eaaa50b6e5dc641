// SPDX-License-Identifier: MIT
#include "plan/compose/build_elementwise.h"

#include <array>
#include <string>
#include <utility>

#include "kernels/kernels.h"
#include "plan/compose/model_ends.h"
#include "support/require.h"

namespace stepgate {
namespace {

constexpr std::int64_t fields_of_a_record = 6;

// In turns, so that numbers stay as large as they were, exactly, and a kernel that did nothing
// shows.
constexpr std::array factors = {2.0, 0.5};

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
    const int last_reader = static_cast<int>(builder_.plan().operations.size());
    builder_.launch<kernels::Ingest>(
        "ingest the batch", {knobs_.batch.size, knobs_.model.hidden, sample_bytes / word_bytes},
        {builder_.whole(batch), builder_.whole(features_), builder_.whole(labels_)});
    scale("lay the features out", {features_, 1}, {records_, fields_}, 1, 1);
    for (std::int64_t index = 0; index < knobs_.model.kernels; ++index) scale_records(index);
    scale("take the result out", {records_, fields_}, {result_, 1}, 1, 1);
    for (std::int64_t index = 0; index < knobs_.model.extra_copies; ++index) copy_result(index);
    builder_.launch<kernels::SquareSums>(
        "square the result", {.columns = elements_, .depth = pieces_},
        {builder_.whole(result_), builder_.whole(ends_.row_losses)});
    report_loss(builder_, ends_, pieces_);
    return {.loss = ends_.loss, .last_reader = last_reader};
  }

 private:
  // A buffer with one element in each record of so many fields.
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
        name, {.rows = knobs_.batch.size, .columns = knobs_.model.hidden, .depth = stride},
        {builder_.whole(from.buffer), builder_.whole(to.buffer)},
        {.factor = factor, .fields_from = from.fields, .fields_to = to.fields});
  }

  // From here on `records_` is what has been scaled last.
  void scale_records(std::int64_t index) {
    scale("scale " + std::to_string(index), {records_, fields_}, {scaled_, fields_},
          knobs_.model.stride, factors[static_cast<std::size_t>(index) % factors.size()]);
    std::swap(records_, scaled_);
  }

  // Each copy is the result of the next one, so that the loss shows one that is missing.
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

}  // namespace

ModelParts build_elementwise(StepBuilder& builder, const Knobs& knobs, int batch,
                             std::int64_t sample_bytes) {
  return Elementwise(builder, knobs).build(batch, sample_bytes);
}

}  // namespace stepgate
