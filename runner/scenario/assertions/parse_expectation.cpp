// SPDX-License-Identifier: MIT
// Recursive descent over the grammar of expectation.h. The first error ends the assertion: what
// follows it would be a guess.
#include "scenario/assertions/parse_expectation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/text/ascii.h"
#include "base/text/enumerators.h"
#include "base/text/nearest.h"
#include "base/text/units.h"
#include "scenario/assertions/assertion_text.h"
#include "scenario/assertions/metric.h"
#include "scenario/familiar_words.h"

namespace stepgate {
namespace {

// Dimensions of the values in an assertion, so that bytes are never compared with seconds, nor a
// share with a count.

// Powers of the base units byte and second. Without either, a value is a share or a count.
struct Powers {
  // A number without a unit fits shares, counts and rates per second. A literal 0 fits anything.
  enum class Fit { exactly, number, anything };

  int bytes = 0;
  int seconds = 0;
  bool counts = false;  // a factor is a count
  Fit fit = Fit::exactly;
};

struct NamedPowers {
  Powers powers;
  std::string_view name;
  std::string_view hint;
};

constexpr std::array<NamedPowers, 6> named_powers{{
    {{}, "a share", "compare a share, as in 5%"},
    {{.counts = true}, "a count", "compare a number without a unit"},
    {{.seconds = -1},
     "a rate per second",
     "compare a number without a unit, or as in 1.05 * baseline.samples_per_s"},
    {{.bytes = 1}, "a size", "compare a size, as in 64 KiB"},
    {{.seconds = 1}, "a time", "compare a time, as in 2 ms"},
    {{.bytes = 1, .seconds = -1}, "a rate in bytes per second", "compare a rate, as in 10 GB/s"},
}};

// Whether the units are the same. A count has none: 5 us of each launch are a time.
bool are_alike(const Powers& a, const Powers& b) {
  const bool have_units = a.bytes != 0 || a.seconds != 0;
  return a.bytes == b.bytes && a.seconds == b.seconds && (have_units || a.counts == b.counts);
}

const NamedPowers* row_of(const Powers& powers) {
  const auto* row = std::ranges::find_if(
      named_powers, [&](const NamedPowers& named) { return are_alike(named.powers, powers); });
  return row != named_powers.end() ? row : nullptr;
}

Powers powers_of(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::bytes:
      return {.bytes = 1};
    case MetricUnit::seconds:
      return {.seconds = 1};
    case MetricUnit::bytes_per_second:
      return {.bytes = 1, .seconds = -1};
    case MetricUnit::count:
    case MetricUnit::flops:
      return {.counts = true};
    case MetricUnit::per_second:
      return {.seconds = -1, .counts = true};
    case MetricUnit::ratio:
    case MetricUnit::bound_class:
      return {};
  }
  return {};
}

// Powers of a number whose unit is written behind it: a percentage is a share.
Powers powers_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return {.bytes = 1};
    case Dimension::seconds:
      return {.seconds = 1};
    case Dimension::bytes_per_second:
      return {.bytes = 1, .seconds = -1};
    case Dimension::plain:
      return {};
  }
  return {};
}

// Powers of the product of two values.
Powers times(const Powers& a, const Powers& b) {
  const bool fits_anything = a.fit == Powers::Fit::anything || b.fit == Powers::Fit::anything;
  const bool is_number = a.fit == Powers::Fit::number && b.fit == Powers::Fit::number;
  return {a.bytes + b.bytes, a.seconds + b.seconds, a.counts || b.counts,
          fits_anything ? Powers::Fit::anything
          : is_number   ? Powers::Fit::number
                        : Powers::Fit::exactly};
}

bool is_rate(const Powers& powers) {
  return powers.bytes == 0 && powers.seconds == -1;
}

// Whether two values may be compared.
bool compatible(const Powers& a, const Powers& b) {
  if (a.fit == Powers::Fit::anything || b.fit == Powers::Fit::anything) return true;
  const auto fits_number = [](const Powers& powers) {
    return (powers.bytes == 0 && powers.seconds == 0) || is_rate(powers);
  };
  if (a.fit == Powers::Fit::number) return fits_number(b);
  if (b.fit == Powers::Fit::number) return fits_number(a);
  return are_alike(a, b);
}

// Whether two values may be added. A number that is added to a rate is a factor with the wrong
// sign: nobody knows a rate well enough to name what is added to it.
bool addable(const Powers& a, const Powers& b) {
  const bool slipped =
      (a.fit == Powers::Fit::number && is_rate(b)) || (b.fit == Powers::Fit::number && is_rate(a));
  return !slipped && compatible(a, b);
}

// Whether it has no unit, as a factor has none.
bool could_be_a_factor(const Powers& powers) {
  return powers.bytes == 0 && powers.seconds == 0 && !powers.counts;
}

// The dimension in words, for messages: "a size", "a time".
std::string powers_text(const Powers& powers) {
  if (powers.fit == Powers::Fit::number) return "a plain number";
  const NamedPowers* row = row_of(powers);
  return row != nullptr ? std::string(row->name) : "a product of unlike units";
}

// A hint how to write a number of this dimension: "write its unit, as in 64 KiB".
std::string unit_hint(const Powers& powers) {
  if (powers.fit == Powers::Fit::number) return "compare a number without a unit";
  const NamedPowers* row = row_of(powers);
  return row != nullptr ? std::string(row->hint) : "multiply fewer metrics";
}

constexpr std::string_view value_hint =
    "write a number, a metric such as fix.samples_per_s, batch_bytes or param_bytes";

constexpr std::array<std::pair<std::string_view, PlanSize>, 2> plan_sizes{
    {{"batch_bytes", PlanSize::batch_bytes}, {"param_bytes", PlanSize::param_bytes}}};

constexpr std::string_view within = "within";

class AssertionParser {
 public:
  AssertionParser(std::string_view text, const Place& start,
                  std::span<const std::string_view> variants)
      : text_(text, start), variants_(variants) {}

  // Parses the text into `result`. Returns the error, if any.
  std::optional<Diagnostic> parse(Expectation& result) {
    Powers left;
    Powers right;
    const bool parsed = side(result.left, left) && relation(result.relation) &&
                        side(result.right, right) && tolerance(result) && end();
    if (parsed) check(result, left, right);
    return text_.problem();
  }

 private:
  // The functions below parse one rule of the grammar each.

  bool side(Side& result, Powers& powers) {
    do {
      text_.skip_spaces();
      const std::size_t where = text_.at();
      Powers of_product{.fit = Powers::Fit::number};  // as 1 is, by which nothing is multiplied yet
      if (!product(result.emplace_back(), of_product)) return false;
      if (result.size() > 1 && !addable(powers, of_product)) {
        return text_.fail(
            where,
            fmt::format("{} cannot be added to {}", powers_text(of_product), powers_text(powers)),
            could_be_a_factor(powers) || could_be_a_factor(of_product)
                ? "write a factor, as in 1.05 * baseline.samples_per_s"
                : unit_hint(powers));
      }
      if (result.size() == 1 || powers.fit != Powers::Fit::exactly) powers = of_product;
      text_.skip_spaces();
    } while (text_.take("+"));
    return true;
  }

  bool product(Product& result, Powers& powers) {
    const std::size_t where = text_.at();
    do {
      text_.skip_spaces();
      Powers of_factor;
      if (!factor(result, of_factor)) return false;
      powers = times(powers, of_factor);
      text_.skip_spaces();
    } while (text_.take("*"));
    // A product must not contain 0 beside other factors.
    const bool is_nothing = std::ranges::find(result, Factor(0.0)) != result.end();
    if (!is_nothing || result.size() == 1) return true;
    return text_.fail(where, "a product with 0 is 0, whatever else is in it",
                      "write 0 alone, or another factor");
  }

  bool factor(Product& result, Powers& powers) {
    if (text_.rest().empty()) {
      return text_.fail(text_.at(), "the assertion ends where a value should stand",
                        std::string(value_hint));
    }
    if (is_digit(text_.rest().front())) return number(result, powers);
    if (names_a_bound_ && text_.take("\"")) return quoted_class(result);
    if (is_letter(text_.rest().front()) && text_.word() != within) return name(result, powers);
    return text_.fail(text_.at(), fmt::format("'{}' where a value should stand", text_.seen()),
                      std::string(value_hint));
  }

  bool number(Product& result, Powers& powers) {
    const std::size_t where = text_.at();
    const auto digits = number_prefix(text_.rest());
    if (!digits) return text_.fail(where, "a number that is too large", "write a smaller one");
    text_.skip(digits->length);
    if (text_.rest().starts_with(',')) {
      return text_.fail(text_.at(), "',' in a number",
                        "write a point before its decimals, and nothing between thousands");
    }
    text_.skip_spaces();
    const std::string_view word = text_.unit_word();
    double value = digits->value;
    powers = {.fit = Powers::Fit::number};
    const bool is_joined = word == "and" || word == "or";
    if (!word.empty() && !word.starts_with('/') && word != within && !is_joined) {
      const std::string_view unit_word =
          word.ends_with("/step") ? word.substr(0, word.size() - 5) : word;
      const Unit* unit = unit_named(unit_word);
      if (unit == nullptr) return no_unit(word);
      text_.skip(word.size());
      value *= unit->scale;
      powers = powers_of(unit->dimension);
    } else if (digits->value >= 1) {
      bare_number_ = BareNumber{where, digits->value};
    }
    if (value == 0 && could_be_a_factor(powers)) powers.fit = Powers::Fit::anything;
    result.emplace_back(value);
    return true;
  }

  bool no_unit(std::string_view word) {
    const bool starts_a_metric = text_.rest().substr(word.size()).starts_with('.');
    if (starts_a_metric) {
      return text_.fail(text_.at(), "two values without a sign between them",
                        "write * or + between them");
    }
    if (word == "x") {
      return text_.fail(text_.at(), "'x' is no sign",
                        "write *, as in 1.05 * baseline.samples_per_s");
    }
    std::vector<std::string_view> names;
    for (const Unit& unit : units()) names.push_back(unit.name);
    return text_.fail(
        text_.at(), fmt::format("no unit '{}'", word),
        fmt::format("units are {}, each with or without /step", fmt::join(names, " ")));
  }

  bool name(Product& result, Powers& powers) {
    MetricOf of;
    std::size_t where = text_.at();
    std::string_view word = text_.word();
    if (is_about_one_subject() && !text_.rest().substr(word.size()).starts_with('.'))
      return metric(std::move(of), result, powers);
    text_.skip(word.size());
    if (word == "stored" && text_.take(".")) {
      of.stored = true;
      stored_at_ = where;
      where = text_.at();
      word = text_.word();
      text_.skip(word.size());
    }
    if (!text_.take(".")) {
      if (of.stored) return no_metric(where, word);
      if (names_a_bound_) return class_named(where, word, result);
      return plan_size(where, word, result, powers);
    }
    if (std::find(variants_.begin(), variants_.end(), word) == variants_.end()) {
      if (is_about_one_subject())
        return text_.fail(where, "a program has no variants", "write the metric alone");
      return text_.fail(
          where, fmt::format("no variant '{}'", word),
          did_you_mean(word, variants_,
                       fmt::format("the variants are {}", fmt::join(variants_, ", "))));
    }
    of.variant = word;
    return metric(std::move(of), result, powers);
  }

  // A program that is attached has no variants: its metrics stand alone.
  bool is_about_one_subject() const { return variants_.size() == 1 && variants_.front().empty(); }

  bool quoted_class(Product& result) {
    const std::size_t where = text_.at();
    const std::string_view word = text_.word();
    text_.skip(word.size());
    if (!text_.take("\""))
      return text_.fail(where, "a class without its closing quote", class_hint());
    return class_named(where, word, result);
  }

  static std::string class_hint() {
    return fmt::format("the classes are {}", fmt::join(enumerators<BoundClass>, ", "));
  }

  bool class_named(std::size_t where, std::string_view word, Product& result) {
    const auto& names = enumerators<BoundClass>;
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) {
      return text_.fail(where, fmt::format("no class '{}'", word),
                        did_you_mean(word, names, class_hint()));
    }
    result.emplace_back(static_cast<BoundClass>(found - names.begin()));
    return true;
  }

  bool plan_size(std::size_t where, std::string_view word, Product& result, Powers& powers) {
    for (const auto& [size_name, size] : plan_sizes) {
      if (size_name != word) continue;
      powers = {1, 0};
      result.emplace_back(size);
      return true;
    }
    return no_metric(where, word);
  }

  bool no_metric(std::size_t where, std::string_view word) {
    if (metric_named(word)) {
      return text_.fail(
          where, fmt::format("'{}' without a variant", word),
          fmt::format("write {}.{}", variants_.empty() ? "fix" : variants_.front(), word));
    }
    return text_.fail(where, fmt::format("'{}' is no value", word), std::string(value_hint));
  }

  bool metric(MetricOf of, Product& result, Powers& powers) {
    const std::string_view word = text_.word();
    const auto metric = metric_named(word);
    if (!metric) {
      std::vector<std::string_view> names;
      for (const MetricRow& row : metric_table()) names.push_back(row.name);
      const std::string familiar = familiar_hint(word, FamiliarPlace::metric);
      return text_.fail(
          text_.at(), fmt::format("no metric '{}'", word.empty() ? text_.seen() : word),
          !familiar.empty() ? familiar
                            : did_you_mean(word, names, "'stepgate fields' lists the metrics"));
    }
    if (of.stored && !can_be_stored(*metric)) {
      return text_.fail(text_.at(), fmt::format("a baseline keeps no {}", word),
                        "it keeps step times, samples_per_s, tokens_per_s and what plans count");
    }
    text_.skip(word.size());
    of.metric = *metric;
    if (of.metric == Metric::bound) names_a_bound_ = true;
    if (of.metric == Metric::kernel_us && !kernel_in_brackets(of)) return false;
    powers = powers_of(row_of(*metric).unit);
    result.emplace_back(std::move(of));
    return true;
  }

  // Parses the kernel of kernel_us(...). Whether the variant launches it is checked with its plan.
  bool kernel_in_brackets(MetricOf& of) {
    const std::size_t where = text_.at();
    if (text_.take("(")) {
      of.kernel = text_.word();
      text_.skip(of.kernel.size());
      if (!of.kernel.empty() && text_.take(")")) return true;
    }
    return text_.fail(where, "'kernel_us' without the name of a kernel",
                      fmt::format("write {}.kernel_us(matmul)", of.variant));
  }

  bool relation(Relation& result) {
    relation_at_ = text_.at();
    const RelationSign* sign = text_.sign_here();
    if (sign == nullptr) {
      if (text_.rest().empty())
        return text_.fail(text_.at(), "the assertion compares nothing", "write >= and a value");
      return unexpected("where a comparison should stand", "write < <= == >= > or ~= there");
    }
    if (!sign->relation) {
      return text_.fail(text_.at(), fmt::format("no comparison '{}'", sign->sign),
                        std::string(sign->instead));
    }
    text_.skip(sign->sign.size());
    result = *sign->relation;
    return true;
  }

  bool tolerance(Expectation& result) {
    const std::size_t where = text_.at();
    const bool about = result.relation == Relation::about;
    if (text_.word() != within) {
      if (about && text_.rest().empty()) {
        return text_.fail(relation_at_, "'~=' without a tolerance", "write ~= ... within 3%");
      }
      return true;
    }
    if (!about) {
      return text_.fail(where, "'within' belongs to ~= alone",
                        "write ~=, or leave out the tolerance");
    }
    text_.skip(within.size());
    text_.skip_spaces();
    const auto digits = number_prefix(text_.rest());
    const std::size_t number_at = text_.at();
    if (digits) text_.skip(digits->length);
    text_.skip_spaces();
    if (!digits || !text_.take("%")) {
      return text_.fail(number_at, "'within' without a percentage", "write within 3%");
    }
    if (digits->value > 100) {
      return text_.fail(number_at, "a tolerance above 100%", "write at most 100%");
    }
    if (digits->value == 0) {
      return text_.fail(number_at, "a tolerance of 0%, within which no two times are",
                        "write == of what is counted, and within 3% of what is timed");
    }
    result.within = digits->value / 100;
    text_.skip_spaces();
    return true;
  }

  bool end() {
    if (text_.rest().empty()) return true;
    if (text_.sign_here() != nullptr) {
      return text_.fail(text_.at(), "a second comparison", "write one line for each comparison");
    }
    const std::string_view word = text_.word();
    const bool joins = word == "and" || word == "or" || text_.rest().starts_with('&');
    return unexpected("after the end of the assertion",
                      word == "or" ? "write the one comparison that is meant"
                      : joins      ? "write a second line for what follows"
                                   : "leave it out");
  }

  bool unexpected(std::string_view where_in_words, std::string hint) {
    const char c = text_.rest().front();
    if (c == '-' || c == '/') {
      return text_.fail(text_.at(), fmt::format("no sign '{}'", c),
                        "only + and * combine values; move it to the other side");
    }
    return text_.fail(text_.at(), fmt::format("'{}' {}", text_.seen(), where_in_words),
                      std::move(hint));
  }

  void check(const Expectation& expectation, const Powers& left, const Powers& right) {
    if (!names_this_run(expectation)) {
      text_.fail(0, "the assertion names no metric of this run",
                 fmt::format("name one, such as {}.samples_per_s",
                             variants_.empty() ? "fix" : variants_.front()));
    } else if (names_a_bound_) {
      if (!is_about_a_class(expectation)) {
        text_.fail(0, "'bound' is a class, and is compared with nothing else",
                   fmt::format("write {}.bound == compute; {}",
                               variants_.empty() ? "fix" : variants_.front(), class_hint()));
      }
    } else if (!compatible(left, right)) {
      text_.fail(
          relation_at_,
          fmt::format("{} cannot be compared with {}", powers_text(left), powers_text(right)),
          unit_hint(left));
    } else if (const MetricOf* of = on_both_sides(expectation)) {
      text_.fail(relation_at_,
                 fmt::format("'{}{}' is compared with itself, so every step satisfies this or none "
                             "does",
                             of->variant.empty() ? "" : of->variant + ".", metric_text(*of)),
                 "name another variant, or another metric");
    } else if (const auto decided = decided_by_ranges(expectation)) {
      if (names_a_share(expectation)) {
        fail_beyond_a_share(*decided);
      } else {
        text_.fail(relation_at_,
                   fmt::format("no metric is below 0, so {} satisfies this",
                               *decided ? "every step" : "no step"),
                   "write == 0 or > 0, or another limit");
      }
    } else if (expectation.relation == Relation::equal &&
               evidence_of(expectation) >= Evidence::timed) {
      text_.fail(relation_at_, "a timed metric never equals", "write ~= ... within 3%");
    } else if (expectation.relation == Relation::about && compares_high_percentiles(expectation)) {
      text_.fail(relation_at_, "a high percentile is compared with one limit at a time",
                 "write two lines, one with <= and one with >=");
    } else if (mixes_timed_and_traced(expectation)) {
      text_.fail(0, "the assertion mixes what is timed with what is traced",
                 "tracing changes times, so the two are never measured together; write a line for "
                 "each");
    } else if (stored_at_ && evidence_of(expectation) >= Evidence::timed &&
               !compares_with_itself(expectation)) {
      const std::string_view variant = variants_.empty() ? "fix" : variants_.front();
      text_.fail(
          *stored_at_,
          "a stored time is compared with the same metric of the same variant, and nothing "
          "else",
          fmt::format("write {0}.samples_per_s >= 0.99 * stored.{0}.samples_per_s", variant));
    }
  }

  // The metric that is all of either side, but for factors; nullptr where there is none.
  static const MetricOf* on_both_sides(const Expectation& expectation) {
    const MetricOf* left = only_metric(expectation.left);
    const MetricOf* right = only_metric(expectation.right);
    return left != nullptr && right != nullptr && *left == *right ? left : nullptr;
  }

  static bool names_a_share(const Expectation& expectation) {
    return std::ranges::any_of(metrics_in(expectation),
                               [](const MetricOf& of) { return row_of(of.metric).most == 1; });
  }

  // Refuses a limit above 100 % for a share; a number without percent sign probably lacks one.
  bool fail_beyond_a_share(bool always_true) {
    constexpr std::string_view fact = "a share is at most 100 %";
    if (bare_number_) {
      return text_.fail(bare_number_->where,
                        fmt::format("{}, and {:g} is {:g} %", fact, bare_number_->value,
                                    100 * bare_number_->value),
                        fmt::format("write {:g}%", bare_number_->value));
    }
    return text_.fail(
        0, fmt::format("{}, so {} satisfies this", fact, always_true ? "every step" : "no step"),
        "write a share that a step can be above and below");
  }

  static bool is_about_a_class(const Expectation& expectation) {
    const MetricOf* metric = only_metric(expectation.left);
    return metric != nullptr && metric->metric == Metric::bound &&
           expectation.left.front().size() == 1 && expectation.relation == Relation::equal &&
           expectation.right.size() == 1 && expectation.right.front().size() == 1 &&
           std::holds_alternative<BoundClass>(expectation.right.front().front());
  }

  AssertionText text_;
  std::span<const std::string_view> variants_;
  std::size_t relation_at_ = 0;
  bool names_a_bound_ = false;
  struct BareNumber {
    std::size_t where = 0;
    double value = 0;
  };
  std::optional<BareNumber> bare_number_;  // the last number without unit that is at least 1
  std::optional<std::size_t> stored_at_;   // position of the last value from a baseline
};

}  // namespace

std::optional<Expectation> parse_expectation(std::string_view name, std::string_view text,
                                             const Place& start,
                                             std::span<const std::string_view> variants,
                                             std::vector<Diagnostic>& diagnostics) {
  Expectation expectation;
  expectation.name = name;
  expectation.text = text;
  expectation.place = start;
  auto problem = AssertionParser(text, start, variants).parse(expectation);
  if (!problem) return expectation;
  diagnostics.push_back(std::move(*problem));
  return std::nullopt;
}

}  // namespace stepgate
