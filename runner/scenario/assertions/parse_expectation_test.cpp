// SPDX-License-Identifier: MIT
#include "scenario/assertions/parse_expectation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

namespace stepgate {
namespace {

constexpr std::array<std::string_view, 3> variants{"baseline", "fix", "control"};
const Place start{"a.toml", 7, 10};

Expectation parsed(std::string_view text) {
  std::vector<Diagnostic> diagnostics;
  auto expectation = parse_expectation("line", text, start, variants, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  return expectation.value_or(Expectation{});
}

MetricOf of(std::string variant, Metric metric) {
  return {std::move(variant), metric, false};
}

TEST(ParseExpectation, ReadsAProductOnTheRight) {
  const Expectation result = parsed("fix.samples_per_s >= 1.05 * baseline.samples_per_s");
  EXPECT_EQ(result.left, (Side{{of("fix", Metric::samples_per_s)}}));
  EXPECT_EQ(result.relation, Relation::at_least);
  EXPECT_EQ(result.right, (Side{{1.05, of("baseline", Metric::samples_per_s)}}));
  EXPECT_EQ(result.within, std::nullopt);
}

TEST(ParseExpectation, KeepsNameTextAndPlace) {
  const Expectation result = parsed("fix.peak_live == 0");
  EXPECT_EQ(result.name, "line");
  EXPECT_EQ(result.text, "fix.peak_live == 0");
  EXPECT_EQ(result.place, start);
}

TEST(ParseExpectation, ReadsSumsOfProducts) {
  const Expectation result =
      parsed("fix.peak_reserved<=baseline.peak_reserved+2*batch_bytes + 1 KiB");
  EXPECT_EQ(
      result.right,
      (Side{{of("baseline", Metric::peak_reserved)}, {2.0, PlanSize::batch_bytes}, {1024.0}}));
}

TEST(ParseExpectation, ReadsTheTimeOfOneKernel) {
  const Expectation result =
      parsed("fix.kernel_us(layer_norm) <= 0.5 * baseline.kernel_us(layer_norm)");
  MetricOf of_fix = of("fix", Metric::kernel_us);
  of_fix.kernel = "layer_norm";
  EXPECT_EQ(result.left, (Side{{of_fix}}));
  EXPECT_EQ(metric_text(of_fix), "kernel_us(layer_norm)");
  EXPECT_TRUE(compares_two_variants(result));
  EXPECT_FALSE(compares_two_variants(
      parsed("fix.kernel_us(layer_norm) <= 0.5 * baseline.kernel_us(rms_norm)")));
}

TEST(ParseExpectation, ClaimsNoErrorRateOfWhatFewStepsDecide) {
  for (const char* metric : {"step_ms_max", "slow_step_share"}) {
    const Expectation result = parsed(fmt::format("fix.{0} <= 0.5 * baseline.{0}", metric));
    EXPECT_EQ(evidence_of(result), Evidence::timed);
    EXPECT_FALSE(has_error_rate(result));
  }
}

TEST(ParseExpectation, ReadsTheClassOfAVariant) {
  for (const char* text : {"fix.bound == copy", "fix.bound == \"copy\"", "fix.bound==copy"}) {
    const Expectation result = parsed(text);
    EXPECT_EQ(result.right, (Side{{BoundClass::copy}})) << text;
    EXPECT_TRUE(names_a_bound(result));
    EXPECT_EQ(evidence_of(result), Evidence::traced);
    EXPECT_FALSE(has_error_rate(result));
  }
}

TEST(ParseExpectation, ReadsEveryRelation) {
  const std::array<std::pair<const char*, Relation>, 5> signs{{{"<", Relation::less},
                                                               {"<=", Relation::at_most},
                                                               {"==", Relation::equal},
                                                               {">=", Relation::at_least},
                                                               {">", Relation::greater}}};
  for (const auto& [sign, relation] : signs) {
    EXPECT_EQ(parsed(std::string("fix.peak_live ") + sign + " 1 B").relation, relation);
  }
}

TEST(ParseExpectation, ReadsUnitsInBaseUnits) {
  EXPECT_EQ(parsed("fix.step_ms_mean <= 2 ms").right, (Side{{2 * 1e-3}}));
  EXPECT_EQ(parsed("fix.host_share >= 20%").right, (Side{{20 * 0.01}}));
  EXPECT_EQ(parsed("fix.memset_bytes_per_step <= 60 KiB/step").right, (Side{{61440.0}}));
  EXPECT_EQ(parsed("fix.h2d_gbps >= 10 GB/s").right, (Side{{1e10}}));
}

TEST(ParseExpectation, ReadsATolerance) {
  const Expectation result = parsed("control.samples_per_s ~= fix.samples_per_s within 3%");
  EXPECT_EQ(result.relation, Relation::about);
  EXPECT_DOUBLE_EQ(result.within.value_or(0), 0.03);
}

TEST(ParseExpectation, ReadsStoredValues) {
  EXPECT_EQ(parsed("fix.peak_live <= stored.fix.peak_live").right,
            (Side{{MetricOf{"fix", Metric::peak_live, true}}}));
  EXPECT_TRUE(names_stored(parsed("fix.peak_live + 3 B <= stored.baseline.peak_live + 2 MiB")));
  EXPECT_TRUE(compares_with_itself(parsed("0.5 * stored.fix.step_ms_p95 >= fix.step_ms_p95 * 2")));
}

TEST(ParseExpectation, ComparesZeroWithEverything) {
  EXPECT_EQ(parsed("fix.memset_bytes_per_step == 0").right, (Side{{0.0}}));
}

TEST(ParseExpectation, DecidesByTheLeastExactMetric) {
  EXPECT_EQ(evidence_of(parsed("fix.peak_live == 0")), Evidence::plan);
  EXPECT_EQ(evidence_of(parsed("fix.step_ms_mean <= 5 us * fix.launches_per_step")),
            Evidence::timed);
  EXPECT_EQ(evidence_of(parsed("fix.exposed_comm_us < 2 us * fix.host_waits_per_step + 5 us")),
            Evidence::traced);
}

// Numbers without a unit are limits and summands of counts and shares, and limits of rates.
TEST(ParseExpectation, TakesWhatItsUnitsAllow) {
  for (const char* text :
       {"fix.launches_per_step <= baseline.launches_per_step + 2",
        "fix.launches_per_step <= 5% * baseline.launches_per_step + 2",
        "fix.host_share <= baseline.host_share + 5%",
        "fix.host_share <= baseline.host_share + 0.05", "fix.samples_per_s >= 1000",
        "fix.samples_per_s >= 2 * 500", "fix.samples_per_s >= 105% * baseline.samples_per_s",
        "fix.step_ms_mean * fix.samples_per_s >= 64", "fix.tokens_per_s >= 128 * fix.samples_per_s",
        "fix.step_ms_mean <= baseline.step_ms_mean + 5% * baseline.step_ms_mean"})
    parsed(text);
}

TEST(ParseExpectation, RefusesAMetricComparedWithItself) {
  for (const char* text :
       {"fix.samples_per_s >= 0.9 * fix.samples_per_s", "2 * fix.peak_live < 1 * fix.peak_live",
        "fix.step_ms_mean ~= fix.step_ms_mean within 3%", "fix.need == fix.need"}) {
    std::vector<Diagnostic> diagnostics;
    EXPECT_FALSE(parse_expectation("line", text, start, variants, diagnostics)) << text;
    EXPECT_NE(diagnostics.at(0).message.find("compared with itself"), std::string::npos) << text;
  }
  for (const char* text :
       {"fix.samples_per_s >= 0.9 * baseline.samples_per_s", "fix.peak_live < 2 * fix.need",
        "fix.samples_per_s >= 0.9 * stored.fix.samples_per_s"})
    parsed(text);
}

// A limit that no share can reach is a forgotten percent sign. The table of metrics says which are
// shares.
TEST(ParseExpectation, RefusesALimitThatNoShareCanReach) {
  int shares = 0;
  for (const MetricRow& row : metric_table()) {
    shares += row.most == 1 ? 1 : 0;
    if (row.most == 1) {
      EXPECT_EQ(row.unit, MetricUnit::ratio) << row.name;
    }
    if (row.unit != MetricUnit::ratio) continue;
    for (const char* sign : {"<=", "<", ">=", ">", "~="}) {
      for (const double limit : {1.5, 5.0, 20.0, 99.0}) {
        const std::string text = fmt::format("fix.{} {} {:g}{}", row.name, sign, limit,
                                             std::string_view(sign) == "~=" ? " within 3%" : "");
        std::vector<Diagnostic> diagnostics;
        const bool read = parse_expectation("line", text, start, variants, diagnostics).has_value();
        EXPECT_EQ(read, row.most > 1) << text << ": it may be above 1 or it may not";
        if (read) continue;
        EXPECT_EQ(diagnostics.at(0).hint, fmt::format("write {:g}%", limit)) << text;
      }
    }
    const std::string as_meant = fmt::format("fix.{} <= 20%", row.name);
    EXPECT_TRUE(decided_by_ranges(parsed(as_meant)) == std::nullopt) << as_meant;
  }
  EXPECT_GT(shares, 5);
}

TEST(ParseExpectation, KnowsAnAssertionThatAWorseStepSatisfiesMoreEasily) {
  for (const MetricRow& row : metric_table()) {
    if (!can_be_stored(row.metric) || row.metric == Metric::kernel_us) continue;
    const auto easier = [&](const std::string& form) {
      return is_easier_for_a_worse_step(parsed(fmt::format(fmt::runtime(form), row.name)));
    };
    const bool less = row.better == Better::less;
    const bool more = row.better == Better::more;
    EXPECT_EQ(easier("fix.{0} >= 0.95 * stored.fix.{0}"), less) << row.name;
    EXPECT_EQ(easier("0.95 * stored.fix.{0} < fix.{0}"), less) << row.name;
    EXPECT_EQ(easier("fix.{0} <= 1.05 * stored.fix.{0}"), more) << row.name;
    EXPECT_EQ(easier("1.05 * stored.fix.{0} > fix.{0}"), more) << row.name;
    EXPECT_FALSE(easier("1.5 * fix.{0} ~= stored.fix.{0} within 3%")) << row.name;
  }
  EXPECT_FALSE(is_easier_for_a_worse_step(
      parsed("fix.peak_live + stored.fix.peak_live <= 2 * baseline.peak_live")))
      << "a worse fix satisfies it less easily";
}

struct BadAssertion {
  const char* text;
  std::string message;
};

class BadAssertions : public testing::TestWithParam<BadAssertion> {};

TEST_P(BadAssertions, AreRefusedAtTheWordAtFault) {
  std::vector<Diagnostic> diagnostics;
  EXPECT_EQ(parse_expectation("line", GetParam().text, start, variants, diagnostics), std::nullopt);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(to_string(diagnostics[0]), "a.toml:7:" + GetParam().message);
}

const std::string slip =
    " cannot be added to a rate per second; write a factor, as in 1.05 * baseline.samples_per_s";
const std::string stored_alone =
    "a stored time is compared with the same metric of the same variant, and nothing else; write "
    "baseline.samples_per_s >= 0.99 * stored.baseline.samples_per_s";
const std::string classes = "the classes are data, copy, compute, host, communication";
const std::string not_a_class =
    "10: 'bound' is a class, and is compared with nothing else; write baseline.bound == compute; " +
    classes;
const std::string value_hint =
    "write a number, a metric such as fix.samples_per_s, batch_bytes or param_bytes";

INSTANTIATE_TEST_SUITE_P(
    ParseExpectation, BadAssertions,
    testing::Values(
        BadAssertion{"", "10: the assertion ends where a value should stand; " + value_hint},
        BadAssertion{">= 5", "10: '>=' where a value should stand; " + value_hint},
        BadAssertion{"fix.peak_live >=",
                     "26: the assertion ends where a value should stand; " + value_hint},
        BadAssertion{"fix.peak_live", "23: the assertion compares nothing; write >= and a value"},
        BadAssertion{"fixx.peak_live == 0", "10: no variant 'fixx'; did you mean 'fix'?"},
        BadAssertion{"slow.peak_live == 0",
                     "10: no variant 'slow'; the variants are baseline, fix, control"},
        BadAssertion{"fix.peak_life == 0", "14: no metric 'peak_life'; did you mean 'peak_live'?"},
        BadAssertion{"fix.scaling == 1",
                     "14: no metric 'scaling'; scaling efficiency is a ratio: compare "
                     "samples_per_s_per_rank of two variants"},
        BadAssertion{"fix.kernel_us <= 1 us",
                     "23: 'kernel_us' without the name of a kernel; write fix.kernel_us(matmul)"},
        BadAssertion{"fix.kernel_us() <= 1 us",
                     "23: 'kernel_us' without the name of a kernel; write fix.kernel_us(matmul)"},
        BadAssertion{"fix.kernel_us(matmul <= 1 us",
                     "23: 'kernel_us' without the name of a kernel; write fix.kernel_us(matmul)"},
        BadAssertion{"fix.forward_us(matmul) <= 1 us",
                     "24: '(' where a comparison should stand; write < <= == >= > or ~= there"},
        BadAssertion{"fix.bound == computed", "23: no class 'computed'; did you mean 'compute'?"},
        BadAssertion{
            "fix.bound == \"memory\"",
            "24: no class 'memory'; the classes are data, copy, compute, host, communication"},
        BadAssertion{"fix.bound == \"copy", "24: a class without its closing quote; " + classes},
        BadAssertion{"fix.bound == 3", not_a_class}, BadAssertion{"fix.bound >= copy", not_a_class},
        BadAssertion{"fix.bound == baseline.bound", not_a_class},
        BadAssertion{"2 * fix.bound == copy", not_a_class},
        BadAssertion{"copy == fix.bound", "10: 'copy' is no value; " + value_hint},
        BadAssertion{"fix.bound == copy * copy", not_a_class},
        BadAssertion{
            "fix.mfu >= 0.99 * stored.fix.mfu",
            "39: a baseline keeps no mfu; it keeps step times, samples_per_s, tokens_per_s "
            "and what plans count"},
        BadAssertion{"peak_live == 0",
                     "10: 'peak_live' without a variant; write baseline.peak_live"},
        BadAssertion{"fix.peak_live = 0", "24: no comparison '='; write =="},
        BadAssertion{"fix.peak_live => 0", "24: no comparison '=>'; write >="},
        BadAssertion{"fix.peak_live != 0",
                     "24: no comparison '!='; write < or >, whichever is meant"},
        BadAssertion{"fix.peak_live - 1 B == 0",
                     "24: no sign '-'; only + and * combine values; move it to the other side"},
        BadAssertion{"fix.peak_live == 5 kib",
                     "29: no unit 'kib'; units are % ns us ms s B KiB MiB GiB GB/s, each with or "
                     "without /step"},
        BadAssertion{"fix.host_share >= 2 fix.host_share",
                     "30: two values without a sign between them; write * or + between them"},
        BadAssertion{"fix.host_share == 5%",
                     "25: a timed metric never equals; write ~= ... within 3%"},
        BadAssertion{"fix.gpu_idle <= 20",
                     "26: a share is at most 100 %, and 20 is 2000 %; write 20%"},
        BadAssertion{"fix.gpu_idle <= baseline.gpu_idle + 5",
                     "46: a share is at most 100 %, and 5 is 500 %; write 5%"},
        BadAssertion{"1 >= fix.mfu", "10: a share is at most 100 %, and 1 is 100 %; write 1%"},
        BadAssertion{
            "fix.host_share >= 200%",
            "10: a share is at most 100 %, so no step satisfies this; write a share that a "
            "step can be above and below"},
        BadAssertion{"fix.fragmentation_peak <= 100%",
                     "10: a share is at most 100 %, so every step satisfies this; write a share "
                     "that a step can be above and below"},
        BadAssertion{"fix.gpu_idle < fix.host_share",
                     "10: the assertion mixes what is timed with what is traced; tracing changes "
                     "times, so the two are never measured together; write a line for each"},
        BadAssertion{"fix.gpu_idle == 0",
                     "23: a timed metric never equals; write ~= ... within 3%"},
        BadAssertion{"fix.host_share ~= 5%",
                     "25: '~=' without a tolerance; write ~= ... within 3%"},
        BadAssertion{"fix.host_share ~= 5% within 3",
                     "38: 'within' without a percentage; write within 3%"},
        BadAssertion{"fix.host_share ~= 5% within 300%",
                     "38: a tolerance above 100%; write at most 100%"},
        BadAssertion{"fix.host_share >= 5% within 3%",
                     "31: 'within' belongs to ~= alone; write ~=, or leave out the tolerance"},
        BadAssertion{"fix.peak_live == 0 B always",
                     "31: 'always' after the end of the assertion; leave it out"},
        BadAssertion{"0 <= fix.host_share <= 5%",
                     "30: a second comparison; write one line for each comparison"},
        BadAssertion{"5 >= 3",
                     "10: the assertion names no metric of this run; name one, such as "
                     "baseline.samples_per_s"},
        BadAssertion{"stored.fix.peak_live >= 3 B",
                     "10: the assertion names no metric of this run; name one, such as "
                     "baseline.samples_per_s"},
        BadAssertion{"fix.host_us <= 1.1 * stored.fix.host_us",
                     "42: a baseline keeps no host_us; it keeps step times, samples_per_s, "
                     "tokens_per_s and what plans count"},
        BadAssertion{"fix.gpu_idle <= stored.fix.gpu_idle",
                     "37: a baseline keeps no gpu_idle; it keeps step times, samples_per_s, "
                     "tokens_per_s and what plans count"},
        BadAssertion{"fix.samples_per_s >= stored.baseline.samples_per_s", "31: " + stored_alone},
        BadAssertion{"fix.step_ms_p95 <= stored.fix.step_ms_mean", "29: " + stored_alone},
        BadAssertion{"fix.step_ms_p95 <= stored.fix.step_ms_p95 + 1 ms", "29: " + stored_alone},
        BadAssertion{"fix.samples_per_s + 0 >= stored.fix.samples_per_s", "35: " + stored_alone},
        BadAssertion{"fix.peak_live <= 3 ms",
                     "24: a size cannot be compared with a time; compare a size, as in 64 KiB"},
        BadAssertion{"fix.step_ms_mean <= 2",
                     "27: a time cannot be compared with a plain number; compare a time, as in 2 "
                     "ms"},
        BadAssertion{"fix.peak_live <= batch_bytes + 5",
                     "41: a plain number cannot be added to a size; write a factor, as in 1.05 * "
                     "baseline.samples_per_s"},
        BadAssertion{"fix.samples_per_s >= baseline.samples_per_s + 30%", "56: a share" + slip},
        BadAssertion{"fix.samples_per_s >= 30% + baseline.samples_per_s",
                     "37: a rate per second cannot be added to a share; write a factor, as in "
                     "1.05 * baseline.samples_per_s"},
        BadAssertion{"fix.tokens_per_s >= 1.3 + baseline.tokens_per_s",
                     "36: a rate per second cannot be added to a plain number; write a factor, as "
                     "in 1.05 * baseline.samples_per_s"},
        BadAssertion{"fix.samples_per_s >= 2 * baseline.samples_per_s + 5",
                     "60: a plain number" + slip},
        BadAssertion{"fix.samples_per_s >= 105%",
                     "28: a rate per second cannot be compared with a share; compare a number "
                     "without a unit, or as in 1.05 * baseline.samples_per_s"},
        BadAssertion{"fix.launches_per_step <= baseline.launches_per_step + 10%",
                     "64: a share cannot be added to a count; write a factor, as in 1.05 * "
                     "baseline.samples_per_s"},
        BadAssertion{"fix.launches_per_step <= 110%",
                     "32: a count cannot be compared with a share; compare a number without a "
                     "unit"},
        BadAssertion{"fix.host_share <= baseline.launches_per_step",
                     "25: a share cannot be compared with a count; compare a share, as in 5%"},
        BadAssertion{"fix.step_ms_mean <= baseline.step_ms_mean + 5%",
                     "54: a share cannot be added to a time; write a factor, as in 1.05 * "
                     "baseline.samples_per_s"},
        BadAssertion{"fix.samples_per_s >= 1,03 * baseline.samples_per_s",
                     "32: ',' in a number; write a point before its decimals, and nothing between "
                     "thousands"},
        BadAssertion{"fix.host_waits_per_step < 0",
                     "34: no metric is below 0, so no step satisfies this; write == 0 or > 0, or "
                     "another limit"},
        BadAssertion{"0 <= fix.peak_live",
                     "12: no metric is below 0, so every step satisfies this; write == 0 or > 0, "
                     "or another limit"},
        BadAssertion{"fix.step_ms_mean ~= baseline.step_ms_mean within 0%",
                     "59: a tolerance of 0%, within which no two times are; write == of what is "
                     "counted, and within 3% of what is timed"},
        BadAssertion{"fix.peak_live == 1e999 B",
                     "27: a number that is too large; write a smaller one"},
        BadAssertion{"fix.peak_live == \xe2\x82\xac",
                     "27: '\xe2\x82\xac' where a value should stand; " + value_hint},
        BadAssertion{"fix.peak_live ** 2 == 0",
                     "25: '*' where a value should stand; " + value_hint}));

}  // namespace
}  // namespace stepgate
