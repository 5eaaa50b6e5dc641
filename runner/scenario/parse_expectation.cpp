// SPDX-License-Identifier: MIT
// Recursive descent over the grammar of expectation.h. The first error ends the sentence: what
// follows it would be a guess.
#include "scenario/parse_expectation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "scenario/sentence_dimensions.h"
#include "support/nearest.h"
#include "support/units.h"
#include "support/utf8.h"

namespace stepgate {
namespace {

constexpr std::string_view value_hint =
    "write a number, a metric such as fix.samples_per_s, batch_bytes or param_bytes";

struct RelationSign {
  std::string_view sign;
  std::optional<Relation> relation;  // none: a sign that people write instead
  std::string_view instead;
};

// The longer signs first.
const std::array<RelationSign, 12> relation_signs{{
    {"<=", Relation::at_most, ""},
    {">=", Relation::at_least, ""},
    {"==", Relation::equal, ""},
    {"~=", Relation::about, ""},
    {"=>", std::nullopt, "write >="},
    {"=<", std::nullopt, "write <="},
    {"!=", std::nullopt, "write < or >, whichever is meant"},
    {"<>", std::nullopt, "write < or >, whichever is meant"},
    {"=", std::nullopt, "write =="},
    {"~", std::nullopt, "write ~= ... within 3%"},
    {"<", Relation::less, ""},
    {">", Relation::greater, ""},
}};

constexpr std::array<std::pair<std::string_view, PlanSize>, 2> plan_sizes{
    {{"batch_bytes", PlanSize::batch_bytes}, {"param_bytes", PlanSize::param_bytes}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c);
}
bool is_unit(char c) {
  return is_letter(c) || c == '%' || c == '/';
}

class SentenceParser {
 public:
  SentenceParser(std::string_view text, const Place& start,
                 std::span<const std::string_view> variants)
      : text_(text), start_(start), variants_(variants) {}

  // Fills the parsed parts; what is wrong, if anything is.
  std::optional<Diagnostic> parse(Expectation& result) {
    Powers left;
    Powers right;
    const bool parsed = side(result.left, left) && relation(result.relation) &&
                        side(result.right, right) && tolerance(result) && end();
    if (parsed) check(result, left, right);
    return std::move(error_);
  }

 private:
  // --- reading characters ---

  std::string_view rest() const { return text_.substr(at_); }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  template <class Predicate>
  std::string_view peek_while(Predicate wanted) const {
    std::size_t end = at_;
    while (end < text_.size() && wanted(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  bool take(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  bool fail(std::size_t where, std::string message, std::string hint) {
    Place place = start_;
    if (place.line > 0) place.column += count_code_points(text_.substr(0, where));
    error_ = Diagnostic{std::move(place), std::move(message), std::move(hint)};
    return false;
  }

  const RelationSign* sign_here() const {
    for (const RelationSign& sign : relation_signs) {
      if (rest().starts_with(sign.sign)) return &sign;
    }
    return nullptr;
  }

  // The word or sign that stands here, for messages.
  std::string_view seen() const {
    if (const RelationSign* sign = sign_here()) return sign->sign;
    const std::string_view word = peek_while(is_word);
    if (!word.empty()) return word;
    // A whole code point, so that the message stays UTF-8.
    std::size_t length = 1;
    while (length < rest().size() && (static_cast<unsigned char>(rest()[length]) & 0xc0U) == 0x80U)
      ++length;
    return rest().substr(0, length);
  }

  // --- the grammar ---

  bool side(Side& result, Powers& powers) {
    do {
      skip_spaces();
      const std::size_t where = at_;
      Powers of_product;
      if (!product(result.emplace_back(), of_product)) return false;
      if (result.size() == 1 || powers.fit == Powers::Fit::anything) {
        powers = of_product;
      } else if (!compatible(powers, of_product)) {
        return fail(
            where,
            fmt::format("{} cannot be added to {}", powers_text(of_product), powers_text(powers)),
            unit_hint(powers));
      }
      skip_spaces();
    } while (take("+"));
    return true;
  }

  bool product(Product& result, Powers& powers) {
    do {
      skip_spaces();
      Powers of_factor;
      if (!factor(result, of_factor)) return false;
      powers = times(powers, of_factor);
      skip_spaces();
    } while (take("*"));
    return true;
  }

  bool factor(Product& result, Powers& powers) {
    if (rest().empty()) {
      return fail(at_, "the sentence ends where a value should stand", std::string(value_hint));
    }
    if (is_digit(rest().front())) return number(result, powers);
    if (is_letter(rest().front()) && peek_while(is_word) != "within") return name(result, powers);
    return fail(at_, fmt::format("'{}' where a value should stand", seen()),
                std::string(value_hint));
  }

  bool number(Product& result, Powers& powers) {
    const std::size_t where = at_;
    const auto digits = number_prefix(rest());
    if (!digits) return fail(where, "a number that is too large", "write a smaller one");
    at_ += digits->length;
    const std::size_t after_digits = at_;
    skip_spaces();
    const std::string_view word = peek_while(is_unit);
    Quantity quantity{digits->value, Dimension::plain};
    if (word.empty() || word.starts_with('/') || word == "within") {
      at_ = after_digits;
    } else {
      const std::string_view unit_word =
          word.ends_with("/step") ? word.substr(0, word.size() - 5) : word;
      const Unit* unit = unit_named(unit_word);
      if (unit == nullptr) return no_unit(word);
      at_ += word.size();
      quantity = {digits->value * unit->scale, unit->dimension};
    }
    powers = powers_of(quantity);
    result.emplace_back(quantity.value);
    return true;
  }

  bool no_unit(std::string_view word) {
    const bool starts_a_metric = rest().substr(word.size()).starts_with('.');
    if (starts_a_metric) {
      return fail(at_, "two values without a sign between them", "write * or + between them");
    }
    std::vector<std::string_view> names;
    for (const Unit& unit : units()) names.push_back(unit.name);
    return fail(at_, fmt::format("no unit '{}'", word),
                fmt::format("units are {}, each with or without /step", fmt::join(names, " ")));
  }

  bool name(Product& result, Powers& powers) {
    MetricOf of;
    std::size_t where = at_;
    std::string_view word = peek_while(is_word);
    at_ += word.size();
    if (word == "stored" && take(".")) {
      of.stored = true;
      where = at_;
      word = peek_while(is_word);
      at_ += word.size();
    }
    if (!take(".")) {
      if (of.stored) return no_metric(where, word);
      return plan_size(where, word, result, powers);
    }
    if (std::find(variants_.begin(), variants_.end(), word) == variants_.end()) {
      return fail(where, fmt::format("no variant '{}'", word),
                  did_you_mean(word, variants_,
                               fmt::format("the variants are {}", fmt::join(variants_, ", "))));
    }
    of.variant = word;
    return metric(std::move(of), result, powers);
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
      return fail(where, fmt::format("'{}' without a variant", word),
                  fmt::format("write {}.{}", variants_.empty() ? "fix" : variants_.front(), word));
    }
    return fail(where, fmt::format("'{}' is no value", word), std::string(value_hint));
  }

  bool metric(MetricOf of, Product& result, Powers& powers) {
    const std::string_view word = peek_while(is_word);
    const auto metric = metric_named(word);
    if (!metric) {
      const auto planned = metrics_not_built();
      if (std::find(planned.begin(), planned.end(), word) != planned.end()) {
        return fail(at_, fmt::format("the metric '{}' is not built yet", word),
                    "'stepgate fields' lists those that are");
      }
      std::vector<std::string_view> names;
      for (const MetricRow& row : metric_table()) names.push_back(row.name);
      return fail(at_, fmt::format("no metric '{}'", word.empty() ? seen() : word),
                  did_you_mean(word, names, "'stepgate fields' lists the metrics"));
    }
    at_ += word.size();
    of.metric = *metric;
    powers = powers_of(row_of(*metric).unit);
    result.emplace_back(std::move(of));
    return true;
  }

  bool relation(Relation& result) {
    relation_at_ = at_;
    const RelationSign* sign = sign_here();
    if (sign == nullptr) {
      if (rest().empty()) return fail(at_, "the sentence compares nothing", "write >= and a value");
      return unexpected("where a comparison should stand", "write < <= == >= > or ~= there");
    }
    if (!sign->relation) {
      return fail(at_, fmt::format("no comparison '{}'", sign->sign), std::string(sign->instead));
    }
    at_ += sign->sign.size();
    result = *sign->relation;
    return true;
  }

  bool tolerance(Expectation& result) {
    const std::size_t where = at_;
    const bool about = result.relation == Relation::about;
    if (peek_while(is_word) != "within") {
      if (about && rest().empty()) {
        return fail(relation_at_, "'~=' without a tolerance", "write ~= ... within 3%");
      }
      return true;
    }
    if (!about) {
      return fail(where, "'within' belongs to ~= alone", "write ~=, or leave out the tolerance");
    }
    at_ += std::string_view("within").size();
    skip_spaces();
    const auto digits = number_prefix(rest());
    const std::size_t number_at = at_;
    if (digits) at_ += digits->length;
    skip_spaces();
    if (!digits || !take("%")) {
      return fail(number_at, "'within' without a percentage", "write within 3%");
    }
    if (digits->value > 100) {
      return fail(number_at, "a tolerance above 100%", "write at most 100%");
    }
    result.within = digits->value / 100;
    skip_spaces();
    return true;
  }

  bool end() {
    if (rest().empty()) return true;
    if (sign_here() != nullptr) {
      return fail(at_, "a second comparison", "write one line for each comparison");
    }
    return unexpected("after the end of the sentence", "leave it out");
  }

  bool unexpected(std::string_view where_in_words, std::string hint) {
    const char c = rest().front();
    if (c == '-' || c == '/') {
      return fail(at_, fmt::format("no sign '{}'", c),
                  "only + and * combine values; move it to the other side");
    }
    return fail(at_, fmt::format("'{}' {}", seen(), where_in_words), std::move(hint));
  }

  // --- what a sentence of the grammar must still be ---

  void check(const Expectation& expectation, const Powers& left, const Powers& right) {
    if (names_no_metric_of_this_run(expectation)) {
      fail(0, "the sentence names no metric of this run",
           fmt::format("name one, such as {}.samples_per_s",
                       variants_.empty() ? "fix" : variants_.front()));
    } else if (!compatible(left, right)) {
      fail(relation_at_,
           fmt::format("{} cannot be compared with {}", powers_text(left), powers_text(right)),
           unit_hint(left));
    } else if (expectation.relation == Relation::equal &&
               evidence_of(expectation) >= Evidence::timed) {
      fail(relation_at_, "a timed metric never equals", "write ~= ... within 3%");
    }
  }

  static bool names_no_metric_of_this_run(const Expectation& expectation) {
    for (const Side* side : {&expectation.left, &expectation.right}) {
      for (const Product& product : *side) {
        for (const Factor& factor : product) {
          const auto* of = std::get_if<MetricOf>(&factor);
          if (of != nullptr && !of->stored) return false;
        }
      }
    }
    return true;
  }

  std::string_view text_;
  const Place& start_;
  std::span<const std::string_view> variants_;
  std::size_t at_ = 0;
  std::size_t relation_at_ = 0;
  std::optional<Diagnostic> error_;
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
  auto problem = SentenceParser(text, start, variants).parse(expectation);
  if (!problem) return expectation;
  diagnostics.push_back(std::move(*problem));
  return std::nullopt;
}

}  // namespace stepgate
