// SPDX-License-Identifier: MIT
#include "plugin/tables/size_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <variant>

#include "base/text/ascii.h"
#include "base/text/nearest.h"
#include "base/text/units.h"
#include "plugin/library_file.h"

namespace stepgate {
namespace {

// Each level of parentheses is a level of the stack.
constexpr std::size_t most_characters = 200;

struct SizeFunction {
  std::string_view name;
  int arguments;
  double (*of)(double, double);
};
constexpr std::array<SizeFunction, 4> functions{{
    {"ceil", 1, [](double one, double) { return std::ceil(one); }},
    {"floor", 1, [](double one, double) { return std::floor(one); }},
    {"max", 2, [](double one, double other) { return std::max(one, other); }},
    {"min", 2, [](double one, double other) { return std::min(one, other); }},
}};

bool begins_a_name(char c) {
  return c == '_' || (small_letter(c) >= 'a' && small_letter(c) <= 'z');
}

class SizeReader {
 public:
  SizeReader(std::string_view text, std::span<const NamedNumber> names)
      : text_(text), names_(names) {}

  double whole() {
    if (text_.size() > most_characters)
      fail(fmt::format("has more than {} characters", most_characters), "write a shorter one");
    const double value = sum();
    if (at_ < text_.size()) fail(fmt::format("has '{}' where it should end", seen()), signs);
    return value;
  }

 private:
  static constexpr const char* signs = "the signs are + - * / and parentheses";

  double sum() {
    double value = product();
    while (true) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    while (true) {
      if (take('*'))
        value *= factor();
      else if (take('/'))
        value = divided(value, factor());
      else
        return value;
    }
  }

  static double divided(double value, double by) {
    return by == 0 ? std::numeric_limits<double>::quiet_NaN() : value / by;
  }

  double factor() {
    if (take('(')) {
      const double value = sum();
      expect(')');
      return value;
    }
    const std::string_view rest = text_.substr(at_);
    if (const auto number = number_prefix(rest)) {
      skip(number->length);
      return number->value;
    }
    if (rest.empty()) fail("ends where a value should stand", value_hint());
    if (!begins_a_name(rest.front()))
      fail(fmt::format("has '{}' where a value should stand", seen()), value_hint());
    const auto end =
        std::ranges::find_if_not(rest, [](char c) { return begins_a_name(c) || is_digit(c); });
    const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    skip(word.size());
    return take('(') ? function(word) : named(word);
  }

  double named(std::string_view word) {
    const auto known = std::ranges::find(names_, word, &NamedNumber::name);
    if (known != names_.end()) return known->value;
    fail(fmt::format("has no size '{}'", word), did_you_mean(word, names(), value_hint()));
  }

  double function(std::string_view word) {
    const auto known = std::ranges::find(functions, word, &SizeFunction::name);
    if (known == functions.end()) {
      std::vector<std::string_view> all;
      for (const SizeFunction& one : functions) all.push_back(one.name);
      fail(fmt::format("has no function '{}'", word),
           did_you_mean(word, all, "the functions are ceil, floor, max and min"));
    }
    const double one = sum();
    double other = 0;
    if (known->arguments == 2) {
      expect(',');
      other = sum();
    }
    expect(')');
    return known->of(one, other);
  }

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for (const NamedNumber& one : names_) all.push_back(one.name);
    return all;
  }
  std::string value_hint() const {
    return names_.empty() ? "write a number"
                          : fmt::format("write a number or {}", fmt::join(names(), ", "));
  }

  void skip(std::size_t characters) {
    at_ += characters;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char expected) {
    if (at_ == 0) skip(0);
    if (at_ >= text_.size() || text_[at_] != expected) return false;
    skip(1);
    return true;
  }
  void expect(char expected) {
    if (!take(expected))
      fail(fmt::format("has '{}' where '{}' should stand", seen(), expected), signs);
  }
  std::string_view seen() const { return at_ < text_.size() ? text_.substr(at_, 1) : "its end"; }

  [[noreturn]] void fail(const std::string& fact, const std::string& way_out) const {
    throw KernelLibraryError(fmt::format("'{}' {}", text_.substr(0, most_characters), fact),
                             way_out);
  }

  std::string_view text_;
  std::span<const NamedNumber> names_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<NamedNumber> numbers_of(const KernelShape& shape, const KernelAttributes& attributes) {
  std::vector<NamedNumber> all;
  const auto add = [&](const AggregateValue& members) {
    for (std::size_t index = 0; index < members.size(); ++index) {
      const double value = std::visit([](auto member) { return static_cast<double>(member); },
                                      members.member(index));
      all.push_back({members.name(index), value});
    }
  };
  add(shape);
  add(attributes);
  return all;
}

double value_of(std::string_view expression, std::span<const NamedNumber> names) {
  return SizeReader(expression, names).whole();
}

}  // namespace stepgate
