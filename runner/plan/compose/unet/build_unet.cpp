// SPDX-License-Identifier: MIT
// The step of a UNet that predicts noise (unet_shape.h). A skip is never concatenated: norms read
// both images, and the convolution of single pixels is two GEMMs. Attention is fused (launch.fuse)
// where tensor cores serve its heads, and elsewhere keeps its probabilities in memory. Gradients
// overwrite activations: that of what a convolution or a linear layer read what it read, once the
// gradient of its weights is known, and that of a skip the output of the layer that read it.
//
// With checkpoints (memory.checkpoint), layers form segments, which end with a skip at the latest.
// A segment keeps its input and the statistics of its norms; all other buffers of a layer are
// shared by the segments. Before its backward pass, a segment computes them again. With checkpoints
// of norms, all norms write one buffer, and each is applied again before the weight gradient of the
// layer that reads it.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/kernels.h"
#include "plan/compose/build_model.h"
#include "plan/compose/decode_batch.h"
#include "plan/compose/layout_copies.h"
#include "plan/compose/model_ends.h"
#include "plan/compose/unet/unet_shape.h"
#include "plan/compose/update/build_update.h"

namespace stepgate {
namespace {

constexpr double group_norm_epsilon = 1e-5;  // the default of torch.nn.GroupNorm

using Operand = StepBuilder::Operand;

// Buffers of a layer that the forward pass writes and the backward pass reads.
struct UnetLayerBuffers {
  int out = 0;
  int normed1 = 0;                       // residual, attention: the first norm's result
  int statistics1 = 0, statistics2 = 0;  // of the norms
  int inner = 0, normed2 = 0;            // residual: what the second norm reads, and its result
  int heads = 0, probabilities = 0;      // attention: of queries, keys and values
  int qkv = 0, log_sums = 0;             // fused attention: in place of these two
  int attended = 0;                      // attention: the projection's input
  int doubled = 0;                       // upsampling: the convolution's input
};

// Shapes of the GEMMs of attention over all heads of all samples.
struct AttentionShapes {
  std::int64_t samples, tokens, channels, heads;

  AttentionShapes(const UnetAttention& of)
      : samples(of.norm.shape.samples),
        tokens(of.norm.shape.pixels),
        channels(of.norm.shape.columns),
        heads(of.heads) {}
  std::int64_t rows() const { return samples * tokens; }
  std::int64_t width() const { return channels / heads; }
  PackedHeadsShape packed() const { return {rows(), channels, tokens, heads}; }
  AttentionShape fused() const { return {rows(), channels, tokens, heads}; }
  kernels::Matmul::Shape scores() const { return {tokens, tokens, width(), samples * heads}; }
  kernels::Matmul::Shape values() const { return {tokens, width(), tokens, samples * heads}; }
  MatrixShape softmax() const { return {samples * heads * tokens, tokens}; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }
  CheckedSize score_elements() const { return CheckedSize(rows()) * heads * tokens; }
};

class Unet {
 public:
  Unet(StepBuilder& builder, const Knobs& knobs)
      : builder_(builder), knobs_(knobs), parameters_(knobs) {
    add_learned_buffers(builder_, knobs_, parameters_, update_);
    add_inputs_and_ends();
    place_layers();
    add_layers();
    add_skip_gradients();
    add_temporaries();
  }

  ModelParts build(int batch, std::int64_t sample_bytes) {
    builder_.enter(Phase::forward);
    ingest(batch, sample_bytes);
    embed_times();
    convolve_with_bias(parameters_.conv_in(), noisy_, conv_in_);
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) forward(layer);
    norm(parameters_.norm_out(), layers_.back().out, {}, statistics_out_, normed_out_, true);
    convolve_with_bias(parameters_.conv_out(), normed_out_, prediction_);
    const MatrixShape rows{loss_rows(), features() / knobs_.model.image};
    // The gradient of the prediction overwrites it.
    launch<kernels::SquaredError>(
        "loss", rows,
        {whole(prediction_), whole(noise_), whole(prediction_), whole(ends_.row_losses)});
    report_loss(builder_, ends_, loss_rows());
    backward();
    builder_.enter(Phase::optimizer);
    build_update(builder_, knobs_, parameters_, update_);
    return {.loss = ends_.loss,
            .weights = update_.weights,
            .learned = LearnedParts{update_.weights, update_.gradients, parameters_.places(),
                                    parameters_.elements()}};
  }

 private:
  // The functions below add buffers.

  std::int64_t samples() const { return knobs_.batch.size; }
  std::int64_t features() const {
    return knobs_.model.image_channels * knobs_.model.image * knobs_.model.image;
  }
  std::int64_t loss_rows() const { return samples() * knobs_.model.image; }
  std::int64_t element_bytes() const { return bytes_of(knobs_.model.dtype); }

  int add(const std::string& name, CheckedSize bytes) {
    return builder_.add({.name = name, .purpose = Purpose::activations, .bytes = bytes});
  }
  // Adds a buffer of numbers in the model's storage, or of single ones.
  int numbers(const std::string& name, CheckedSize elements) {
    return add(name, elements * element_bytes());
  }
  int singles(const std::string& name, CheckedSize elements) {
    return add(name, elements * word_bytes);
  }
  static CheckedSize elements_of(const UnetLayer& layer) {
    return CheckedSize(layer.pixels) * layer.channels;
  }
  static CheckedSize elements_of(const UnetNorm& norm) {
    return CheckedSize(norm.shape.samples) * norm.shape.pixels * norm.shape.channels();
  }
  static CheckedSize inputs_of(const UnetConvolution& conv) {
    return checked(conv.shape).input_pixels() * conv.shape.channels;
  }
  static CheckedSize outputs_of(const UnetConvolution& conv) {
    return checked(conv.shape).output_pixels() * conv.shape.outputs;
  }
  // The output of conv_in is that of layer -1.
  CheckedSize elements_of_layer(int layer) const {
    return layer < 0 ? outputs_of(parameters_.conv_in())
                     : elements_of(parameters_.layers()[static_cast<std::size_t>(layer)]);
  }
  std::string name_of(int layer) const {
    return layer < 0 ? parameters_.conv_in().name
                     : parameters_.layers()[static_cast<std::size_t>(layer)].name;
  }

  void add_inputs_and_ends() {
    images_ = numbers("images", CheckedSize(samples()) * features());
    times_ = add("times", CheckedSize(samples()) * word_bytes);
    noisy_ = numbers("noisy images", CheckedSize(samples()) * features());
    noise_ = numbers("noise", CheckedSize(samples()) * features());
    ends_ = add_ends(builder_, loss_rows());
    update_.counter = ends_.counter;
    const CheckedSize wide = CheckedSize(samples()) * parameters_.time_width();
    time_features_ = numbers("time features", CheckedSize(samples()) * knobs_.model.width);
    time_hidden_ = numbers("time hidden", wide);
    time_hidden_silu_ = numbers("time hidden silu", wide);
    time_ = numbers("time embedding", wide);
    time_silu_ = numbers("time embedding silu", wide);
    time_gradient_ = numbers("time gradient", wide);
    conv_in_ = numbers("conv_in", outputs_of(parameters_.conv_in()));
    normed_out_ = numbers("conv_norm_out", elements_of(parameters_.norm_out()));
    statistics_out_ = add_statistics(parameters_.norm_out());
    prediction_ = numbers("prediction", CheckedSize(samples()) * features());
  }

  int add_statistics(const UnetNorm& norm) {
    return singles(norm.name + " statistics",
                   CheckedSize(norm.shape.samples) * norm.shape.groups * group_norm_numbers);
  }

  bool is_fused(const AttentionShapes& shapes) const {
    return knobs_.launch.fuse == Fuse::attention &&
           attention_uses_tensor_cores(shapes.fused(), knobs_.model.dtype);
  }
  // Without a knob of its own, cuDNN's gradient has a transformer's scratch.
  std::int64_t most_scratch() const { return knobs_.model.attention_workspace_bytes; }

  bool has_checkpoints() const { return knobs_.memory.checkpoint_every > 0; }
  bool recomputes_norms() const {
    return knobs_.memory.checkpoint_every == MemoryKnobs::checkpoint_norms;
  }

  // Numbers the layers of each segment. Without checkpoints of layers each is a segment.
  void place_layers() {
    const std::vector<int>& skips = parameters_.skips();
    std::int64_t place = 0;
    for (std::size_t layer = 0; layer < parameters_.layers().size(); ++layer) {
      const bool begins = ++place >= knobs_.memory.checkpoint_every ||
                          std::ranges::find(skips, static_cast<int>(layer) - 1) != skips.end();
      places_.push_back(place = begins ? 0 : place);
    }
  }
  bool ends_segment(std::size_t layer) const {
    return layer + 1 == places_.size() || places_[layer + 1] == 0;
  }

  // A buffer inside a layer: its name behind that of the layer, and its numbers.
  struct Inside {
    int UnetLayerBuffers::*buffer;
    std::string name;
    CheckedSize elements;
  };

  std::vector<Inside> inside_of(std::size_t index) const {
    using Buffers = UnetLayerBuffers;
    const UnetLayer& layer = parameters_.layers()[index];
    const CheckedSize elements = elements_of(layer);
    std::vector<Inside> all;
    if (!ends_segment(index)) all.push_back({&Buffers::out, "", elements});
    if (const auto* residual = std::get_if<UnetResidual>(&layer.what)) {
      all.push_back({&Buffers::normed1, ".norm1", elements_of(residual->norm1)});
      all.push_back({&Buffers::inner, ".conv1", elements});
      all.push_back({&Buffers::normed2, ".norm2", elements});
    }
    if (const auto* attention = std::get_if<UnetAttention>(&layer.what)) {
      all.push_back({&Buffers::normed1, ".group_norm", elements});
      const AttentionShapes shapes(*attention);
      if (is_fused(shapes)) {
        all.push_back({&Buffers::qkv, " qkv", 3 * elements});
        all.push_back({&Buffers::log_sums, " log sums",
                       CheckedSize(shapes.rows()) * shapes.heads * word_bytes / element_bytes()});
      } else {
        all.push_back({&Buffers::heads, " heads", 3 * elements});
        all.push_back({&Buffers::probabilities, " probabilities", shapes.score_elements()});
      }
      all.push_back({&Buffers::attended, " attended", elements});
    }
    if (const auto* up = std::get_if<UnetUpsample>(&layer.what))
      all.push_back({&Buffers::doubled, " doubled", inputs_of(up->conv)});
    return all;
  }

  // Buffers of several layers have one name and are as large as the largest of them needs.
  std::string name_inside(std::size_t index, const Inside& inside) const {
    using Buffers = UnetLayerBuffers;
    const bool is_norm = inside.buffer == &Buffers::normed1 || inside.buffer == &Buffers::normed2;
    if (recomputes_norms() && is_norm) return "recomputed norm";
    if (has_checkpoints()) return "recomputed " + std::to_string(places_[index]) + inside.name;
    return parameters_.layers()[index].name + inside.name;
  }

  void add_layers() {
    std::map<std::string, CheckedSize> sizes;
    std::map<std::string, int> added;
    for (std::size_t index = 0; index < parameters_.layers().size(); ++index) {
      for (const Inside& inside : inside_of(index)) {
        CheckedSize& size = sizes[name_inside(index, inside)];
        size = std::max(size, inside.elements);
      }
    }
    for (std::size_t index = 0; index < parameters_.layers().size(); ++index) {
      const UnetLayer& layer = parameters_.layers()[index];
      UnetLayerBuffers made;
      if (ends_segment(index)) made.out = numbers(layer.name, elements_of(layer));
      if (const auto* residual = std::get_if<UnetResidual>(&layer.what)) {
        made.statistics1 = add_statistics(residual->norm1);
        made.statistics2 = add_statistics(residual->norm2);
      }
      if (const auto* attention = std::get_if<UnetAttention>(&layer.what))
        made.statistics1 = add_statistics(attention->norm);
      for (const Inside& inside : inside_of(index)) {
        const std::string name = name_inside(index, inside);
        const auto [found, is_new] = added.try_emplace(name, 0);
        if (is_new) found->second = numbers(name, sizes[name]);
        made.*inside.buffer = found->second;
      }
      layers_.push_back(made);
    }
  }

  // No level of the decoder has fewer channels than the skips that it reads.
  void add_skip_gradients() {
    skip_gradients_.resize(parameters_.skips().size());
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const auto& skip = parameters_.layers()[layer].skip;
      if (!skip) continue;
      const int from = parameters_.skips()[*skip];
      skip_gradients_[*skip] =
          ends_segment(layer) ? layers_[layer].out
                              : numbers(name_of(from) + " skip gradient", elements_of_layer(from));
    }
  }

  void add_temporaries() {
    CheckedSize stream = outputs_of(parameters_.conv_in()), packed, split, scores, scratch;
    CheckedSize channels, partials, columns;
    const auto raise = [](CheckedSize& to, CheckedSize size) { to = std::max(to, size); };
    const auto raise_partials = [&](std::int64_t rows, std::int64_t width) {
      raise(columns, CheckedSize(column_parts(rows, width)) * width);
    };
    for (const UnetNorm* norm : parameters_.norms()) {
      raise(channels, norm->shape.channels());
      raise(partials, 2 * CheckedSize(samples()) * parts_of(*norm) * norm->shape.channels());
    }
    for (const UnetLayer& layer : parameters_.layers()) {
      raise(stream, elements_of(layer));
      raise_partials(layer.pixels, layer.channels);
      if (const auto* attention = std::get_if<UnetAttention>(&layer.what)) {
        const AttentionShapes shapes(*attention);
        raise(packed, elements_of(layer));
        if (is_fused(shapes)) {
          raise(scratch, attention_gradient_scratch_bytes(shapes.fused(), knobs_.model.dtype,
                                                          most_scratch()));
        } else {
          raise(split, elements_of(layer));
          raise(scores, shapes.score_elements());
        }
        raise_partials(layer.pixels, 3 * layer.channels);
      }
      if (const auto* up = std::get_if<UnetUpsample>(&layer.what))
        raise(stream, inputs_of(up->conv));
    }
    raise_partials(samples() * knobs_.model.image * knobs_.model.image,
                   knobs_.model.image_channels);
    raise_partials(checked(parameters_.conv_in().shape).output_pixels(), knobs_.model.width);
    first_ = singles("first pixels", CheckedSize(samples()) * channels);
    partials_ = singles("norm partials", partials);
    means_ = singles("gradient means", CheckedSize(samples()) * 32 * group_norm_numbers);
    column_partials_ = singles("bias partials", columns);
    block_time_ = numbers("time of a block", CheckedSize(samples()) * channels);
    qkv_ = numbers("qkv", 3 * packed);
    merged_ = numbers("merged heads", packed);
    if (split > 0) {
      head_gradients_ = numbers("head gradients", 3 * split);
      score_gradients_ = numbers("score gradients", scores);
    }
    if (scratch > 0) attention_scratch_ = add("attention scratch", scratch);
    gradient_ = numbers("stream gradient", stream);
    other_gradient_ = numbers("other stream gradient", stream);
    if (knobs_.model.layout_copies) nchw_ = numbers("NCHW", stream);
  }

  static std::int64_t parts_of(const UnetNorm& norm) {
    return group_norm_parts(norm.shape.samples, norm.shape.pixels);
  }

  // The functions below append operations.

  template <class Kernel>
  void launch(const std::string& name, const typename Kernel::Shape& shape,
              const std::vector<Operand>& operands,
              const typename Kernel::Attributes& attributes = {}) {
    builder_.launch<Kernel>(named(name), shape, operands, attributes);
  }
  std::string named(const std::string& name) const {
    return (builder_.computes_again() ? "again: " : "") + name;
  }

  // Whether gradients of parameters are added to zeros instead of overwriting the old ones.
  bool accumulates() const { return knobs_.memory.zero_grad == ZeroGrad::memset; }

  // A shared buffer may be larger than the operand is.
  Operand whole(int buffer) const {
    return knobs_.memory.checkpoint_every == 0 ? builder_.whole(buffer) : from(buffer);
  }
  static Operand from(int buffer) { return Operand::from(buffer, 0); }
  Operand weight(std::size_t tensor) const { return in(update_.weights, tensor); }
  Operand gradient(std::size_t tensor) const { return in(update_.gradients, tensor); }
  Operand in(int flat, std::size_t tensor) const {
    return Operand::from(flat, parameters_.tensors()[tensor].first);
  }
  const std::string& tensor_name(std::size_t tensor) const {
    return parameters_.tensors()[tensor].name;
  }

  // A sample's label is its time.
  void ingest(int batch, std::int64_t sample_bytes) {
    launch_ingest_of_images(
        builder_, knobs_.batch.format,
        {.samples = samples(), .features = features(), .words = sample_bytes / word_bytes},
        builder_.whole(batch), {.images = images_, .labels = times_, .classes = diffusion_times});
    launch<kernels::AddNoise>(
        "add noise", {samples(), features()},
        {whole(images_), whole(times_), whole(ends_.counter), whole(noisy_), whole(noise_)});
  }

  void linear(std::size_t layer, std::int64_t rows, std::int64_t outputs, std::int64_t inputs,
              int x, int y) {
    launch<kernels::Linear>(tensor_name(layer), {rows, outputs, inputs},
                            {from(x), weight(layer), weight(layer + 1), from(y)});
  }

  // Computes the gradients of a linear layer, and that of its input where d_x is a buffer.
  void linear_gradient(std::size_t layer, std::int64_t rows, std::int64_t outputs,
                       std::int64_t inputs, int x, int d_y, std::optional<int> d_x,
                       bool accumulate = false) {
    const std::string& name = tensor_name(layer);
    bias_gradient(rows, outputs, from(d_y), layer + 1);
    launch<kernels::Matmul>(name + " gradient", {outputs, inputs, rows},
                            {from(d_y), from(x), gradient(layer)},
                            {.transpose_a = true, .accumulate = accumulates()});
    if (d_x)
      launch<kernels::Matmul>(name + ": input gradient", {rows, inputs, outputs},
                              {from(d_y), weight(layer), from(*d_x)}, {.accumulate = accumulate});
  }

  // Sums the rows of d_y, by parts where there are many, into one or two tensors.
  void bias_gradient(std::int64_t rows, std::int64_t columns, const Operand& d_y,
                     std::size_t tensor, std::optional<std::size_t> other = {}) {
    const std::int64_t parts = column_parts(rows, columns);
    if (parts > 1)
      launch<kernels::ColumnParts>(tensor_name(tensor) + ": column sums", {rows, columns, parts},
                                   {d_y, from(column_partials_)});
    const auto sum_into = [&](std::size_t to) {
      const std::string name = tensor_name(to) + " gradient";
      if (parts > 1)
        launch<kernels::SumParts>(name, {columns, parts}, {from(column_partials_), gradient(to)},
                                  {.accumulate = accumulates()});
      else
        launch<kernels::BiasGradient>(name, {rows, columns}, {d_y, gradient(to)},
                                      {.accumulate = accumulates()});
    };
    sum_into(tensor);
    if (other) sum_into(*other);
  }

  void embed_times() {
    const std::int64_t width = knobs_.model.width, wide = parameters_.time_width();
    launch<kernels::TimeEmbedding>("time features", {samples(), width},
                                   {whole(times_), whole(time_features_)});
    linear(parameters_.time1(), samples(), wide, width, time_features_, time_hidden_);
    launch<kernels::Silu>("time silu", {samples(), wide},
                          {whole(time_hidden_), whole(time_hidden_silu_)});
    linear(parameters_.time2(), samples(), wide, wide, time_hidden_silu_, time_);
    launch<kernels::Silu>("time embedding silu", {samples(), wide},
                          {whole(time_), whole(time_silu_)});
  }

  void convolve(const UnetConvolution& conv, int x, int y) {
    launch<kernels::Convolution>(conv.name, conv.shape, {from(x), weight(conv.weight), from(y)});
    change_layouts(conv.shape, conv.name, y);
  }

  // Copies a convolution's result, or its gradient, to NCHW and back.
  void change_layouts(const ConvolutionShape& shape, const std::string& name, int image) {
    if (knobs_.model.layout_copies)
      copy_layouts(builder_, named(name), shape, from(image), from(nchw_));
  }
  // A shortcut's image has the shape of what the second convolution makes.
  void change_layouts_of_shortcut(const UnetResidual& residual, const std::string& more,
                                  int image) {
    change_layouts(residual.conv2.shape, tensor_name(residual.shortcut->stream) + more, image);
  }

  void convolve_with_bias(const UnetConvolution& conv, int x, int y) {
    convolve(conv, x, y);
    launch<kernels::BiasActivation>(conv.name + ": bias",
                                    {conv.shape.output_pixels(), conv.shape.outputs},
                                    {from(y), weight(conv.weight + 1), from(y)});
  }

  // The buffer that a norm reads beside x; without one, x stands for an operand without elements.
  static Operand beside(int x, std::optional<int> other) { return from(other.value_or(x)); }

  // Computes the statistics of x, unless they are kept, and applies the norm.
  void norm(const UnetNorm& norm, int x, std::optional<int> other, int statistics, int y,
            bool silu) {
    const GroupNormPartsShape in_parts = parts(norm);
    if (!builder_.computes_again()) {
      launch<kernels::GroupNormSums>(norm.name + ": sums", in_parts,
                                     {from(x), beside(x, other), from(first_), from(partials_)});
      launch<kernels::GroupNormFinish>(norm.name + ": statistics", in_parts,
                                       {from(first_), from(partials_), whole(statistics)},
                                       {.epsilon = group_norm_epsilon});
    }
    launch<kernels::GroupNormApply>(norm.name, norm.shape,
                                    {from(x), beside(x, other), whole(statistics),
                                     weight(norm.weight), weight(norm.weight + 1), from(y)},
                                    {.silu = silu});
  }

  static GroupNormPartsShape parts(const UnetNorm& norm) {
    const auto& [samples, pixels, columns, others, groups] = norm.shape;
    return {samples, pixels, columns, others, groups, parts_of(norm)};
  }

  int out_of(int layer) const {
    return layer < 0 ? conv_in_ : layers_[static_cast<std::size_t>(layer)].out;
  }
  int input_of(std::size_t layer) const { return out_of(static_cast<int>(layer) - 1); }
  std::optional<int> skip_of(std::size_t layer) const {
    const auto& skip = parameters_.layers()[layer].skip;
    if (!skip) return std::nullopt;
    return out_of(parameters_.skips()[*skip]);
  }

  void forward(std::size_t layer) {
    std::visit([&](const auto& what) { forward(what, layer); }, parameters_.layers()[layer].what);
  }

  void forward(const UnetDownsample& down, std::size_t layer) {
    if (builder_.computes_again()) return;  // a downsampled image is a skip, hence kept
    convolve_with_bias(down.conv, input_of(layer), layers_[layer].out);
  }

  static kernels::Upsample::Shape undoubled(const ConvolutionShape& s) {
    return {s.images, s.height / 2, s.width / 2, s.channels};
  }

  void forward(const UnetUpsample& up, std::size_t layer) {
    const UnetLayerBuffers& buffers = layers_[layer];
    launch<kernels::Upsample>(parameters_.layers()[layer].name, undoubled(up.conv.shape),
                              {whole(input_of(layer)), whole(buffers.doubled)});
    if (builder_.computes_again() && ends_segment(layer)) return;
    convolve_with_bias(up.conv, buffers.doubled, buffers.out);
  }

  void forward(const UnetResidual& residual, std::size_t layer) {
    const UnetLayerBuffers& buffers = layers_[layer];
    const int x = input_of(layer);
    const std::int64_t outputs = residual.conv1.shape.outputs;
    const kernels::TimeBias::Shape image{samples(), residual.norm2.shape.pixels, outputs};
    norm(residual.norm1, x, skip_of(layer), buffers.statistics1, buffers.normed1, true);
    convolve(residual.conv1, buffers.normed1, buffers.inner);
    linear(residual.time, samples(), outputs, parameters_.time_width(), time_silu_, block_time_);
    launch<kernels::TimeBias>(residual.conv1.name + ": bias and time", image,
                              {whole(buffers.inner), weight(residual.conv1.weight + 1),
                               from(block_time_), whole(buffers.inner)});
    norm(residual.norm2, buffers.inner, {}, buffers.statistics2, buffers.normed2, true);
    if (builder_.computes_again() && ends_segment(layer)) return;
    convolve(residual.conv2, buffers.normed2, buffers.out);
    int shortcut = x;
    if (residual.shortcut) {
      shortcut = other_gradient_;
      shortcut_of(residual, layer);
    }
    launch<kernels::ResidualBias>(residual.conv2.name + ": bias and shortcut", image,
                                  {whole(buffers.out), weight(residual.conv2.weight + 1),
                                   from(shortcut), whole(buffers.out)});
  }

  void shortcut_of(const UnetResidual& residual, std::size_t layer) {
    const GroupNormShape& s = residual.norm1.shape;
    const std::int64_t rows = s.samples * s.pixels, outputs = residual.conv1.shape.outputs;
    const UnetResidual::Shortcut& shortcut = *residual.shortcut;
    launch<kernels::Linear>(tensor_name(shortcut.stream), {rows, outputs, s.columns},
                            {from(input_of(layer)), weight(shortcut.stream), weight(shortcut.bias),
                             from(other_gradient_)});
    if (const auto skip = skip_of(layer))
      launch<kernels::Matmul>(tensor_name(shortcut.skip), {rows, outputs, s.others},
                              {from(*skip), weight(shortcut.skip), from(other_gradient_)},
                              {.transpose_b = true, .accumulate = true});
    change_layouts_of_shortcut(residual, "", other_gradient_);
  }

  // The parts q, k and v of all heads in one buffer, one after another.
  static Operand part(int heads, const AttentionShapes& shapes, std::int64_t index) {
    return Operand::from(heads, index * shapes.rows() * shapes.channels);
  }

  void attend_by_gemms(const std::string& name, const AttentionShapes& shapes,
                       const UnetLayerBuffers& buffers) {
    const auto of = [&](std::int64_t index) { return part(buffers.heads, shapes, index); };
    launch<kernels::SplitHeads>(name + ": split heads", shapes.packed(),
                                {from(qkv_), whole(buffers.heads)}, {.parts = 3});
    launch<kernels::Matmul>(name + ": scores", shapes.scores(),
                            {of(0), of(1), whole(buffers.probabilities)}, by_transposed);
    launch<kernels::Softmax>(name + ": softmax", shapes.softmax(),
                             {whole(buffers.probabilities), whole(buffers.probabilities)},
                             {.scale = shapes.scale()});
    launch<kernels::Matmul>(name + ": weighted values", shapes.values(),
                            {whole(buffers.probabilities), of(2), from(merged_)});
    launch<kernels::MergeHeads>(name + ": merge heads", shapes.packed(),
                                {from(merged_), whole(buffers.attended)});
  }

  void forward(const UnetAttention& attention, std::size_t layer) {
    const UnetLayerBuffers& buffers = layers_[layer];
    const std::string& name = parameters_.layers()[layer].name;
    const AttentionShapes shapes(attention);
    const int qkv = is_fused(shapes) ? buffers.qkv : qkv_;
    norm(attention.norm, input_of(layer), {}, buffers.statistics1, buffers.normed1, false);
    linear(attention.qkv, shapes.rows(), 3 * shapes.channels, shapes.channels, buffers.normed1,
           qkv);
    if (is_fused(shapes))
      launch<kernels::Attention>(name + ": attention", shapes.fused(),
                                 {whole(qkv), whole(buffers.attended), whole(buffers.log_sums)},
                                 {.causal = false});
    else
      attend_by_gemms(name, shapes, buffers);
    if (builder_.computes_again() && ends_segment(layer)) return;
    launch<kernels::Matmul>(
        tensor_name(attention.projection), {shapes.rows(), shapes.channels, shapes.channels},
        {whole(buffers.attended), weight(attention.projection), whole(buffers.out)}, by_transposed);
    launch<kernels::ResidualBias>(name + ": bias and residual",
                                  {shapes.samples, shapes.tokens, shapes.channels},
                                  {whole(buffers.out), weight(attention.projection + 1),
                                   whole(input_of(layer)), whole(buffers.out)});
  }

  void backward() {
    builder_.enter(Phase::backward);
    if (accumulates())
      builder_.act("zero the gradients", FillZero{builder_.whole(update_.gradients)});
    convolution_gradient(parameters_.conv_out(), normed_out_, prediction_);
    data_gradient(parameters_.conv_out(), prediction_, normed_out_);
    // The forward pass computed shortcuts in the other buffer, so that it lives already.
    std::swap(gradient_, other_gradient_);
    norm_gradient(parameters_.norm_out(), layers_.back().out, {}, statistics_out_, normed_out_,
                  gradient_, {}, true, false);
    for (std::size_t layer = layers_.size(); layer-- > 0;) {
      add_skip_gradient(static_cast<int>(layer));
      if (has_checkpoints() && ends_segment(layer)) recompute(layer);
      std::visit([&](const auto& what) { backward(what, layer); },
                 parameters_.layers()[layer].what);
    }
    add_skip_gradient(-1);
    convolution_gradient(parameters_.conv_in(), noisy_, gradient_);
    time_gradients();
  }

  // Computes everything again that the backward pass of a segment reads, from the segment's input.
  void recompute(std::size_t last) {
    builder_.again([&] {
      std::size_t layer = last - static_cast<std::size_t>(places_[last]);
      while (layer <= last) forward(layer++);
    });
  }

  void norm_again(const UnetNorm& made, int x, std::optional<int> other, int statistics, int y,
                  bool silu) {
    if (recomputes_norms()) builder_.again([&] { norm(made, x, other, statistics, y, silu); });
  }

  // Adds what a skip's reader passes back to the gradient of the stream.
  void add_skip_gradient(int layer) {
    const auto found = std::ranges::find(parameters_.skips(), layer);
    if (found == parameters_.skips().end()) return;
    const auto skip = static_cast<std::size_t>(found - parameters_.skips().begin());
    const std::int64_t elements = elements_of_layer(layer);
    launch<kernels::Add>(name_of(layer) + ": skip gradient", {1, elements},
                         {from(gradient_), from(skip_gradients_[skip]), from(gradient_)});
  }

  // Computes the gradients of a convolution's weight and bias.
  void convolution_gradient(const UnetConvolution& conv, int x, int d_y,
                            std::optional<std::size_t> other_bias = {}) {
    bias_gradient(conv.shape.output_pixels(), conv.shape.outputs, from(d_y), conv.weight + 1,
                  other_bias);
    weight_gradient(conv, x, d_y);
  }

  void weight_gradient(const UnetConvolution& conv, int x, int d_y) {
    change_layouts(conv.shape, conv.name + ": gradient", d_y);
    launch<kernels::ConvolutionWeightGradient>(conv.name + ": weight gradient", conv.shape,
                                               {from(x), from(d_y), gradient(conv.weight)},
                                               {.accumulate = accumulates()});
  }

  void data_gradient(const UnetConvolution& conv, int d_y, int d_x) {
    launch<kernels::ConvolutionDataGradient>(conv.name + ": input gradient", conv.shape,
                                             {from(d_y), weight(conv.weight), from(d_x)});
  }

  // Computes the gradients of a norm's parameters, and of its input from d_y: in d_x and d_other,
  // or added to what these hold.
  void norm_gradient(const UnetNorm& norm, int x, std::optional<int> other, int statistics, int d_y,
                     int d_x, std::optional<int> d_other, bool silu, bool accumulate) {
    const GroupNormPartsShape in_parts = parts(norm);
    const Operand of_weight = weight(norm.weight), of_bias = weight(norm.weight + 1);
    launch<kernels::GroupNormGradientSums>(norm.name + ": gradient sums", in_parts,
                                           {from(d_y), from(x), beside(x, other), whole(statistics),
                                            of_weight, of_bias, from(partials_)},
                                           {.silu = silu});
    launch<kernels::GroupNormGradientFinish>(norm.name + ": parameters' gradient", in_parts,
                                             {from(partials_), of_weight, gradient(norm.weight),
                                              gradient(norm.weight + 1), from(means_)},
                                             {.accumulate = accumulates()});
    launch<kernels::GroupNormGradientApply>(
        norm.name + ": gradient", norm.shape,
        {from(d_y), from(x), beside(x, other), whole(statistics), of_weight, of_bias, from(means_),
         from(d_x), beside(d_x, d_other)},
        {.silu = silu, .accumulate = accumulate});
  }

  // The functions below turn the gradient of a layer's output in gradient_ into that of its input.

  void backward(const UnetDownsample& down, std::size_t layer) {
    convolution_gradient(down.conv, input_of(layer), gradient_);
    data_gradient(down.conv, gradient_, other_gradient_);
    std::swap(gradient_, other_gradient_);
  }

  void backward(const UnetUpsample& up, std::size_t layer) {
    convolution_gradient(up.conv, layers_[layer].doubled, gradient_);
    data_gradient(up.conv, gradient_, other_gradient_);
    launch<kernels::UpsampleGradient>(parameters_.layers()[layer].name + ": gradient",
                                      undoubled(up.conv.shape),
                                      {from(other_gradient_), from(gradient_)});
  }

  void backward(const UnetResidual& residual, std::size_t layer) {
    const UnetLayerBuffers& buffers = layers_[layer];
    std::optional<std::size_t> shortcut_bias;
    if (residual.shortcut) shortcut_bias = residual.shortcut->bias;
    norm_again(residual.norm2, buffers.inner, {}, buffers.statistics2, buffers.normed2, true);
    convolution_gradient(residual.conv2, buffers.normed2, gradient_, shortcut_bias);
    data_gradient(residual.conv2, gradient_, buffers.normed2);
    norm_gradient(residual.norm2, buffers.inner, {}, buffers.statistics2, buffers.normed2,
                  other_gradient_, {}, true, false);
    time_gradient_of(residual);
    norm_again(residual.norm1, input_of(layer), skip_of(layer), buffers.statistics1,
               buffers.normed1, true);
    weight_gradient(residual.conv1, buffers.normed1, other_gradient_);
    data_gradient(residual.conv1, other_gradient_, buffers.normed1);
    std::optional<int> skip_gradient;
    if (const auto& skip = parameters_.layers()[layer].skip) skip_gradient = skip_gradients_[*skip];
    if (residual.shortcut) shortcut_gradient(residual, layer, skip_gradient);
    norm_gradient(residual.norm1, input_of(layer), skip_of(layer), buffers.statistics1,
                  buffers.normed1, gradient_, skip_gradient, true, true);
  }

  // The gradient of a sample's time is the sum over its pixels; the bias of the convolution before
  // it has the same gradient as that of the projection.
  void time_gradient_of(const UnetResidual& residual) {
    const std::int64_t outputs = residual.conv1.shape.outputs, wide = parameters_.time_width();
    launch<kernels::SumPixels>(tensor_name(residual.time) + ": sum over pixels",
                               {samples(), residual.norm2.shape.pixels, outputs},
                               {from(other_gradient_), from(block_time_)});
    bias_gradient(samples(), outputs, from(block_time_), residual.conv1.weight + 1);
    linear_gradient(residual.time, samples(), outputs, wide, time_silu_, block_time_,
                    time_gradient_, has_time_gradient_);
    has_time_gradient_ = true;
  }

  void shortcut_gradient(const UnetResidual& residual, std::size_t layer,
                         std::optional<int> skip_gradient) {
    const GroupNormShape& s = residual.norm1.shape;
    const std::int64_t rows = s.samples * s.pixels, outputs = residual.conv1.shape.outputs;
    change_layouts_of_shortcut(residual, ": gradient", gradient_);
    const auto of_part = [&](std::size_t tensor, std::int64_t inputs, int x, int d_x) {
      launch<kernels::Matmul>(tensor_name(tensor) + " gradient", {outputs, inputs, rows},
                              {from(gradient_), from(x), gradient(tensor)},
                              {.transpose_a = true, .accumulate = accumulates()});
      launch<kernels::Matmul>(tensor_name(tensor) + ": input gradient", {rows, inputs, outputs},
                              {from(gradient_), weight(tensor), from(d_x)});
    };
    of_part(residual.shortcut->stream, s.columns, input_of(layer), other_gradient_);
    if (skip_gradient) of_part(residual.shortcut->skip, s.others, *skip_of(layer), *skip_gradient);
    std::swap(gradient_, other_gradient_);
  }

  // Turns the gradient of the merged heads into that of qkv.
  void attention_gradient_by_gemms(const std::string& name, const AttentionShapes& shapes,
                                   const UnetLayerBuffers& buffers) {
    const auto of = [&](std::int64_t index) { return part(buffers.heads, shapes, index); };
    const auto d_of = [&](std::int64_t index) { return part(head_gradients_, shapes, index); };
    launch<kernels::SplitHeads>(name + ": split heads of the gradient", shapes.packed(),
                                {from(buffers.attended), from(merged_)});
    launch<kernels::Matmul>(name + ": value gradient", shapes.values(),
                            {whole(buffers.probabilities), from(merged_), d_of(2)}, transposed_by);
    launch<kernels::Matmul>(name + ": probability gradient", shapes.scores(),
                            {from(merged_), of(2), from(score_gradients_)}, by_transposed);
    launch<kernels::SoftmaxGradient>(
        name + ": softmax gradient", shapes.softmax(),
        {whole(buffers.probabilities), from(score_gradients_), from(score_gradients_)},
        {.scale = shapes.scale()});
    launch<kernels::Matmul>(name + ": query gradient", shapes.values(),
                            {from(score_gradients_), of(1), d_of(0)});
    launch<kernels::Matmul>(name + ": key gradient", shapes.values(),
                            {from(score_gradients_), of(0), d_of(1)}, transposed_by);
    launch<kernels::MergeHeads>(name + ": merge heads of the gradient", shapes.packed(),
                                {from(head_gradients_), from(qkv_)}, {.parts = 3});
  }

  // The fused gradient reads what the projection read, so its gradient does not overwrite that.
  void backward(const UnetAttention& attention, std::size_t layer) {
    const UnetLayerBuffers& buffers = layers_[layer];
    const std::string& name = parameters_.layers()[layer].name;
    const AttentionShapes shapes(attention);
    linear_gradient(attention.projection, shapes.rows(), shapes.channels, shapes.channels,
                    buffers.attended, gradient_, is_fused(shapes) ? merged_ : buffers.attended);
    if (is_fused(shapes)) {
      launch<kernels::AttentionGradient>(
          name + ": attention gradient", shapes.fused(),
          {whole(buffers.qkv), whole(buffers.attended), from(merged_), whole(buffers.log_sums),
           from(attention_scratch_), from(qkv_)},
          {.most_scratch = most_scratch(), .causal = false});
      builder_.need_only(needed_of_attention_gradient);
    } else {
      attention_gradient_by_gemms(name, shapes, buffers);
    }
    norm_again(attention.norm, input_of(layer), {}, buffers.statistics1, buffers.normed1, false);
    linear_gradient(attention.qkv, shapes.rows(), 3 * shapes.channels, shapes.channels,
                    buffers.normed1, qkv_, buffers.normed1);
    norm_gradient(attention.norm, input_of(layer), {}, buffers.statistics1, buffers.normed1,
                  gradient_, {}, false, true);
  }

  void time_gradients() {
    const std::int64_t width = knobs_.model.width, wide = parameters_.time_width();
    const auto through_silu = [&](const std::string& name, int x) {
      launch<kernels::SiluGradient>(name, {samples(), wide},
                                    {whole(x), whole(time_gradient_), whole(time_gradient_)});
    };
    through_silu("time embedding silu gradient", time_);
    linear_gradient(parameters_.time2(), samples(), wide, wide, time_hidden_silu_, time_gradient_,
                    time_silu_);
    std::swap(time_gradient_, time_silu_);
    through_silu("time silu gradient", time_hidden_);
    linear_gradient(parameters_.time1(), samples(), wide, width, time_features_, time_gradient_,
                    {});
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  UnetParameters parameters_;
  UpdateBuffers update_{};
  ModelEnds ends_{};
  int images_ = 0, times_ = 0, noisy_ = 0, noise_ = 0;
  int time_features_ = 0, time_hidden_ = 0, time_hidden_silu_ = 0;
  int time_ = 0, time_silu_ = 0, time_gradient_ = 0;  // the embedding, and its silu's gradient
  bool has_time_gradient_ = false;
  int conv_in_ = 0, normed_out_ = 0, statistics_out_ = 0, prediction_ = 0;
  std::vector<UnetLayerBuffers> layers_;
  std::vector<std::int64_t> places_;  // of the layers in their segments
  std::vector<int> skip_gradients_;   // one for each of the skips
  int first_ = 0, partials_ = 0, means_ = 0, column_partials_ = 0;
  int block_time_ = 0;
  int qkv_ = 0, merged_ = 0, head_gradients_ = 0, score_gradients_ = 0, attention_scratch_ = 0;
  int gradient_ = 0;        // of the stream between layers
  int other_gradient_ = 0;  // of what a layer computes inside; and its shortcut
  int nchw_ = 0;            // a copy of what a convolution made
};

}  // namespace

ModelParts build_unet(StepBuilder& builder, const Knobs& knobs, int batch,
                      std::int64_t sample_bytes) {
  return Unet(builder, knobs).build(batch, sample_bytes);
}

}  // namespace stepgate
