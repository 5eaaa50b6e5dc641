// SPDX-License-Identifier: MIT
// The step of a ResNet (resnet_shape.h). Convolutions of single pixels with stride 1 are GEMMs; a
// batch norm is two launches of sums and one that applies it, with what follows it. Gradients
// overwrite activations: that of a convolution's result the result, and that of what a convolution
// read what it read, once the gradient of its weights is known.
//
// With checkpoints (memory.checkpoint), the blocks of a stage form segments. A segment keeps its
// input, and each of its blocks the statistics of its norms and its mask; all other buffers of a
// block are shared by the segments. Before its backward pass, a segment convolves again and applies
// its norms with the statistics that it kept: nothing is summed again, and the running statistics
// stay as they are.
//
// With checkpoints of norms, convolutions keep their results, and the norms behind them are applied
// again before the next convolution's weight gradient, in one buffer. So is the norm that ends a
// block whose input is kept: that of every second block of a stage but the last.
//
// Without fusion (launch.fuse), a norm, an addition, a relu and the stem's pool are launches of
// their own. A relu's gradient then reads the relu's result, which no gradient may overwrite, and
// no mask is kept.
#include "plan/compose/build_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "plan/compose/decode_batch.h"
#include "plan/compose/layout_copies.h"
#include "plan/compose/model_ends.h"
#include "plan/compose/resnet/resnet_shape.h"
#include "plan/compose/update/build_update.h"

namespace stepgate {
namespace {

// The defaults of torch.nn.BatchNorm2d.
constexpr double batch_norm_epsilon = 1e-5;
constexpr double batch_norm_momentum = 0.1;

using Operand = StepBuilder::Operand;

// Buffers of a normed convolution that the forward pass writes and the backward pass reads.
struct ConvolutionBuffers {
  int out = 0;         // of the convolution
  int statistics = 0;  // of its batch norm
};

// Buffers of a block; `down` is unused where the shortcut is the block's input.
struct ResidualBlockBuffers {
  ConvolutionBuffers first, second, third, down;
  int normed1 = 0;  // what the second convolution reads
  int normed2 = 0;
  int out = 0;
  int mask = 0;  // where the block's last relu passes its input; unused without fusion
};

// Buffers that the blocks of a stage use in turns where nothing is fused.
struct UnfusedStageBuffers {
  int normed = 0;           // what a relu reads, unless it works in place
  int shortcut = 0;         // a shortcut's norm
  int gradient = 0;         // of the stream between blocks
  int normed_gradient = 0;  // of what the second and the third convolution read
};

class Resnet {
 public:
  Resnet(StepBuilder& builder, const Knobs& knobs)
      : builder_(builder), knobs_(knobs), parameters_(knobs) {
    add_learned_buffers(builder_, knobs_, parameters_, update_);
    add_inputs_and_ends();
    place_blocks();
    add_activations();
    if (is_unfused()) add_unfused_buffers();
    add_temporaries();
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    for (part_ = 0; part_ < knobs_.batch.accumulate; ++part_) {
      builder_.enter(Phase::forward);
      ingest(batch, sample_bytes / word_bytes);
      forward();
      builder_.enter(Phase::backward);
      backward();
    }
    builder_.enter(Phase::forward);
    report_loss(builder_, ends_, knobs_.batch.size);
    builder_.enter(Phase::optimizer);
    build_update(builder_, knobs_, parameters_, update_);
    return {.loss = ends_.loss,
            .weights = update_.weights,
            .learned = LearnedParts{update_.weights, update_.gradients, parameters_.places(),
                                    parameters_.elements()}};
  }

 private:
  // The functions below add buffers.

  // The samples of a part of the batch. All parts use the same activations.
  std::int64_t samples() const { return knobs_.batch.size / knobs_.batch.accumulate; }
  std::int64_t element_bytes() const { return bytes_of(knobs_.model.dtype); }
  static CheckedSize input_pixels(const NormedConvolution& made) {
    return checked(made.shape).input_pixels();
  }
  static CheckedSize output_pixels(const NormedConvolution& made) {
    return checked(made.shape).output_pixels();
  }
  static CheckedSize outputs(const NormedConvolution& made) {
    return output_pixels(made) * made.shape.outputs;
  }

  int add(const std::string& name, CheckedSize bytes, Purpose purpose = Purpose::activations) {
    return builder_.add({.name = name, .purpose = purpose, .bytes = bytes});
  }
  // Adds a buffer of numbers in the model's storage.
  int numbers(const std::string& name, CheckedSize elements) {
    return add(name, elements * element_bytes());
  }

  void add_inputs_and_ends() {
    const CheckedSize rows = samples();
    images_ = numbers("images", rows * features());
    labels_ = add("labels", rows * word_bytes);
    ends_ = add_ends(builder_, knobs_.batch.size);
    update_.counter = ends_.counter;
    std::vector<ContentPart> running;
    for (const NormedConvolution* made : parameters_.convolutions()) {
      running.push_back({.elements = made->shape.outputs});               // means
      running.push_back({.elements = made->shape.outputs, .centre = 1});  // variances
    }
    running_statistics_ = builder_.add({.name = "running statistics",
                                        .purpose = Purpose::bookkeeping,
                                        .bytes = parameters_.running_elements() * word_bytes,
                                        .content = Content::weights,
                                        .parts = std::move(running)});
  }

  int add_statistics(const NormedConvolution& made) {
    return add(made.name + " statistics",
               CheckedSize(made.shape.outputs) * batch_statistics_vectors * word_bytes);
  }

  bool has_checkpoints() const { return knobs_.memory.checkpoint_every > 0; }
  bool recomputes_norms() const {
    return knobs_.memory.checkpoint_every == MemoryKnobs::checkpoint_norms;
  }

  // Numbers the blocks of each segment. A segment ends with its stage at the latest.
  void place_blocks() {
    const std::int64_t every = recomputes_norms() ? 2 : knobs_.memory.checkpoint_every;
    std::int64_t place = 0;
    for (const ResidualBlock& block : parameters_.blocks()) {
      const bool begins = block.down || ++place >= every;
      places_.push_back(place = begins ? 0 : place);
    }
  }
  bool ends_segment(std::size_t block) const {
    return block + 1 == places_.size() || places_[block + 1] == 0;
  }

  // Returns the buffer of a block for so many numbers. With checkpoints it is the same in all
  // blocks at this place of a segment, and as large as the largest of them needs.
  int inside(std::size_t index, const std::string& name,
             CheckedSize (*elements)(const ResidualBlock&)) {
    const std::vector<ResidualBlock>& blocks = parameters_.blocks();
    const bool is_shared = has_checkpoints() || (recomputes_norms() && name.empty());
    if (!is_shared) return numbers(blocks[index].name + name, elements(blocks[index]));
    const std::string shared = "recomputed " + std::to_string(places_[index]) + name;
    const auto [found, is_new] = shared_.try_emplace(shared, 0);
    if (is_new) {
      CheckedSize most;
      for (std::size_t other = 0; other < blocks.size(); ++other)
        if (places_[other] == places_[index]) most = std::max(most, elements(blocks[other]));
      found->second = numbers(shared, most);
    }
    return found->second;
  }

  // Returns the buffer of a norm inside a block.
  int normed(std::size_t index, const std::string& name,
             CheckedSize (*elements)(const ResidualBlock&)) {
    if (!recomputes_norms()) return inside(index, name, elements);
    const auto [found, is_new] = shared_.try_emplace("recomputed norm", 0);
    if (is_new) {
      CheckedSize most;
      for (const ResidualBlock& block : parameters_.blocks())
        most = std::max({most, outputs(block.first), outputs(block.second)});
      found->second = numbers(found->first, most);
    }
    return found->second;
  }

  void add_activations() {
    const NormedConvolution& stem = parameters_.stem();
    stem_ = {.out = numbers(stem.name, outputs(stem)), .statistics = add_statistics(stem)};
    stem_out_ = numbers("stem", pooled_pixels() * stem.shape.outputs);
    if (parameters_.pools()) {
      which_ = add("stem choices", pooled_pixels() * stem.shape.outputs);
      if (!is_unfused()) chosen_ = numbers("stem chosen", pooled_pixels() * stem.shape.outputs);
    }
    for (std::size_t index = 0; index < parameters_.blocks().size(); ++index) add_block(index);
    pooled_ = numbers("pooled", CheckedSize(samples()) * parameters_.features());
    logits_ = numbers("logits", CheckedSize(samples()) * knobs_.model.classes);
  }

  void add_block(std::size_t index) {
    using Block = ResidualBlock;
    const Block& block = parameters_.blocks()[index];
    ResidualBlockBuffers made;
    made.first = {inside(index, ".conv1", [](const Block& b) { return outputs(b.first); }),
                  add_statistics(block.first)};
    made.second = {inside(index, ".conv2", [](const Block& b) { return outputs(b.second); }),
                   add_statistics(block.second)};
    made.third = {inside(index, ".conv3", [](const Block& b) { return outputs(b.third); }),
                  add_statistics(block.third)};
    if (block.down)
      made.down = {inside(index, ".downsample.0",
                          [](const Block& b) { return b.down ? outputs(*b.down) : CheckedSize(); }),
                   add_statistics(*block.down)};
    made.normed1 = normed(index, ".bn1", [](const Block& b) { return outputs(b.first); });
    made.normed2 = normed(index, ".bn2", [](const Block& b) { return outputs(b.second); });
    made.out = ends_segment(index)
                   ? numbers(block.name, outputs(block.third))
                   : inside(index, "", [](const Block& b) { return outputs(b.third); });
    if (!is_unfused())
      made.mask = add(block.name + " mask",
                      output_pixels(block.third) * mask_bytes_of_row(block.third.shape.outputs));
    blocks_.push_back(made);
  }

  bool is_unfused() const { return knobs_.launch.fuse == Fuse::none; }

  void add_unfused_buffers() {
    stem_gradient_ = numbers("stem gradient", outputs(parameters_.stem()));
    if (parameters_.pools()) unpooled_ = numbers("unpooled", outputs(parameters_.stem()));
    for (const ResidualBlock& block : parameters_.blocks()) {
      if (block.down) {
        const std::string stage = block.name.substr(0, block.name.find('.'));
        const CheckedSize out = outputs(block.third);
        UnfusedStageBuffers made;
        if (!knobs_.model.inplace) made.normed = numbers(stage + " normed", out);
        made.shortcut = numbers(stage + " shortcut", out);
        made.gradient = numbers(stage + " gradient", out);
        made.normed_gradient = numbers(stage + " normed gradient",
                                       std::max(outputs(block.first), outputs(block.second)));
        unfused_.push_back(made);
      }
      stages_.push_back(unfused_.size() - 1);
    }
  }
  const UnfusedStageBuffers& unfused(std::size_t block) const { return unfused_[stages_[block]]; }

  void add_temporaries() {
    CheckedSize partials, channels, largest;
    for (const NormedConvolution* made : parameters_.convolutions()) {
      partials = std::max(partials, 2 * CheckedSize(parts_of(*made)) * made->shape.outputs);
      channels = std::max(channels, CheckedSize(made->shape.outputs));
      largest = std::max(largest, outputs(*made));
    }
    if (knobs_.model.layout_copies) nchw_ = numbers("NCHW", largest);
    partials_ = add("norm partials", partials * word_bytes);
    means_ = add("gradient means", 2 * channels * word_bytes);
  }

  std::int64_t features() const {
    const ConvolutionShape& stem = parameters_.stem().shape;
    return stem.height * stem.width * stem.channels;
  }
  CheckedSize pooled_pixels() const { return input_pixels(parameters_.blocks().front().first); }
  static std::int64_t parts_of(const NormedConvolution& made) {
    return batch_norm_parts(output_pixels(made));
  }

  // The functions below append operations.

  bool zeroes() const { return knobs_.memory.zero_grad == ZeroGrad::memset; }
  // Whether gradients of parameters are added to zeros or to those of the parts before, instead of
  // overwriting the old ones.
  bool accumulates() const { return zeroes() || part_ > 0; }

  // A shared buffer may be larger than the operand is.
  Operand whole(int buffer) const {
    return shared_.empty() && !is_unfused() ? builder_.whole(buffer) : from(buffer);
  }
  static Operand from(int buffer) { return Operand::from(buffer, 0); }
  Operand weight(std::size_t tensor) const { return in(update_.weights, tensor); }
  Operand gradient(std::size_t tensor) const { return in(update_.gradients, tensor); }
  Operand in(int flat, std::size_t tensor) const {
    return Operand::from(flat, parameters_.tensors()[tensor].first);
  }

  static MatrixShape pixels(const NormedConvolution& made) {
    return {output_pixels(made), made.shape.outputs};
  }
  static PartsShape parts(const NormedConvolution& made) {
    return {output_pixels(made), made.shape.outputs, parts_of(made)};
  }
  kernels::NormPool::Shape pool() const {
    const ConvolutionShape& stem = parameters_.stem().shape;
    return {stem.images, stem.output_height(), stem.output_width(), stem.outputs};
  }
  static constexpr kernels::NormPool::Attributes pool_attributes{
      .window = pool_window, .stride = pool_stride, .padding = pool_padding};

  // Names tell the part of the batch where there are several.
  std::string prefix() const {
    return knobs_.batch.accumulate == 1 ? "" : "part " + std::to_string(part_) + ": ";
  }
  template <class Kernel>
  void launch(const std::string& name, const typename Kernel::Shape& shape,
              const std::vector<Operand>& operands,
              const typename Kernel::Attributes& attributes = {}) {
    builder_.launch<Kernel>(named(name), shape, operands, attributes);
  }
  std::string named(const std::string& name) const {
    return prefix() + (builder_.computes_again() ? "again: " : "") + name;
  }

  // The numbers of an operand with so many for each sample.
  Operand of_part(int buffer, std::int64_t each) const {
    return Operand::from(buffer, part_ * samples() * each);
  }

  void ingest(int batch, std::int64_t words) {
    launch_ingest_of_images(
        builder_, knobs_.batch.format,
        {.samples = samples(), .features = features(), .words = words}, of_part(batch, words),
        {.images = images_, .labels = labels_, .classes = knobs_.model.classes}, prefix());
  }

  void convolve(const NormedConvolution& made, int x, int y) {
    const ConvolutionShape& s = made.shape;
    if (made.is_gemm())
      launch<kernels::Matmul>(made.name, {s.output_pixels(), s.outputs, s.channels},
                              {whole(x), weight(made.weight), whole(y)}, {.transpose_b = true});
    else
      launch<kernels::Convolution>(made.name, s, {whole(x), weight(made.weight), whole(y)});
    change_layouts(made, made.name, y);
  }

  // Copies a convolution's result, or its gradient, to NCHW and back.
  void change_layouts(const NormedConvolution& made, const std::string& name, int image) {
    if (knobs_.model.layout_copies)
      copy_layouts(builder_, named(name), made.shape, from(image), from(nchw_));
  }

  // Convolves x and computes the statistics of the result, unless they are kept.
  void convolve_and_sum(const NormedConvolution& made, int x, const ConvolutionBuffers& buffers) {
    convolve(made, x, buffers.out);
    if (builder_.computes_again()) return;
    launch<kernels::BatchNormSums>(made.name + ": sums", parts(made),
                                   {whole(buffers.out), from(partials_)});
    launch<kernels::BatchNormFinish>(
        made.name + ": statistics", parts(made),
        {from(buffers.out), from(partials_), weight(made.norm), weight(made.norm + 1),
         Operand::from(running_statistics_, made.running),
         Operand::from(running_statistics_, made.running + made.shape.outputs),
         whole(buffers.statistics)},
        {.epsilon = batch_norm_epsilon, .momentum = batch_norm_momentum});
  }

  void apply(const NormedConvolution& made, const ConvolutionBuffers& buffers, int y, bool relu) {
    launch<kernels::BatchNormApply>(made.name + ": norm", pixels(made),
                                    {whole(buffers.out), whole(buffers.statistics), whole(y)},
                                    {.relu = relu});
  }
  void relu(const NormedConvolution& made, int x, int y) {
    launch<kernels::Relu>(made.name + ": relu", pixels(made), {whole(x), whole(y)});
  }
  // Replaces the gradient of the relu's result y by that of what the relu read.
  void relu_gradient(const NormedConvolution& made, int y, int gradient) {
    launch<kernels::ReluGradient>(made.name + ": relu gradient", pixels(made),
                                  {whole(y), whole(gradient), whole(gradient)});
  }
  // A relu of the block whose result is y reads this buffer where nothing is fused.
  int before_relu(std::size_t block, int y) const {
    return knobs_.model.inplace ? y : unfused(block).normed;
  }

  void apply_with_relu(const NormedConvolution& made, const ConvolutionBuffers& buffers, int y,
                       std::size_t block) {
    if (!is_unfused()) return apply(made, buffers, y, true);
    const int normed = before_relu(block, y);
    apply(made, buffers, normed, false);
    relu(made, normed, y);
  }

  // Ends a block by three launches, or four where the shortcut has a norm; fusion has one.
  void add_shortcut_unfused(std::size_t index) {
    const ResidualBlock& block = parameters_.blocks()[index];
    const ResidualBlockBuffers& buffers = blocks_[index];
    const int sum = before_relu(index, buffers.out);
    int shortcut = input_of(index);
    apply(block.third, buffers.third, sum, false);
    if (block.down) apply(*block.down, buffers.down, shortcut = unfused(index).shortcut, false);
    launch<kernels::Add>(block.third.name + ": shortcut", pixels(block.third),
                         {whole(sum), whole(shortcut), whole(sum)});
    relu(block.third, sum, buffers.out);
  }

  void forward() {
    forward_stem();
    for (std::size_t block = 0; block < blocks_.size(); ++block) forward_block(block);
    forward_head();
  }

  void backward() {
    if (part_ == 0 && zeroes())
      builder_.act("zero the gradients", FillZero{builder_.whole(update_.gradients)});
    backward_head();
    for (std::size_t block = blocks_.size(); block-- > 0;) {
      if (has_checkpoints() && ends_segment(block)) recompute(block);
      backward_block(block);
    }
    backward_stem();
  }

  void forward_stem() {
    const NormedConvolution& stem = parameters_.stem();
    convolve_and_sum(stem, images_, stem_);
    if (!parameters_.pools()) return apply_with_relu(stem, stem_, stem_out_, 0);
    if (is_unfused()) {
      apply_with_relu(stem, stem_, unpooled_, 0);
      return launch<kernels::MaxPool>(
          "max pool", pool(), {whole(unpooled_), whole(stem_out_), whole(which_)}, pool_attributes);
    }
    launch<kernels::NormPool>(stem.name + ": norm and pool", pool(),
                              {whole(stem_.out), whole(stem_.statistics), whole(stem_out_),
                               whole(which_), whole(chosen_)},
                              pool_attributes);
  }

  int input_of(std::size_t block) const { return block == 0 ? stem_out_ : blocks_[block - 1].out; }

  void forward_block(std::size_t index) {
    const ResidualBlock& block = parameters_.blocks()[index];
    const ResidualBlockBuffers& buffers = blocks_[index];
    convolve_and_sum(block.first, input_of(index), buffers.first);
    apply_with_relu(block.first, buffers.first, buffers.normed1, index);
    convolve_and_sum(block.second, buffers.normed1, buffers.second);
    apply_with_relu(block.second, buffers.second, buffers.normed2, index);
    convolve_and_sum(block.third, buffers.normed2, buffers.third);
    if (block.down) convolve_and_sum(*block.down, input_of(index), buffers.down);
    if (builder_.computes_again() && ends_segment(index)) return;  // its mask or its output is kept
    norm_and_add_shortcut(index);
  }

  void norm_and_add_shortcut(std::size_t index) {
    const ResidualBlock& block = parameters_.blocks()[index];
    const ResidualBlockBuffers& buffers = blocks_[index];
    if (is_unfused()) return add_shortcut_unfused(index);
    const std::string name = block.third.name + ": norm and shortcut";
    if (!block.down)
      return launch<kernels::BatchNormAddApply>(
          name, pixels(block.third),
          {whole(buffers.third.out), whole(buffers.third.statistics), whole(input_of(index)),
           whole(buffers.out), whole(buffers.mask)});
    launch<kernels::BatchNormTwoApply>(
        name, pixels(block.third),
        {whole(buffers.third.out), whole(buffers.third.statistics), whole(buffers.down.out),
         whole(buffers.down.statistics), whole(buffers.out), whole(buffers.mask)});
  }

  kernels::MeanPool::Shape mean_pool() const {
    const ConvolutionShape& last = parameters_.blocks().back().third.shape;
    return {last.images, last.output_height() * last.output_width(), last.outputs};
  }

  void forward_head() {
    launch<kernels::MeanPool>("mean pool", mean_pool(),
                              {whole(blocks_.back().out), whole(pooled_)});
    launch<kernels::Linear>("fc", {samples(), knobs_.model.classes, parameters_.features()},
                            {whole(pooled_), weight(parameters_.head()),
                             weight(parameters_.head() + 1), whole(logits_)});
    // The gradient of the logits overwrites them.
    launch<kernels::CrossEntropy>(
        "loss", {samples(), knobs_.model.classes},
        {whole(logits_), whole(labels_), whole(logits_), of_part(ends_.row_losses, 1)},
        {.rows_of_mean = knobs_.batch.size});
  }

  void backward_head() {
    const std::int64_t classes = knobs_.model.classes, features = parameters_.features();
    launch<kernels::BiasGradient>("fc: bias gradient", {samples(), classes},
                                  {whole(logits_), gradient(parameters_.head() + 1)},
                                  {.accumulate = accumulates()});
    launch<kernels::Matmul>("fc: weight gradient", {classes, features, samples()},
                            {whole(logits_), whole(pooled_), gradient(parameters_.head())},
                            {.transpose_a = true, .accumulate = accumulates()});
    launch<kernels::Matmul>("fc: input gradient", {samples(), features, classes},
                            {whole(logits_), weight(parameters_.head()), whole(pooled_)});
    gradient_ = output_gradient(blocks_.size() - 1);
    launch<kernels::MeanPoolGradient>("mean pool: gradient", mean_pool(),
                                      {whole(pooled_), whole(gradient_)});
  }

  // Computes the gradients of a norm's parameters from the partial sums.
  void finish_norm_gradient(const NormedConvolution& made) {
    launch<kernels::BatchNormGradientFinish>(
        made.name + ": norm parameters' gradient", parts(made),
        {from(partials_), gradient(made.norm), gradient(made.norm + 1), from(means_)},
        {.accumulate = accumulates()});
  }

  // Replaces the convolution's result by its gradient, from that of its norm.
  void norm_gradient(const NormedConvolution& made, const ConvolutionBuffers& buffers, int d_y,
                     bool relu) {
    launch<kernels::BatchNormGradientApply>(
        made.name + ": norm gradient", pixels(made),
        {whole(d_y), whole(buffers.out), whole(buffers.statistics), from(means_),
         whole(buffers.out)},
        {.relu = relu});
  }

  void sum_and_norm_gradient(const NormedConvolution& made, const ConvolutionBuffers& buffers,
                             int d_y, bool relu) {
    launch<kernels::BatchNormGradientSums>(
        made.name + ": gradient sums", parts(made),
        {whole(d_y), whole(buffers.out), whole(buffers.statistics), from(partials_)},
        {.relu = relu});
    finish_norm_gradient(made);
    norm_gradient(made, buffers, d_y, relu);
  }

  void weight_gradient(const NormedConvolution& made, int x, int d_y) {
    const ConvolutionShape& s = made.shape;
    change_layouts(made, made.name + ": gradient", d_y);
    const std::string name = made.name + ": weight gradient";
    if (made.is_gemm())
      return launch<kernels::Matmul>(name, {s.outputs, s.channels, s.output_pixels()},
                                     {whole(d_y), whole(x), gradient(made.weight)},
                                     {.transpose_a = true, .accumulate = accumulates()});
    launch<kernels::ConvolutionWeightGradient>(
        name, s, {whole(x), whole(d_y), gradient(made.weight)}, {.accumulate = accumulates()});
  }

  // Computes the gradient of the convolution's input; a GEMM may add it to what d_x holds.
  void data_gradient(const NormedConvolution& made, int d_y, int d_x, bool accumulate = false) {
    const ConvolutionShape& s = made.shape;
    const std::string name = made.name + ": input gradient";
    if (made.is_gemm())
      return launch<kernels::Matmul>(name, {s.output_pixels(), s.channels, s.outputs},
                                     {whole(d_y), weight(made.weight), whole(d_x)},
                                     {.accumulate = accumulate});
    launch<kernels::ConvolutionDataGradient>(name, s,
                                             {whole(d_y), weight(made.weight), whole(d_x)});
  }

  // Computes everything again that the backward pass of a segment reads, from the segment's input.
  void recompute(std::size_t last) {
    builder_.again([&] {
      std::size_t block = last - static_cast<std::size_t>(places_[last]);
      while (block <= last) forward_block(block++);
    });
  }

  void norm_again(const NormedConvolution& made, const ConvolutionBuffers& buffers, int y,
                  std::size_t block) {
    if (recomputes_norms()) builder_.again([&] { apply_with_relu(made, buffers, y, block); });
  }
  void input_again(std::size_t index) {
    if (recomputes_norms() && index > 0 && !ends_segment(index - 1))
      builder_.again([&] { norm_and_add_shortcut(index - 1); });
  }

  // The buffer for the gradient of a block's output, or of its input.
  int output_gradient(std::size_t block) const {
    return is_unfused() ? unfused(block).gradient : blocks_[block].out;
  }
  int input_gradient(std::size_t block) const {
    if (block > 0) return output_gradient(block - 1);
    return is_unfused() && !parameters_.pools() ? stem_gradient_ : stem_out_;
  }

  // Replaces the convolution's result by its gradient, from that of its relu's result y in d_y.
  void norm_and_relu_gradient(const NormedConvolution& made, const ConvolutionBuffers& buffers,
                              int y, int d_y) {
    if (is_unfused()) relu_gradient(made, y, d_y);
    sum_and_norm_gradient(made, buffers, d_y, !is_unfused());
  }

  // As above for the end of a block; gradient_ becomes the gradient of both summands.
  void shortcut_gradient(std::size_t index) {
    const NormedConvolution& made = parameters_.blocks()[index].third;
    const ResidualBlockBuffers& buffers = blocks_[index];
    const ConvolutionBuffers& third = buffers.third;
    if (is_unfused()) return norm_and_relu_gradient(made, third, buffers.out, gradient_);
    launch<kernels::BatchNormAddGradientSums>(
        made.name + ": gradient sums", parts(made),
        {whole(gradient_), whole(third.out), whole(third.statistics), whole(buffers.mask),
         whole(gradient_), from(partials_)});
    finish_norm_gradient(made);
    norm_gradient(made, third, gradient_, false);
  }

  // Turns the gradient of the block's output in gradient_ into that of its input.
  void backward_block(std::size_t index) {
    const ResidualBlock& block = parameters_.blocks()[index];
    const auto& [first, second, third, down, normed1, normed2, out, mask] = blocks_[index];
    const int d_normed1 = is_unfused() ? unfused(index).normed_gradient : normed1;
    const int d_normed2 = is_unfused() ? unfused(index).normed_gradient : normed2;
    shortcut_gradient(index);
    norm_again(block.second, second, normed2, index);
    weight_gradient(block.third, normed2, third.out);
    data_gradient(block.third, third.out, d_normed2);
    norm_and_relu_gradient(block.second, second, normed2, d_normed2);
    norm_again(block.first, first, normed1, index);
    weight_gradient(block.second, normed1, second.out);
    data_gradient(block.second, second.out, d_normed1);
    norm_and_relu_gradient(block.first, first, normed1, d_normed1);
    input_again(index);
    weight_gradient(block.first, input_of(index), first.out);
    if (block.down) {
      sum_and_norm_gradient(*block.down, down, gradient_, false);
      weight_gradient(*block.down, input_of(index), down.out);
      gradient_ = input_gradient(index);
      data_gradient(*block.down, down.out, gradient_);
    }
    data_gradient(block.first, first.out, gradient_, true);
  }

  void backward_stem() {
    const NormedConvolution& stem = parameters_.stem();
    if (!parameters_.pools()) {
      norm_and_relu_gradient(stem, stem_, stem_out_, gradient_);
    } else if (is_unfused()) {
      launch<kernels::MaxPoolGradient>("max pool: gradient", pool(),
                                       {whole(gradient_), whole(which_), whole(stem_gradient_)},
                                       pool_attributes);
      norm_and_relu_gradient(stem, stem_, unpooled_, stem_gradient_);
    } else {
      const ConvolutionShape& first = parameters_.blocks().front().first.shape;
      launch<kernels::BatchNormGradientSums>(
          stem.name + ": gradient sums",
          {first.images * first.height * first.width, stem.shape.outputs, parts_of(stem)},
          {whole(gradient_), whole(chosen_), whole(stem_.statistics), from(partials_)},
          {.relu = true});
      finish_norm_gradient(stem);
      launch<kernels::NormPoolGradient>(stem.name + ": norm and pool gradient", pool(),
                                        {whole(gradient_), whole(which_), whole(stem_.out),
                                         whole(stem_.statistics), from(means_), whole(stem_.out)},
                                        pool_attributes);
    }
    weight_gradient(stem, images_, stem_.out);
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  ResnetParameters parameters_;
  UpdateBuffers update_{};
  ModelEnds ends_{};
  std::int64_t part_ = 0;  // of the batch
  int images_ = 0, labels_ = 0;
  int running_statistics_ = 0;
  ConvolutionBuffers stem_;
  int stem_out_ = 0, which_ = 0, chosen_ = 0;
  std::vector<ResidualBlockBuffers> blocks_;
  std::vector<std::int64_t> places_;   // of the blocks in their segments
  std::map<std::string, int> shared_;  // buffers of several blocks, by their names
  // Where nothing is fused:
  std::vector<UnfusedStageBuffers> unfused_;  // of the stages
  std::vector<std::size_t> stages_;           // of the blocks
  int stem_gradient_ = 0;                     // of what its relu writes
  int unpooled_ = 0;                          // what the stem's pool reads
  int pooled_ = 0, logits_ = 0;
  int gradient_ = 0;  // of the stream between blocks: the output of the last block of a stage
  int partials_ = 0, means_ = 0;
  int nchw_ = 0;  // a copy of what a convolution made
};

}  // namespace

ModelParts build_resnet(StepBuilder& builder, const Knobs& knobs, int batch,
                        std::int64_t sample_bytes) {
  return Resnet(builder, knobs).build(batch, sample_bytes);
}

}  // namespace stepgate
