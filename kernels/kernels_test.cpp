// SPDX-License-Identifier: MIT
// Compares every kernel's host reference with a formula written independently here, at every shape,
// dtype and attribute of its recipe. gradients_test.cpp tests gradients, kernels_cuda_test.cpp the
// CUDA side.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/testing/bench_shapes.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/trial/kernel_trial.h"

namespace stepgate {
namespace {

TEST(Catalogue, HasATrialRecipeForEveryKernel) {
  ASSERT_EQ(kernel_catalogue().size(), trial_recipes().size());
  for (const Kernel& row : kernel_catalogue()) {
    EXPECT_EQ(&kernel(row.name), &row);
    EXPECT_EQ(trial_recipe(row.name).kernel, row.name);
  }
}

TEST(Catalogue, HasABenchmarkForEveryKernel) {
  std::map<std::string_view, KernelShape> timed;
  // An operand may be empty in some benchmarks of a kernel.
  std::set<std::pair<std::string_view, std::string_view>> empty, accessed;
  for (const BenchShape& bench : bench_shapes()) {
    timed[bench.kernel] = bench.shape;
    for (const KernelOperand& operand : kernel(bench.kernel).operands) {
      const bool any = operand_bytes(operand, bench.verified, DType::bf16, bench.attributes) > 0;
      (any ? accessed : empty).emplace(bench.kernel, operand.name);
    }
  }
  for (const auto& [kernel, operand] : empty)
    EXPECT_TRUE(accessed.contains({kernel, operand})) << kernel << ' ' << operand;
  int updates = 0;
  for (const Kernel& row : kernel_catalogue()) {
    EXPECT_TRUE(timed.contains(row.name)) << row.name;
    if (row.operands.front().name != "weights") continue;
    EXPECT_GT(elements_of(timed[row.name].to<MatrixShape>()), 100'000'000)
        << row.name << " fits into a cache";
    ++updates;
  }
  EXPECT_GT(updates, 6);
}

TEST(Catalogue, LetsOperandsShareABufferOnlyWhereTheReferenceAgrees) {
  int in_place = 0;
  for (const TrialRecipe& recipe : trial_recipes()) {
    const Kernel& row = kernel(recipe.kernel);
    const std::size_t output = operand_in_place(row);
    if (output == no_operand) continue;
    for (KernelTrial& trial : all_trials(recipe, 1)) {
      if (operand_bytes(trial, output) != operand_bytes(trial, row.operands[output].may_replace))
        continue;
      // Numbers between the elements of a record must stay, so the output starts as a copy of the
      // input.
      trial.operands[output] = trial.operands[row.operands[output].may_replace];
      KernelTrial apart = trial;
      run_reference(apart);
      run_reference_in_place(trial);
      ASSERT_EQ(apart.operands[output], trial.operands[output]) << describe(trial, 1);
      ++in_place;
    }
  }
  EXPECT_GT(in_place, 500);
}

// Compares a kernel with the formulas of `Ingest`, where `number_of` gives the float of a word.
template <class Kernel, class NumberOf>
void expect_means_and_labels(NumberOf number_of) {
  const FormulaOf<Kernel> feature = [=](const TrialOf<Kernel>& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.features;
    double sum = 0;
    int count = 0;
    for (std::int64_t word = 0; word < t.shape.words - 1; ++word) {
      if (word % t.shape.features != i % t.shape.features) continue;
      sum += number_of(value_at(t, 0, row * t.shape.words + word));
      ++count;
    }
    return sum / count;
  };
  const FormulaOf<Kernel> label = [=](const TrialOf<Kernel>& t, std::int64_t row) {
    const float word = number_of(value_at(t, 0, (row + 1) * t.shape.words - 1));
    const std::int64_t classes =
        t.attributes.classes == 0 ? t.shape.features : t.attributes.classes;
    return static_cast<double>(std::bit_cast<std::uint32_t>(word) % classes);
  };
  expect_formulas<Kernel>({{1, feature}, {2, label}});
}

TEST(Ingest, AveragesTheWordsOfEachFeatureAndTakesTheLabelFromTheLastWord) {
  expect_means_and_labels<kernels::Ingest>([](double word) { return static_cast<float>(word); });
}

TEST(DecodeImages, AveragesTheDecodedBytesOfEachFeature) {
  expect_means_and_labels<kernels::DecodeImages>(
      [](double byte) { return static_cast<float>((byte - 127.5) / 127.5); });
}

// The two kernels compute the same together, and store words in between.
TEST(DecodeImages, IsBitForBitDecodeAndThenIngest) {
  for (const kernels::Ingest::Shape shape : {kernels::Ingest::Shape{3, 48, 49}, {2, 5, 23}}) {
    const auto elements = static_cast<std::size_t>(shape.samples * shape.words);
    const auto features = static_cast<std::size_t>(shape.samples * shape.features);
    const auto samples = static_cast<std::size_t>(shape.samples);
    std::vector<std::uint8_t> bytes(elements);
    for (std::size_t i = 0; i < elements; ++i) bytes[i] = static_cast<std::uint8_t>(37 * i + 11);
    std::vector<float> words(elements), images(features), in_one(features);
    std::vector<std::int32_t> labels(samples), labels_in_one(samples);
    run_in_fp32<kernels::Decode>({.rows = shape.samples, .columns = shape.words}, {},
                                 {bytes.data(), words.data()});
    run_in_fp32<kernels::Ingest>(shape, {10}, {words.data(), images.data(), labels.data()});
    run_in_fp32<kernels::DecodeImages>(shape, {10},
                                       {bytes.data(), in_one.data(), labels_in_one.data()});
    EXPECT_EQ(in_one, images);
    EXPECT_EQ(labels_in_one, labels);
    bytes.front() ^= 1;  // a byte that is read must tell
    bytes.back() ^= 1;
    run_in_fp32<kernels::DecodeImages>(shape, {10},
                                       {bytes.data(), in_one.data(), labels_in_one.data()});
    EXPECT_NE(in_one, images);
    EXPECT_NE(labels_in_one, labels);
  }
}

TEST(Convert, CopiesNumbersOfEitherFormat) {
  const Formula same = [](const KernelTrial& t, std::int64_t i) { return value_at(t, 0, i); };
  expect_formulas("widen", {{1, same}});
  expect_formulas("narrow", {{1, same}});
}

TEST(Decode, SpreadsBytesFromMinusOneToOne) {
  expect_formulas("decode", {{1, [](const KernelTrial& t, std::int64_t i) {
                                return (value_at(t, 0, i) - 127.5) / 127.5;
                              }}});
}

TEST(Decode, IsOnTheDeviceWhatTheReferenceSaysOfEveryByte) {
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::vector<float> words(bytes.size());
  run_in_fp32<kernels::Decode>({.rows = 2, .columns = 128}, {}, {bytes.data(), words.data()});
  for (const std::uint8_t byte : bytes) EXPECT_EQ(words[byte], decoded(byte)) << int{byte};
  EXPECT_EQ(words.front(), -1);
  EXPECT_EQ(words.back(), 1);
}

// Folds the words of a sample that belong to `place`, multiplies by the golden ratio, and scales
// the fractional part to [0, values).
double index_of_words(const TrialOf<kernels::IngestIndices>& t, std::int64_t sample,
                      std::int64_t place, std::int64_t values) {
  std::uint32_t folded = 0;
  for (std::int64_t word = 0; word < t.shape.words; ++word) {
    if (word % (t.shape.tables + 1) != place) continue;
    folded ^= static_cast<std::uint32_t>(value_at(t, 0, sample * t.shape.words + word));
  }
  const double fraction = folded * 0x9e3779b1u;
  return std::floor(fraction * static_cast<double>(values) / 0x1p32);
}

TEST(IngestIndices, FoldsTheWordsOfEachTableAndOfTheLabel) {
  const FormulaOf<kernels::IngestIndices> index = [](const TrialOf<kernels::IngestIndices>& t,
                                                     std::int64_t i) {
    const auto told = t.attributes;
    if (told.by_table)
      return index_of_words(t, i % t.shape.samples, i / t.shape.samples, told.table_rows);
    const std::int64_t table = i % t.shape.tables;
    return static_cast<double>(table * told.table_rows) +
           index_of_words(t, i / t.shape.tables, table, told.table_rows);
  };
  const FormulaOf<kernels::IngestIndices> label = [](const TrialOf<kernels::IngestIndices>& t,
                                                     std::int64_t sample) {
    return index_of_words(t, sample, t.shape.tables, t.attributes.classes);
  };
  expect_formulas<kernels::IngestIndices>({{1, index}, {2, label}});
}

TEST(Matmul, SumsProductsOverTheInnerDimension) {
  const FormulaOf<kernels::Matmul> element = [](const TrialOf<kernels::Matmul>& t, std::int64_t i) {
    const auto [m, n, k, groups] = t.shape;
    const std::int64_t group = i / (m * n);
    const std::int64_t row = i / n % m, column = i % n;
    double sum = t.attributes.accumulate ? value_at(t, 2, i) : 0;
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const auto a = t.attributes.transpose_a ? inner * m + row : row * k + inner;
      const auto b = t.attributes.transpose_b ? column * k + inner : inner * n + column;
      sum += value_at(t, 0, group * m * k + a) * value_at(t, 1, group * k * n + b);
    }
    return sum;
  };
  expect_formulas<kernels::Matmul>({{2, element}});
}

TEST(Linear, AddsTheBiasToTheProductWithTheTransposedWeight) {
  const FormulaOf<kernels::Linear> y = [](const TrialOf<kernels::Linear>& t, std::int64_t i) {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    double sum = value_at(t, 2, column);
    for (std::int64_t inner = 0; inner < t.shape.depth; ++inner) {
      sum += value_at(t, 0, row * t.shape.depth + inner) *
             value_at(t, 1, column * t.shape.depth + inner);
    }
    return sum;
  };
  expect_formulas<kernels::Linear>({{3, y}});
}

TEST(BiasActivation, AddsTheBiasOfTheColumnAndCutsAtZero) {
  const FormulaOf<kernels::BiasActivation> y = [](const TrialOf<kernels::BiasActivation>& t,
                                                  std::int64_t i) {
    const double sum = value_at(t, 0, i) + value_at(t, 1, i % t.shape.columns);
    return t.attributes.relu ? std::max(sum, 0.0) : sum;
  };
  expect_formulas<kernels::BiasActivation>({{2, y}});
}

TEST(Relu, KeepsWhatIsPositive) {
  const FormulaOf<kernels::Relu> y = [](const TrialOf<kernels::Relu>& t, std::int64_t i) {
    return std::max(value_at(t, 0, i), 0.0);
  };
  expect_formulas<kernels::Relu>({{1, y}});
}

TEST(ReluGradient, PassesWhereTheActivationWasPositive) {
  const Formula dx = [](const KernelTrial& t, std::int64_t i) {
    return value_at(t, 0, i) > 0 ? value_at(t, 1, i) : 0;
  };
  expect_formulas("relu_gradient", {{2, dx}});
}

TEST(BiasGradient, SumsEachColumn) {
  const FormulaOf<kernels::BiasGradient> db = [](const TrialOf<kernels::BiasGradient>& t,
                                                 std::int64_t column) {
    double sum = t.attributes.accumulate ? value_at(t, 1, column) : 0;
    for (std::int64_t row = t.shape.rows - 1; row >= 0; --row) {
      sum += value_at(t, 0, row * t.shape.columns + column);
    }
    return sum;
  };
  expect_formulas<kernels::BiasGradient>({{1, db}});
}

double exponential_sum(const TrialOf<kernels::CrossEntropy>& t, std::int64_t row) {
  double sum = 0;
  for (std::int64_t c = 0; c < t.shape.columns; ++c) {
    sum += std::exp(value_at(t, 0, row * t.shape.columns + c));
  }
  return sum;
}

// Formula of the gradient, with the operand of the scale, if the kernel has one.
FormulaOf<kernels::CrossEntropy> cross_entropy_gradient(std::optional<std::size_t> scale) {
  return [=, sum = 0.0](const TrialOf<kernels::CrossEntropy>& t, std::int64_t i) mutable {
    const std::int64_t row = i / t.shape.columns, column = i % t.shape.columns;
    if (column == 0) sum = exponential_sum(t, row);
    const bool is_label = static_cast<double>(column) == value_at(t, 1, row);
    const double factor = scale ? value_at(t, *scale, 0) : 1;
    const std::int64_t of_mean = t.attributes.rows_of_mean;
    const auto rows = static_cast<double>(of_mean > 0 ? of_mean : t.shape.rows);
    return factor * (std::exp(value_at(t, 0, i)) / sum - is_label) / rows;
  };
}

double cross_entropy_loss(const TrialOf<kernels::CrossEntropy>& t, std::int64_t row) {
  const auto label = static_cast<std::int64_t>(value_at(t, 1, row));
  const double logit = value_at(t, 0, row * t.shape.columns + label);
  return -std::log(std::exp(logit) / exponential_sum(t, row));
}

TEST(CrossEntropy, IsTheNegativeLogarithmOfTheLabelsProbability) {
  expect_formulas<kernels::CrossEntropy>(
      {{2, cross_entropy_gradient(std::nullopt)}, {3, cross_entropy_loss}});
}

TEST(ScaledCrossEntropy, ScalesTheGradientButNotTheLoss) {
  expect_formulas<kernels::ScaledCrossEntropy>(
      {{3, cross_entropy_gradient(2)}, {4, cross_entropy_loss}});
}

// GEMMs prefer a table with more rows than the vocabulary has tokens: the columns beyond the
// classes must not affect any result.
TEST(CrossEntropy, IgnoresColumnsBeyondTheClasses) {
  constexpr std::int64_t rows = 5, classes = 7, columns = 12;
  KernelTrial padded = make_trial<kernels::CrossEntropy>(
      {rows, columns}, DType::fp32, kernels::CrossEntropy::Attributes{.classes = classes}, 3);
  KernelTrial alone = make_trial<kernels::CrossEntropy>({rows, classes}, DType::fp32, {}, 3);
  auto* wide = reinterpret_cast<float*>(padded.operands[0].data());
  auto* narrow = reinterpret_cast<float*>(alone.operands[0].data());
  auto* wide_labels = reinterpret_cast<std::int32_t*>(padded.operands[1].data());
  const auto* labels = reinterpret_cast<const std::int32_t*>(alone.operands[1].data());
  for (std::int64_t row = 0; row < rows; ++row) {
    wide_labels[row] = labels[row];
    for (std::int64_t c = 0; c < columns; ++c) {
      wide[row * columns + c] = c < classes ? narrow[row * classes + c] : 1000.0f;
    }
  }
  run_reference(padded);
  run_reference(alone);
  for (std::int64_t row = 0; row < rows; ++row) {
    EXPECT_EQ(value_at(padded, 3, row), value_at(alone, 3, row));
    for (std::int64_t c = 0; c < columns; ++c) {
      const double expected = c < classes ? value_at(alone, 2, row * classes + c) : 0;
      EXPECT_EQ(value_at(padded, 2, row * columns + c), expected) << row << ' ' << c;
    }
  }
}

// A negative label marks padding, as PyTorch's ignore_index does: the logits of such a row must not
// affect any result.
TEST(CrossEntropy, LeavesRowsOfPaddingOut) {
  constexpr std::int64_t rows = 4, columns = 9;
  const kernels::CrossEntropy::Attributes of_two{.rows_of_mean = 2};
  KernelTrial padded = make_trial<kernels::CrossEntropy>({rows, columns}, DType::fp32, of_two, 3);
  KernelTrial counted = padded;
  auto* labels = reinterpret_cast<std::int32_t*>(padded.operands[1].data());
  labels[1] = labels[3] = -1;
  run_reference(padded);
  run_reference(counted);
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool is_padding = row % 2 == 1;
    EXPECT_NE(value_at(counted, 3, row), 0);
    EXPECT_EQ(value_at(padded, 3, row), is_padding ? 0 : value_at(counted, 3, row));
    for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i)
      EXPECT_EQ(value_at(padded, 2, i), is_padding ? 0 : value_at(counted, 2, i)) << i;
  }
}

TEST(ReportLoss, WritesTheMeanWhereTheCounterPointsAndCounts) {
  const auto mean = [](const TrialOf<kernels::ReportLoss>& t) {
    double sum = 0;
    for (std::int64_t row = 0; row < t.shape.rows; ++row) sum += value_at(t, 0, row);
    const std::int64_t told = t.attributes.rows_of_mean;
    return sum / static_cast<double>(told > 0 ? told : t.shape.rows);
  };
  const auto is_entry = [](const TrialOf<kernels::ReportLoss>& t, std::int64_t i) {
    return static_cast<std::int64_t>(value_at(t, 4, 0)) %
               static_cast<std::int64_t>(t.attributes.capacity) ==
           i;
  };
  expect_formulas<kernels::ReportLoss>(
      {{1, [=](const TrialOf<kernels::ReportLoss>& t, std::int64_t) { return mean(t); }},
       {2, [=](const TrialOf<kernels::ReportLoss>& t,
               std::int64_t i) { return is_entry(t, i) ? mean(t) : value_at(t, 2, i); }},
       {3, [=](const TrialOf<kernels::ReportLoss>& t,
               std::int64_t i) { return is_entry(t, i) ? 0 : value_at(t, 3, i); }},
       {4,
        [](const TrialOf<kernels::ReportLoss>& t, std::int64_t) { return value_at(t, 4, 0) + 1; }},
       {5, [=](const TrialOf<kernels::ReportLoss>& t, std::int64_t i) {
          return is_entry(t, i / 2) ? 0 : value_at(t, 5, i);
        }}});
}

TEST(AccumulateLoss, AddsTheLoss) {
  expect_formulas("accumulate_loss", {{1, [](const KernelTrial& t, std::int64_t) {
                                         return value_at(t, 0, 0) + value_at(t, 1, 0);
                                       }}});
}

TEST(MeanLoss, DividesByTheCountAndStartsAgain) {
  expect_formulas("mean_loss",
                  {{0, [](const KernelTrial&, std::int64_t) { return 0.0; }},
                   {1, [](const KernelTrial& t, std::int64_t) {
                      return value_at(t, 0, 0) /
                             static_cast<double>(t.attributes.as<kernels::MeanLoss>().count);
                    }}});
}

TEST(Sgd, StepsAgainstTheGradient) {
  expect_formulas("sgd", {{0, [](const KernelTrial& t, std::int64_t i) {
                             return value_at(t, 0, i) -
                                    t.attributes.as<kernels::Sgd>().learning_rate *
                                        value_at(t, 1, i);
                           }}});
}

TEST(MovingAverage, KeepsADecayOfItselfAndTakesInTheRestOfTheWeights) {
  expect_formulas("moving_average",
                  {{0, [](const KernelTrial& t, std::int64_t i) {
                      const double decay = t.attributes.as<kernels::MovingAverage>().decay;
                      return decay * value_at(t, 0, i) + (1 - decay) * value_at(t, 1, i);
                    }}});
}

TEST(AdamW, FollowsTheTextbookUpdate) {
  const Formula m = [](const KernelTrial& t, std::int64_t i) {
    return t.attributes.as<kernels::Adamw>().beta1 * value_at(t, 2, i) +
           (1 - t.attributes.as<kernels::Adamw>().beta1) * value_at(t, 1, i);
  };
  const Formula v = [](const KernelTrial& t, std::int64_t i) {
    const double gradient = value_at(t, 1, i);
    return t.attributes.as<kernels::Adamw>().beta2 * value_at(t, 3, i) +
           (1 - t.attributes.as<kernels::Adamw>().beta2) * gradient * gradient;
  };
  const Formula weights = [=](const KernelTrial& t, std::int64_t i) {
    const double step = value_at(t, 4, 0);
    const double m_hat = m(t, i) / (1 - std::pow(t.attributes.as<kernels::Adamw>().beta1, step));
    const double v_hat = v(t, i) / (1 - std::pow(t.attributes.as<kernels::Adamw>().beta2, step));
    const double decayed =
        value_at(t, 0, i) * (1 - t.attributes.as<kernels::Adamw>().learning_rate *
                                     t.attributes.as<kernels::Adamw>().weight_decay);
    return decayed - t.attributes.as<kernels::Adamw>().learning_rate * m_hat /
                         (std::sqrt(v_hat) + t.attributes.as<kernels::Adamw>().epsilon);
  };
  expect_formulas("adamw", {{0, weights}, {2, m}, {3, v}});
}

TEST(StridedScale, ScalesTheFirstFieldOfEveryRecordAndLeavesTheOthers) {
  const Formula scaled = [](const KernelTrial& t, std::int64_t i) {
    const auto fields_from =
        static_cast<std::int64_t>(t.attributes.as<kernels::StridedScale>().fields_from);
    const auto fields_to =
        static_cast<std::int64_t>(t.attributes.as<kernels::StridedScale>().fields_to);
    if (i % fields_to != 0) return value_at(t, 1, i);
    return t.attributes.as<kernels::StridedScale>().factor *
           value_at(t, 0, i / fields_to * fields_from);
  };
  expect_formulas("strided_scale", {{1, scaled}});
}

// Counts the sectors thread by thread.
std::int64_t sectors_of_a_warp(std::int64_t distance_bytes, std::int64_t number_bytes) {
  std::set<std::int64_t> sectors;
  for (std::int64_t thread = 0; thread < 32; ++thread) {
    sectors.insert(thread * distance_bytes / 32);
    sectors.insert((thread * distance_bytes + number_bytes - 1) / 32);
  }
  return static_cast<std::int64_t>(sectors.size());
}

TEST(StridedScale, KnowsTheSectorsThatAWarpTouches) {
  EXPECT_EQ(sectors_per_request(4, 4), 4);
  EXPECT_EQ(sectors_per_request(24, 4), 24);
  EXPECT_EQ(sectors_per_request(32 * 4, 4), 32);
  for (const std::int64_t number : {2, 4}) {
    for (std::int64_t apart = 1; apart <= 6 * 32; ++apart) {
      EXPECT_EQ(sectors_per_request(apart * number, number),
                sectors_of_a_warp(apart * number, number))
          << apart << " numbers of " << number << " bytes";
    }
  }
}

TEST(StridedScale, MovesWholeSectors) {
  const kernels::StridedScale::Attributes one_field = {2, 1, 1}, into_records = {2, 1, 6};
  const KernelWork useful = work_of(kernel("strided_scale"), kernels::StridedScale::Shape{64, 64},
                                    DType::fp32, one_field);
  const auto moved = [](std::int64_t stride, DType dtype,
                        const kernels::StridedScale::Attributes& attributes) {
    const KernelWork work = strided_scale_traffic({64, 64, stride}, dtype, attributes);
    return std::pair(work.bytes_read, work.bytes_written);
  };
  EXPECT_EQ(moved(1, DType::fp32, one_field), std::pair(useful.bytes_read, useful.bytes_written));
  EXPECT_EQ(moved(32, DType::fp32, one_field),
            std::pair(8 * useful.bytes_read, 8 * useful.bytes_written));
  EXPECT_EQ(moved(1, DType::fp32, into_records),
            std::pair(useful.bytes_read, 6 * useful.bytes_written));
  // A sector of 32 bytes is 16 times a bf16 number, and 8 times the fp32 number that `useful`
  // counts.
  EXPECT_EQ(moved(16, DType::bf16, one_field),
            std::pair(8 * useful.bytes_read, 8 * useful.bytes_written));
}

TEST(Chase, HasOneCycleThroughAllLines) {
  for (const std::uint64_t seed : {0ull, 1ull, 0x123456789abcdefull, ~0ull}) {
    for (std::int64_t lines = 4; lines <= 1 << 22; lines *= 2) {
      std::vector<bool> visited(static_cast<std::size_t>(lines));
      std::uint32_t line = 0;
      for (std::int64_t access = 0; access < lines; ++access) {
        ASSERT_FALSE(visited[line]) << lines << " lines, seed " << seed;
        visited[line] = true;
        line = next_line(line, lines, seed);
      }
      EXPECT_EQ(line, 0u) << lines << " lines, seed " << seed;
    }
  }
}

TEST(Chase, GoesOnWhereTheLastLaunchEnded) {
  constexpr std::int64_t lines = 64;
  constexpr std::uint64_t seed = 99;
  std::vector<std::uint32_t> chain(lines * chase_line_words, 0xffffffff);
  for (std::uint64_t line = 0; line < lines; ++line)
    chain[line * chase_line_words] = next_line(line, lines, seed);
  std::uint32_t position = 5;
  std::uint32_t expected = position;
  float fraction = 0;
  for (const std::int64_t accesses : {1, 0, 7, 64, 200}) {
    run_in_fp32<kernels::Chase>({.lines = lines}, {.accesses = accesses},
                                {chain.data(), &position, &fraction});
    for (std::int64_t access = 0; access < accesses; ++access)
      expected = next_line(expected, lines, seed);
    EXPECT_EQ(position, expected) << accesses;
    EXPECT_EQ(fraction, static_cast<float>(expected) / lines) << accesses;
  }
}

TEST(Spin, CountsOnTheHostWithoutSpinning) {
  expect_formulas("spin", {{0, [](const KernelTrial& t, std::int64_t) {
                              return std::fmod(value_at(t, 0, 0) + 1, 4294967296.0);
                            }}});
}

}  // namespace
}  // namespace stepgate
