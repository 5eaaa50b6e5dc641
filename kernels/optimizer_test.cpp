// SPDX-License-Identifier: MIT
// Tests kernels of an update that a control steers on the device. Each reference is compared with a
// formula written independently here, also in cases that random numbers do not reach.
// kernels_test.cpp tests AdamW without a control.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/testing/expect_formulas.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

double control_of(const KernelTrial& t, std::int64_t index) {
  return value_at(t, t.operands.size() - 1, index);
}

bool is_skipped(const KernelTrial& t) {
  return control_of(t, update_control::factor) == 0;
}

// The formula, or the old value where the update is skipped.
Formula unless_skipped(std::size_t operand, Formula formula) {
  return [=](const KernelTrial& t, std::int64_t i) {
    return is_skipped(t) ? value_at(t, operand, i) : formula(t, i);
  };
}

// Compares the kernel with these formulas; where there is a master, operand 2, the weights follow
// it.
void expect_rule(std::string_view kernel, std::map<std::size_t, Formula> formulas, bool has_master,
                 bool controlled) {
  if (has_master) formulas[0] = formulas.at(2);
  if (controlled) {
    for (auto& [target, formula] : formulas) formula = unless_skipped(target, formula);
  }
  expect_formulas(kernel, formulas);
}

struct AdamwOperands {
  std::size_t weights, m, v;
};

void expect_adamw(std::string_view kernel, const AdamwOperands& at, bool has_master) {
  const auto gradient = [](const KernelTrial& t, std::int64_t i) {
    return value_at(t, 1, i) * control_of(t, update_control::factor);
  };
  const Formula m = [=](const KernelTrial& t, std::int64_t i) {
    return t.attributes.as<kernels::Adamw>().beta1 * value_at(t, at.m, i) +
           (1 - t.attributes.as<kernels::Adamw>().beta1) * gradient(t, i);
  };
  const Formula v = [=](const KernelTrial& t, std::int64_t i) {
    return t.attributes.as<kernels::Adamw>().beta2 * value_at(t, at.v, i) +
           (1 - t.attributes.as<kernels::Adamw>().beta2) * std::pow(gradient(t, i), 2);
  };
  const Formula weights = [=](const KernelTrial& t, std::int64_t i) {
    const double updates = control_of(t, update_control::updates);
    const double m_hat = m(t, i) / (1 - std::pow(t.attributes.as<kernels::Adamw>().beta1, updates));
    const double v_hat = v(t, i) / (1 - std::pow(t.attributes.as<kernels::Adamw>().beta2, updates));
    return value_at(t, at.weights, i) * (1 - t.attributes.as<kernels::Adamw>().learning_rate *
                                                 t.attributes.as<kernels::Adamw>().weight_decay) -
           t.attributes.as<kernels::Adamw>().learning_rate * m_hat /
               (std::sqrt(v_hat) + t.attributes.as<kernels::Adamw>().epsilon);
  };
  expect_rule(kernel, {{at.weights, weights}, {at.m, m}, {at.v, v}}, has_master, true);
}

// Compares the kernel with Lion's formulas, with or without a control.
void expect_lion(std::string_view kernel, bool has_master, bool controlled) {
  const std::size_t at_weights = has_master ? 2 : 0, at_m = has_master ? 3 : 2;
  const auto moved = [=](const KernelTrial& t, std::int64_t i, double beta) {
    const double factor = controlled ? control_of(t, update_control::factor) : 1;
    return beta * value_at(t, at_m, i) + (1 - beta) * value_at(t, 1, i) * factor;
  };
  const Formula m = [=](const KernelTrial& t, std::int64_t i) {
    return moved(t, i, t.attributes.as<kernels::Lion>().beta2);
  };
  const Formula weights = [=](const KernelTrial& t, std::int64_t i) {
    const auto lion = t.attributes.as<kernels::Lion>();
    const double blend = moved(t, i, lion.beta1);
    const double sign = static_cast<double>(blend > 0) - static_cast<double>(blend < 0);
    return value_at(t, at_weights, i) * (1 - lion.learning_rate * lion.weight_decay) -
           lion.learning_rate * sign;
  };
  expect_rule(kernel, {{at_weights, weights}, {at_m, m}}, has_master, controlled);
}

TEST(Lion, MovesBySignsAloneAndKeepsOneMoment) {
  expect_lion(kernels::Lion::name, false, false);
  expect_lion("lion_clipped", false, true);
  expect_lion("lion_master", true, true);
}

// Compares the kernel with the formulas of torch.optim.SGD, with or without a control.
void expect_momentum(std::string_view kernel, bool has_master, bool controlled) {
  const std::size_t at_weights = has_master ? 2 : 0, at_m = has_master ? 3 : 2;
  const Formula m = [=](const KernelTrial& t, std::int64_t i) {
    const double gradient =
        value_at(t, 1, i) * (controlled ? control_of(t, update_control::factor) : 1);
    const auto [rate, momentum, decay] = t.attributes.as<kernels::Momentum>();
    return momentum * value_at(t, at_m, i) + gradient + decay * value_at(t, at_weights, i);
  };
  const Formula weights = [=](const KernelTrial& t, std::int64_t i) {
    return value_at(t, at_weights, i) -
           t.attributes.as<kernels::Momentum>().learning_rate * m(t, i);
  };
  expect_rule(kernel, {{at_weights, weights}, {at_m, m}}, has_master, controlled);
}

TEST(Momentum, KeepsTheSumOfDecayedGradients) {
  expect_momentum(kernels::Momentum::name, false, false);
  expect_momentum("momentum_clipped", false, true);
  expect_momentum("momentum_master", true, true);
}

// By hand: d = 0.5 + 0.01 w, m = 0.9 m + d, w -= 0.1 m. Nesterov's momentum would leave 0.7411, a
// decay beside the gradient a momentum of 2.3, and dampening one of 1.851.
TEST(Momentum, IsThatOfTwoStepsByHand) {
  float weight = 1, gradient = 0.5f, m = 2;
  void* const buffers[] = {&weight, &gradient, &m};
  const auto step = [&] {
    kernel("momentum")
        .reference({MatrixShape{1, 1}, DType::fp32, kernels::Momentum::Attributes{0.1, 0.9, 0.01},
                    buffers});
  };
  step();
  EXPECT_NEAR(m, 2.31, 1e-6);
  EXPECT_NEAR(weight, 0.769, 1e-6);
  step();
  EXPECT_NEAR(m, 2.58669, 1e-6);
  EXPECT_NEAR(weight, 0.510331, 1e-6);
}

TEST(AdamwMaster, UpdatesTheMasterAndRoundsItIntoTheWeights) {
  expect_adamw("adamw_master", {.weights = 2, .m = 3, .v = 4}, true);
}

TEST(AdamwClipped, UpdatesTheWeightsByTheScaledGradient) {
  expect_adamw("adamw_clipped", {.weights = 0, .m = 2, .v = 3}, false);
}

TEST(SquareSums, CoverEveryNumberOnceInPieces) {
  const FormulaOf<kernels::SquareSums> sum = [](const TrialOf<kernels::SquareSums>& t,
                                                std::int64_t p) {
    double squares = 0;
    for (std::int64_t i = 0; i < t.shape.numbers; ++i) {
      if (i / square_sum_piece(t.shape) == p) squares += std::pow(value_at(t, 0, i), 2);
    }
    return squares;
  };
  expect_formulas<kernels::SquareSums>({{1, sum}});
}

TEST(SquareSums, HaveAsManyPiecesAsFillTheDeviceAndNoMoreThanTheNumbersNeed) {
  EXPECT_EQ(square_sum_pieces(0), 1);
  EXPECT_EQ(square_sum_pieces(1), 1);
  EXPECT_EQ(square_sum_pieces(4096), 1);
  EXPECT_EQ(square_sum_pieces(4097), 2);
  EXPECT_EQ(square_sum_pieces(162'000'000), 1584);
}

// One launch of clip on partial sums of squares.
std::array<float, update_control::size> clipped(std::vector<float> partials,
                                                std::array<float, update_control::size> control,
                                                const kernels::Clip::Attributes& attributes) {
  void* const buffers[] = {partials.data(), control.data()};
  kernel("clip").reference(
      {kernels::Clip::Shape{std::ssize(partials)}, DType::fp32, attributes, buffers});
  return control;
}

using Control = std::array<float, update_control::size>;

// The loss scale is 4, after 2 good updates and 5 updates; the last three numbers are unused and
// must stay.
constexpr Control before = {0.25f, 4, 2, 5, 0, 7, 8, 9};

TEST(Clip, LeavesGradientsBelowTheLimitAndCutsThoseAboveIt) {
  // The norm is 12 with the loss scale and 3 without it.
  const std::vector<float> partials = {100, 40, 4};
  const Control below = clipped(partials, before, {10, 2000, 2, 0.5});
  EXPECT_EQ(below, (Control{0.25f, 4, 3, 6, 3, 7, 8, 9}));
  const Control above = clipped(partials, before, {0.75, 2000, 2, 0.5});
  EXPECT_NEAR(above[update_control::factor], 0.25 * 0.25, 1e-7);
  EXPECT_EQ(above[update_control::norm], 3);
  const Control unlimited = clipped(partials, before, {0, 2000, 2, 0.5});
  EXPECT_EQ(unlimited[update_control::factor], 0.25f);
}

TEST(Clip, CutsAtTheLimitByItsEpsilonOnly) {
  const Control at = clipped({144}, before, {3, 2000, 2, 0.5});
  EXPECT_LT(at[update_control::factor], 0.25f);
  EXPECT_NEAR(at[update_control::factor], 0.25 * 3 / (3 + 1e-6), 1e-8);
}

TEST(Clip, DividesByTheScaleOfTheGradientsWhenTheScaleGrows) {
  EXPECT_EQ(clipped({144}, before, {10, 3, 2, 0.5}), (Control{0.25f, 8, 0, 6, 3, 7, 8, 9}));
  EXPECT_EQ(clipped({144}, before, {10, 4, 2, 0.5}), (Control{0.25f, 4, 3, 6, 3, 7, 8, 9}));
}

TEST(Clip, SkipsWhatIsNotFiniteAndBacksOff) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Control skipped = clipped({1, infinity}, before, {10, 3, 2, 0.5});
  EXPECT_EQ(skipped, (Control{0, 2, 0, 5, infinity, 7, 8, 9}));
  const Control undefined = clipped({1, std::nanf("")}, before, {10, 3, 2, 0.5});
  EXPECT_EQ(undefined[update_control::factor], 0);
  EXPECT_EQ(undefined[update_control::loss_scale], 2);
  EXPECT_EQ(undefined[update_control::updates], 5);
  EXPECT_TRUE(std::isnan(undefined[update_control::norm]));
}

TEST(Clip, SkipsUnderAFixedScaleTooAndKeepsIt) {
  const Control skipped = clipped({std::nanf("")}, before, {10, 0, 2, 0.5});
  EXPECT_EQ(skipped[update_control::factor], 0);
  EXPECT_EQ(skipped[update_control::loss_scale], 4);
  const Control made = clipped({144}, {0.25f, 4, 1e6f, 5}, {10, 0, 2, 0.5});
  EXPECT_EQ(made[update_control::loss_scale], 4);
  EXPECT_EQ(made[update_control::updates], 6);
}

TEST(Clip, FollowsItsFormulaInEveryTrial) {
  const FormulaOf<kernels::Clip> after = [](const TrialOf<kernels::Clip>& t, std::int64_t i) {
    double sum = 0;
    for (std::int64_t p = t.shape.partials - 1; p >= 0; --p) sum += value_at(t, 0, p);
    const double norm = std::sqrt(sum) / 4;
    const bool grows = t.attributes.growth_interval == 3;
    const double limit = t.attributes.max_norm / (norm + 1e-6);
    switch (i) {
      case update_control::factor:
        return (t.attributes.max_norm == 0 || limit > 1 ? 1 : limit) / 4;
      case update_control::loss_scale:
        return grows ? 8.0 : 4.0;
      case update_control::good_updates:
        return grows ? 0.0 : 3.0;
      case update_control::updates:
        return 6.0;
      case update_control::norm:
        return norm;
      default:
        return value_at(t, 1, i);
    }
  };
  expect_formulas<kernels::Clip>({{1, after}});
}

TEST(Clip, TogetherWithSquareSumsFindsTheNormOfAllGradients) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  constexpr std::int64_t count = 100'001;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> number;
  std::vector<float> gradients(count);
  double squares = 0;
  for (float& gradient : gradients) {
    gradient = number(random);
    squares += static_cast<double>(gradient) * gradient;
  }
  const std::int64_t pieces = square_sum_pieces(count);
  std::vector<float> partials(static_cast<std::size_t>(pieces));
  void* const buffers[] = {gradients.data(), partials.data()};
  kernel("square_sums")
      .reference({kernels::SquareSums::Shape{count, pieces}, DType::fp32, {}, buffers});
  const Control control = clipped(partials, before, {1, 2000, 2, 0.5});
  const double norm = std::sqrt(squares) / 4;
  EXPECT_NEAR(control[update_control::norm], norm, norm * 1e-6);
}

TEST(SkippedUpdate, LeavesEveryBufferAsItWasWhateverTheGradientsHold) {
  for (const char* name : {"adamw_master", "adamw_clipped", "momentum_clipped", "momentum_master",
                           "foreach_unscale", "foreach_decay", "foreach_lerp", "foreach_mul",
                           "foreach_addcmul", "foreach_div", "foreach_addcdiv"}) {
    const TrialRecipe& recipe = trial_recipe(name);
    KernelTrial trial =
        make_trial(recipe, MatrixShape{3, 7}, DType::fp32, recipe.attributes.front(), 1);
    reinterpret_cast<float*>(trial.operands[1].data())[3] = std::nanf("");
    reinterpret_cast<float*>(trial.operands.back().data())[update_control::factor] = 0;
    const KernelTrial untouched = trial;
    run_reference(trial);
    EXPECT_EQ(trial.operands, untouched.operands) << name;
  }
}

// One operand for each name, as bytes.
using Tensors = std::map<std::string_view, std::vector<std::byte>>;

void run_pass(std::string_view name, Tensors& tensors, const KernelTrial& trial) {
  std::vector<void*> buffers;
  for (const KernelOperand& operand : kernel(name).operands) {
    buffers.push_back(tensors.at(operand.name).data());
  }
  kernel(name).reference({trial.shape, trial.dtype, trial.attributes, buffers});
}

constexpr const char* passes[] = {"foreach_unscale", "foreach_decay",   "foreach_lerp",
                                  "foreach_mul",     "foreach_addcmul", "foreach_sqrt",
                                  "foreach_div",     "foreach_add",     "foreach_addcdiv"};

// The tolerance is larger than one rounding, since the passes also round the gradients and, once
// more, the weights to storage.
double foreach_slack(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-6;
  return dtype == DType::fp16 ? 0x1p-9 : 0x1p-21;
}

TEST(Foreach, PassesTogetherEqualAdamwClippedToRounding) {
  const std::uint64_t seed = std::random_device{}();
  for (KernelTrial& trial : all_trials(trial_recipe("adamw_clipped"), seed)) {
    SCOPED_TRACE(describe(trial, seed));
    Tensors tensors;
    for (std::size_t i = 0; i < trial.operands.size(); ++i) {
      tensors[kernel("adamw_clipped").operands[i].name] = trial.operands[i];
    }
    tensors["denominators"] = trial.operands[2];
    for (const char* pass : passes) run_pass(pass, tensors, trial);
    run_reference(trial);
    KernelTrial together = trial;
    for (std::size_t i = 0; i < trial.operands.size(); ++i) {
      together.operands[i] = tensors.at(kernel("adamw_clipped").operands[i].name);
    }
    for (const std::size_t operand : {0, 2, 3}) {
      for (std::int64_t i = 0; i < value_count(trial, operand); ++i) {
        const double expected = value_at(trial, operand, i);
        ASSERT_NEAR(value_at(together, operand, i), expected,
                    foreach_slack(trial.dtype) * std::max(1.0, std::abs(expected)))
            << "operand " << operand << " at " << i;
      }
    }
  }
}

TEST(Foreach, EachPassFollowsItsFormula) {
  using T = const KernelTrial&;
  const auto target = [](auto formula) -> std::map<std::size_t, Formula> {
    return {{0, unless_skipped(0, formula)}};
  };
  expect_formulas("foreach_unscale", target([](T t, auto i) {
                    return value_at(t, 0, i) * control_of(t, update_control::factor);
                  }));
  expect_formulas("foreach_decay", target([](T t, auto i) {
                    return value_at(t, 0, i) - t.attributes.as<kernels::Adamw>().learning_rate *
                                                   t.attributes.as<kernels::Adamw>().weight_decay *
                                                   value_at(t, 0, i);
                  }));
  expect_formulas("foreach_lerp", target([](T t, auto i) {
                    return t.attributes.as<kernels::Adamw>().beta1 * value_at(t, 0, i) +
                           (1 - t.attributes.as<kernels::Adamw>().beta1) * value_at(t, 1, i);
                  }));
  expect_formulas("foreach_mul", target([](T t, auto i) {
                    return t.attributes.as<kernels::Adamw>().beta2 * value_at(t, 0, i);
                  }));
  expect_formulas("foreach_addcmul", target([](T t, auto i) {
                    return value_at(t, 0, i) + (1 - t.attributes.as<kernels::Adamw>().beta2) *
                                                   std::pow(value_at(t, 1, i), 2);
                  }));
  expect_formulas("foreach_sqrt",
                  {{0, [](T t, auto i) { return std::pow(value_at(t, 1, i), 0.5); }}});
  expect_formulas(
      "foreach_div", target([](T t, auto i) {
        const double updates = control_of(t, update_control::updates);
        return value_at(t, 0, i) /
               std::sqrt(1 - std::pow(t.attributes.as<kernels::Adamw>().beta2, updates));
      }));
  expect_formulas("foreach_add", {{0, [](T t, auto i) {
                                     return value_at(t, 0, i) +
                                            t.attributes.as<kernels::Adamw>().epsilon;
                                   }}});
  expect_formulas("foreach_addcdiv", target([](T t, auto i) {
                    const double updates = control_of(t, update_control::updates);
                    const double m_hat =
                        value_at(t, 1, i) /
                        (1 - std::pow(t.attributes.as<kernels::Adamw>().beta1, updates));
                    return value_at(t, 0, i) - t.attributes.as<kernels::Adamw>().learning_rate *
                                                   m_hat / value_at(t, 2, i);
                  }));
}

}  // namespace
}  // namespace stepgate
