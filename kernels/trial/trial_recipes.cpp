// SPDX-License-Identifier: MIT
// The table of recipes. A new kernel needs one row here.
#include <cstdio>
#include <cstdlib>

#include "kernels/kernels.h"
#include "kernels/trial/recipe_parts.h"

namespace stepgate {
namespace {

using namespace recipe_parts;

constexpr double flat = -6;  // lower limit for gelu, which is flat there

const std::vector<kernels::Adamw::Attributes> adamw_rules = {{1e-2, 0.9, 0.999, 1e-8, 0.01},
                                                             {1e-1, 0.5, 0.9, 1e-3, 0}};
const std::vector<kernels::Lion::Attributes> lion_rules = {{1e-2, 0.9, 0.99, 0.1},
                                                           {1e-1, 0.5, 0.25, 0}};
const std::vector<kernels::Momentum::Attributes> momentum_rules = {{1e-2, 0.9, 0.1},
                                                                   {0.5, 0.25, 0}};

template <class Kernel>
TrialRecipe recipe(const std::vector<typename Kernel::Shape>& shapes,
                   std::vector<typename Kernel::Attributes> attributes = {{}},
                   std::map<std::size_t, double> lowest = {},
                   void (*settle)(KernelTrial&) = nullptr) {
  return {.kernel = Kernel::name,
          .shapes = {shapes.begin(), shapes.end()},
          .attributes = {attributes.begin(), attributes.end()},
          .lowest = std::move(lowest),
          .settle = settle};
}

// Says which operands have the device's clocks.
TrialRecipe with_clocks(TrialRecipe made, std::size_t clock, std::size_t stamps) {
  made.clock = clock;
  made.stamps = stamps;
  return made;
}

// fp8 is beside bf16 alone.
TrialRecipe beside_bf16(TrialRecipe made) {
  made.dtypes = {DType::bf16};
  return made;
}

template <ForeachPass pass>
TrialRecipe foreach_recipe(std::map<std::size_t, double> lowest = {}) {
  return recipe<kernels::Foreach<pass>>(matrices, adamw_rules, std::move(lowest));
}

// Appends all kernels of a rule; second moments are not negative.
template <class Rule>
void append_updates(std::vector<TrialRecipe>& all,
                    const std::vector<typename Rule::Attributes>& rules,
                    void (*settle)(KernelTrial&) = nullptr) {
  for (const UpdateKind kind : update_kinds) {
    TrialRecipe made = recipe<Rule>(matrices, rules, {}, settle);
    made.kernel = update_name<Rule>(kind);
    if (Rule::moments > 1) made.lowest[kind == UpdateKind::master ? 4 : 3] = 0;
    all.push_back(made);
  }
}

std::vector<TrialRecipe> make_recipes() {
  const std::vector<NormAttributes> epsilons = {{1e-5}, {0.5}};
  const std::vector<NormGradientAttributes> norm_gradients = {
      {false, false}, {true, false}, {false, true}, {true, true}};
  const std::vector<ReluAttributes> relus = {{false}, {true}};
  const std::vector<SiluAttributes> silus = {{false}, {true}};
  const std::vector<WindowAttributes> windows = {{3, 2, 1}, {2, 2, 0}, {2, 1, 1}};
  const std::vector<kernels::MeanPool::Shape> images_of_pixels = {
      {1, 1, 1}, {3, 49, 33}, {2, 7, 264}, {5, 16, 64}, {2, 1, 2048}, {33, 4, 8}};
  std::vector<kernels::SumPixels::Shape> images_of_many_pixels = images_of_pixels;
  images_of_many_pixels.push_back({2, 1000, 72});
  std::vector<kernels::TimeBias::Shape> images_of_samples;
  for (const auto& [images, pixels, columns] : images_of_many_pixels)
    images_of_samples.push_back({images, pixels, columns});
  const std::vector<kernels::AddNoise::Shape> noisy_samples = {{1, 2},   {3, 6},    {5, 34},
                                                               {7, 128}, {33, 130}, {2, 3072}};
  const std::vector<kernels::Ingest::Shape> ingested = {
      {1, 1, 2},      {3, 2, 3},      {5, 7, 8},      {4, 8, 12},    {2, 8, 64},      {6, 33, 100},
      {64, 256, 257}, {64, 256, 260}, {7, 100, 3001}, {9, 64, 4096}, {33, 1024, 1025}};
  std::vector<TrialRecipe> all = {
      recipe<kernels::Ingest>(ingested, {{0}, {10}, {1000}}),
      recipe<kernels::DecodeImages>(ingested, {{0}, {10}, {1000}}),
      recipe<kernels::IngestTokens>({{1, 1, 2},
                                     {3, 2, 3},
                                     {5, 7, 8},
                                     {2, 8, 61},
                                     {6, 33, 100},
                                     {4, 255, 1000},
                                     {3, 256, 257},
                                     {2, 31, 4096},
                                     {7, 1023, 1025}},
                                    {{1}, {97}, {50304}, {97, 1}}),
      recipe<kernels::IngestIndices>({{1, 1, 2},
                                      {3, 2, 3},
                                      {5, 7, 8},
                                      {2, 8, 61},
                                      {6, 33, 100},
                                      {300, 5, 6},
                                      {3, 256, 257},
                                      {7, 1023, 1025}},
                                     {{1, 2, true}, {97, 8, false}, {100000, 4096, true}}),
      recipe<kernels::Decode>(matrices),
      recipe<kernels::Widen>({{1}, {3}, {7}, {8}, {31}, {257}, {4096}, {70001}}),
      recipe<kernels::Narrow>({{1}, {3}, {7}, {8}, {31}, {257}, {4096}, {70001}}),
      recipe<kernels::AddNoise>(noisy_samples),
      recipe<kernels::TimeEmbedding>(noisy_samples),
      recipe<kernels::Embedding>(sequences),
      recipe<kernels::TokenEmbedding>(looked_up),
      recipe<kernels::EmbeddingGradient>(repeated),
      recipe<kernels::Add>(matrices),
      recipe<kernels::Gelu>(matrices, {{}}, {{0, flat}}),
      recipe<kernels::GeluGradient>(several_numbers, {{}}, {{0, flat}}),
      recipe<kernels::BiasGelu>(matrices),
      recipe<kernels::Silu>(matrices, {{}}, {{0, flat}}),
      recipe<kernels::SiluGradient>(several_numbers, {{}}, {{0, flat}}),
      recipe<kernels::Swiglu>(matrices, {{}}, {{0, flat}}),
      recipe<kernels::SwigluGradient>(several_numbers, {{}}, {{0, flat}}),
      recipe<kernels::LayerNorm>(normed_matrices, epsilons),
      recipe<kernels::ResidualLayerNorm>(normed_matrices, epsilons),
      recipe<kernels::ResidualBiasLayerNorm>(normed_matrices, epsilons),
      recipe<kernels::LayerNormGradient>(parts_of_matrices, norm_gradients, {{3, 0.5}}),
      recipe<kernels::RmsNorm>(normed_matrices, epsilons),
      recipe<kernels::ResidualRmsNorm>(normed_matrices, epsilons),
      recipe<kernels::ResidualBiasRmsNorm>(normed_matrices, epsilons),
      recipe<kernels::RmsNormGradient>(parts_of_matrices, norm_gradients, {{3, 0.5}}),
      recipe<kernels::BatchNormSums>(parts_of_rows),
      recipe<kernels::BatchNormFinish>(parts_of_rows, {{1e-5, 0.1}, {0.5, 0.75}}, {{5, 0}},
                                       sum_a_matrix),
      recipe<kernels::BatchNormApply>(matrices, relus, {}, norm_exactly),
      recipe<kernels::BatchNormAddApply>(matrices, {{}}, {}, norm_exactly),
      recipe<kernels::BatchNormTwoApply>(matrices, {{}}, {}, norm_exactly),
      recipe<kernels::BatchNormGradientSums>(parts_of_rows, relus, {}, norm_exactly),
      recipe<kernels::BatchNormAddGradientSums>(parts_of_rows, {{}}, {}, norm_exactly_with_mask),
      recipe<kernels::BatchNormGradientFinish>(parts_of_rows, {{false}, {true}}),
      recipe<kernels::BatchNormGradientApply>(several_numbers, relus, {}, norm_exactly),
      recipe<kernels::GroupNormSums>(parts_of_grouped_images),
      recipe<kernels::GroupNormFinish>(parts_of_grouped_images, {{1e-5}, {0.5}}, {}, sum_an_image),
      recipe<kernels::GroupNormApply>(grouped_images, silus, {{2, 0.25}}),
      recipe<kernels::GroupNormGradientSums>(parts_of_grouped_images, silus, {{3, 0.25}}),
      recipe<kernels::GroupNormGradientFinish>(parts_of_grouped_images, {{false}, {true}}),
      recipe<kernels::GroupNormGradientApply>(
          grouped_images, {{false, false}, {true, false}, {false, true}, {true, true}},
          {{3, 0.25}}),
      recipe<kernels::NormPool>(pooled_images, windows, {}, norm_exactly),
      recipe<kernels::MaxPool>(pooled_images, windows),
      recipe<kernels::MaxPoolGradient>(pooled_images, windows, {}, choose_of_images),
      recipe<kernels::NormPoolGradient>(pooled_images, windows, {}, choose_of_windows),
      recipe<kernels::MeanPool>(images_of_pixels),
      recipe<kernels::MeanPoolGradient>(images_of_pixels),
      recipe<kernels::SumPixels>(images_of_many_pixels),
      // Rows and columns that packs of 8, 4, 2 and 1 numbers divide, within a square and over
      // several.
      recipe<kernels::ChangeLayout>({{1, 1, 1},
                                     {2, 49, 72},
                                     {1, 196, 64},
                                     {3, 12, 3},
                                     {2, 64, 130},
                                     {1, 129, 66},
                                     {2, 200, 33},
                                     {5, 7, 264}}),
      recipe<kernels::Upsample>(enlarged_images),
      recipe<kernels::UpsampleGradient>(enlarged_images),
      recipe<kernels::SumParts>(
          {{1, 1}, {1, 7}, {31, 2}, {33, 40}, {257, 264}, {1536, 64}, {4099, 3}},
          {{false}, {true}}),
      recipe<kernels::Matmul>({{1, 1, 1},
                               {1, 7, 3},
                               {5, 1, 9},
                               {17, 33, 65},
                               {64, 64, 64},
                               {130, 72, 200},
                               {16, 24, 8, 3},
                               {5, 7, 3, 4},
                               {40, 64, 32, 17}},
                              {{},
                               {true},
                               {false, true},
                               {true, true, true},
                               {true, false, true},
                               {false, true, false, 24}}),
      recipe<kernels::Convolution>(convolutions),
      recipe<kernels::ConvolutionDataGradient>(convolutions),
      recipe<kernels::ConvolutionWeightGradient>(convolutions, {{false}, {true}}),
      recipe<kernels::Linear>(
          {{1, 1, 1}, {1, 8, 8}, {5, 1, 9}, {17, 33, 65}, {64, 64, 64}, {130, 72, 200}}),
      recipe<kernels::LinearGelu>(gemms_with_gelu),
      recipe<kernels::MatmulGeluGradient>(gemms_with_gelu),
      beside_bf16(recipe<kernels::MatmulFp8>(
          gemms_in_fp8, {{}, {true}, {false, true}, {true, true}, {true, false, 24}},
          {{2, 0.25}, {3, 0.25}}, be_fp8)),
      beside_bf16(recipe<kernels::LinearFp8>(gemms_in_fp8, {{}}, {{2, 0.25}, {3, 0.25}}, be_fp8)),
      beside_bf16(recipe<kernels::AmaxParts>(
          {{1, 1}, {7, 1}, {64, 11}, {4099, 2}, {20001, 3}, {100003, 25}, {262144, 64}})),
      beside_bf16(recipe<kernels::QuantizeFp8>({{1, 1, 1},
                                                {3, 7, 2},
                                                {16, 16, 1},
                                                {33, 130, 5},
                                                {128, 128, 256},
                                                {144, 272, 528},
                                                {130, 144, 600},
                                                {272, 127, 3}},
                                               {{false}, {true}}, {{1, 0.25}})),
      beside_bf16(recipe<kernels::QuantizeFp8Delayed>(
          {{1, 1}, {3, 7}, {16, 16}, {33, 130}, {144, 272}, {130, 144}, {272, 127}},
          {{false}, {true}}, {{1, 0.25}})),
      beside_bf16(recipe<kernels::MoveAmaxHistories>({{1}, {3}, {200}})),
      recipe<kernels::Rope>(
          rows_of_turned_heads,
          {{2}, {8, 10000, true}, {40, 500000}, {48}, {64}, {64, 10000, true}, {256}}),
      recipe<kernels::RepeatHeads>(rows_of_shared_heads, {{1}, {2}, {4}}),
      recipe<kernels::RepeatHeadsGradient>(rows_of_shared_heads, {{1}, {2}, {4}}),
      recipe<kernels::SplitHeads>(sequences_of_heads(), {{1}, {3}}),
      recipe<kernels::CausalSoftmax>(square_matrices(), {{1}, {0.125}}),
      recipe<kernels::CausalSoftmaxGradient>(square_matrices(), {{1}, {0.125}}, {},
                                             become_probabilities<true>),
      recipe<kernels::Softmax>(several_numbers, {{1}, {0.125}}),
      recipe<kernels::SoftmaxGradient>(several_numbers, {{1}, {0.125}}, {},
                                       become_probabilities<false>),
      recipe<kernels::MergeHeads>(sequences_of_heads(), {{1}, {3}}),
      recipe<kernels::Attention>(sequences_to_attend(), {{true}, {false}}),
      recipe<kernels::AttentionGradient>(sequences_to_attend(), {{}, {.causal = false}}, {},
                                         attend),
      recipe<kernels::BiasActivation>(matrices, {{false}, {true}}),
      recipe<kernels::Relu>(matrices),
      recipe<kernels::ReluGradient>(matrices),
      recipe<kernels::TimeBias>(images_of_samples),
      recipe<kernels::ResidualBias>(images_of_samples),
      recipe<kernels::BiasGradient>(summed_matrices, {{false}, {true}}),
      recipe<kernels::ColumnParts>(parts_of_matrices),
      recipe<kernels::CrossEntropy>(classified_matrices, {{0}, {5000}}),
      recipe<kernels::ScaledCrossEntropy>(classified_matrices, {{0}, {5000}}, {{2, 0.5}}),
      recipe<kernels::SquaredError>(matrices),
      with_clocks(
          recipe<kernels::ReportLoss>({{1}, {3}, {64}, {255}, {257}, {4096}}, {{1}, {5}, {5, 2}}),
          3, 5),
      recipe<kernels::AccumulateLoss>({{}}),
      recipe<kernels::MeanLoss>({{}}, {{1}, {7}}),
      recipe<kernels::Sgd>(matrices, {{0.125}, {0.01}}),
      recipe<kernels::MovingAverage>(matrices, {{0.75}, {0.999}}),
      recipe<kernels::SquareSums>({{1, 1},
                                   {7, 1},
                                   {33, 1},
                                   {64, 11},
                                   {4096, 1},
                                   {4099, 2},
                                   {20001, 3},
                                   {100003, 25},
                                   {262144, 64}}),
      recipe<kernels::Clip>({{1}, {33}, {512}, {1584}},
                            {{1, 2000, 2, 0.5}, {0, 3, 2, 0.5}, {1e6, 0, 2, 0.5}}, {{0, 0}}),
      foreach_recipe<ForeachPass::unscale>(),
      foreach_recipe<ForeachPass::decay>(),
      foreach_recipe<ForeachPass::lerp>(),
      foreach_recipe<ForeachPass::mul>({{0, 0}}),
      foreach_recipe<ForeachPass::addcmul>({{0, 0}}),
      foreach_recipe<ForeachPass::sqrt>({{1, 0}}),
      foreach_recipe<ForeachPass::div>({{0, 0}}),
      foreach_recipe<ForeachPass::add>({{0, 0}}),
      foreach_recipe<ForeachPass::addcdiv>({{2, 0.1}}),
      recipe<kernels::StridedScale>({{1, 1, 1},
                                     {3, 7, 1},
                                     {5, 8, 2},
                                     {4, 32, 4},
                                     {1, 32, 32},
                                     {33, 64, 32},
                                     {129, 130, 3},
                                     {7, 1024, 7},
                                     {65, 256, 8},
                                     {1, 4099, 1}},
                                    {{0.3, 1, 1}, {-2, 6, 6}, {0.75, 1, 6}, {3, 6, 1}}, {},
                                    fill_between_elements),
      recipe<kernels::Spin>({{}}, {{0}, {20}}),
      recipe<kernels::Chase>({{4}, {128}, {16384}}, {{1000}, {1}}, {}, link_lines),
  };
  append_updates<kernels::Adamw>(all, adamw_rules);
  append_updates<kernels::Lion>(all, lion_rules, keep_from_zero);
  append_updates<kernels::Momentum>(all, momentum_rules);
  return all;
}

}  // namespace

std::span<const TrialRecipe> trial_recipes() {
  static const std::vector<TrialRecipe> recipes = make_recipes();
  return recipes;
}

const TrialRecipe& trial_recipe(std::string_view name) {
  for (const TrialRecipe& candidate : trial_recipes()) {
    if (candidate.kernel == name) return candidate;
  }
  std::fprintf(stderr, "no trial recipe for '%.*s'\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace stepgate
