// SPDX-License-Identifier: MIT
// Has one reader for each kind of value; all use the same range check. field_value.cpp writes
// values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/require.h"
#include "base/text/ascii.h"
#include "base/text/enumerators.h"
#include "base/text/nearest.h"
#include "base/text/units.h"
#include "base/text/visible_text.h"
#include "kernels/catalogue.h"
#include "scenario/familiar_words.h"
#include "scenario/knobs/field_value.h"

namespace stepgate {
namespace {

std::string kind_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::integer:
      return "a whole number";
    case FieldKind::number:
      return "a number";
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::choice:
      return "a string";
    case FieldKind::bytes:
      return "a size as a string";
    case FieldKind::version:
      return "a version as a string";
    case FieldKind::percent:
      return "a share as a string";
    case FieldKind::integers:
      return "a list of whole numbers";
    case FieldKind::capacity:
      return "a size or a share as a string";
    case FieldKind::text:
      return "a string";
    case FieldKind::words:
      return "a list of strings";
    case FieldKind::variables:
      return "a table of strings";
    case FieldKind::kernels:
      return "a table of kernels";
  }
  return "";
}

constexpr std::string_view a_replacement = "kernels.layer_norm = \"build/libmine.so\"";

// An example of a valid value, for messages.
std::string example_of(const Field& field) {
  if (field.values.kind == FieldKind::integers) return fmt::format("{} = [16, 24, 32]", field.name);
  if (field.values.kind == FieldKind::capacity)
    return fmt::format("{} = \"4 GiB\", \"105% of need\" or \"60% of device\"", field.name);
  if (field.values.kind == FieldKind::percent) return fmt::format("{} = \"5%\"", field.name);
  if (field.values.kind == FieldKind::text) return fmt::format("{} = \"...\"", field.name);
  if (field.values.kind == FieldKind::words)
    return fmt::format("{} = [\"python3\", \"train.py\"]", field.name);
  if (field.values.kind == FieldKind::variables)
    return fmt::format("{} = {{ NAME = \"value\" }}", field.name);
  if (field.values.kind == FieldKind::kernels) return std::string(a_replacement);
  FieldValue value = default_of(field);
  if (std::holds_alternative<std::monostate>(value) && field.values.kind != FieldKind::bytes) {
    return fmt::format("{} = \"{}\"", field.name, field.values.word);
  }
  if (field.values.kind == FieldKind::bytes) return fmt::format("{} = \"64 KiB\"", field.name);
  const bool quoted =
      field.values.kind == FieldKind::choice || field.values.kind == FieldKind::version;
  const std::string_view quote = quoted ? "\"" : "";
  return fmt::format("{} = {}{}{}", field.name, quote, field_value_text(field, value), quote);
}

// The 50 of "ResNet50" and of "resnet-50".
std::optional<double> number_behind_name(std::string_view text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first == 0 || first == text.npos) return std::nullopt;
  const std::string_view digits = text.substr(first);
  if (digits.size() > 6 || !std::ranges::all_of(digits, is_digit)) return std::nullopt;
  double number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// The number that a value of another type means, in the unit of the field: 1024 for "1024" and for
// 1024.0, 30000 for "30 ms" where the field counts microseconds, and 50 for "ResNet50" where it
// counts layers. nullopt where that is unclear.
std::optional<double> number_meant(const Field& field, const TomlValue& value) {
  if (const auto* real = std::get_if<double>(&value.content)) return *real;
  const auto* text = std::get_if<std::string>(&value.content);
  const auto quantity = text == nullptr ? std::nullopt : parse_quantity(*text);
  if (text != nullptr && !quantity && field.values.kind == FieldKind::integer)
    return number_behind_name(*text);
  if (!quantity) return std::nullopt;
  if (quantity->dimension == Dimension::seconds && field.name.ends_with("_us"))
    return std::round(quantity->value * 1e9) / 1e3;
  return quantity->dimension == Dimension::plain && !text->ends_with('%')
             ? std::optional(quantity->value)
             : std::nullopt;
}

class ValueReader {
 public:
  ValueReader(const Field& field, const TomlValue& value) : field_(field), value_(value) {}

  std::optional<FieldValue> read() {
    const auto* text = std::get_if<std::string>(&value_.content);
    if (text != nullptr && !field_.values.word.empty() && *text == field_.values.word) {
      return FieldValue();
    }
    switch (field_.values.kind) {
      case FieldKind::integer:
        return integer();
      case FieldKind::number:
        return number();
      case FieldKind::boolean:
        return boolean();
      case FieldKind::choice:
        return text != nullptr ? choice(*text) : wrong_type();
      case FieldKind::bytes:
        return text != nullptr ? bytes(*text) : wrong_type();
      case FieldKind::version:
        return version(text);
      case FieldKind::percent:
        return text != nullptr ? percent(*text) : wrong_type();
      case FieldKind::integers:
        return integers();
      case FieldKind::capacity:
        return text != nullptr ? capacity(*text) : wrong_type();
      case FieldKind::text:
        return text != nullptr ? words_of(*text) : wrong_type();
      case FieldKind::words:
        return words();
      case FieldKind::variables:
        return variables();
      case FieldKind::kernels:
        return kernels();
    }
    return std::nullopt;
  }

  Diagnostic problem() && { return std::move(problem_); }

 private:
  std::optional<FieldValue> fail(std::string message, std::string hint) {
    problem_ = {value_.place, std::move(message), std::move(hint)};
    return std::nullopt;
  }

  std::optional<FieldValue> wrong_type() {
    const std::string or_word =
        field_.values.word.empty() ? std::string() : fmt::format(" or \"{}\"", field_.values.word);
    return fail(fmt::format("'{}' must be {}{}, but is {}", field_.name,
                            kind_text(field_.values.kind), or_word, type_text(value_)),
                field_.values.kind == FieldKind::choice
                    ? possible_values()
                    : fmt::format("write {}", what_was_meant().value_or(example_of(field_))));
  }

  // "batch.size = 1024" for the text "1024", where that is a value of the field.
  std::optional<std::string> what_was_meant() const {
    const bool is_whole = field_.values.kind == FieldKind::integer;
    if (!is_whole && field_.values.kind != FieldKind::number) return std::nullopt;
    const auto meant = number_meant(field_, value_);
    if (!meant || !(*meant >= field_.values.least && *meant <= field_.values.most))
      return std::nullopt;
    if (is_whole && (*meant != std::floor(*meant) ||
                     static_cast<std::int64_t>(*meant) % field_.values.multiple_of != 0))
      return std::nullopt;
    return fmt::format("{} = {}", field_.name, *meant);
  }

  std::optional<FieldValue> in_range(double value, FieldValue result) {
    // Written as a negation, so that nan is refused too.
    if (!(value >= field_.values.least && value <= field_.values.most)) {
      return fail(fmt::format("'{}' must be between {} and {}, but is {}", field_.name,
                              limit_text(field_.values, field_.values.least),
                              limit_text(field_.values, field_.values.most),
                              field_value_text(field_, result)),
                  value > field_.values.least ? "make it smaller" : "make it larger");
    }
    return result;
  }

  std::optional<FieldValue> integer() {
    const auto* value = std::get_if<std::int64_t>(&value_.content);
    if (value == nullptr) return wrong_type();
    const auto result = in_range(static_cast<double>(*value), *value);
    const std::int64_t factor = field_.values.multiple_of;
    if (!result || *value % factor == 0) return result;
    const std::int64_t below = *value / factor * factor;
    return fail(
        fmt::format("'{}' must be a multiple of {}, but is {}", field_.name, factor, *value),
        fmt::format("{} and {} are", below, below + factor));
  }

  std::optional<FieldValue> integers() {
    const auto* list = std::get_if<TomlArray>(&value_.content);
    if (list == nullptr) return wrong_type();
    if (list->size() < fewest_in_list || list->size() > most_in_list) {
      return fail(fmt::format("'{}' must list {} to {} numbers, but lists {}", field_.name,
                              fewest_in_list, most_in_list, list->size()),
                  fmt::format("write {}", example_of(field_)));
    }
    std::vector<std::int64_t> numbers;
    for (const TomlValue& element : *list) {
      Field of_one = field_;
      of_one.values.kind = FieldKind::integer;
      of_one.values.word = {};
      ValueReader reader(of_one, element);
      const auto number = reader.read();
      if (!number) {
        problem_ = std::move(reader).problem();
        if (std::get_if<std::int64_t>(&element.content) == nullptr) {
          problem_.hint = fmt::format("write {}", example_of(field_));
        }
        return std::nullopt;
      }
      numbers.push_back(std::get<std::int64_t>(*number));
    }
    return numbers;
  }

  // Refuses what neither a command line nor a report can have.
  std::optional<FieldValue> words_of(const std::string& text) {
    if (text.empty())
      return fail(fmt::format("'{}' is empty", field_.name),
                  fmt::format("leave it out, or write {}", example_of(field_)));
    if (one_line(text) == text && text.size() <= most_letters) return text;
    return fail(
        fmt::format("'{}' has {}", field_.name,
                    text.size() > most_letters ? fmt::format("more than {} letters", most_letters)
                                               : "characters that nobody sees"),
        "put what is long or unusual into a file of the program");
  }

  std::optional<FieldValue> words() {
    const auto* list = std::get_if<TomlArray>(&value_.content);
    if (list == nullptr) return wrong_type();
    if (list->empty() || list->size() > most_words)
      return fail(fmt::format("'{}' must list 1 to {} words, but lists {}", field_.name, most_words,
                              list->size()),
                  fmt::format("write {}", example_of(field_)));
    ProgramWords read;
    for (const TomlValue& element : *list) {
      auto word = one_of_many(element, /*may_be_empty=*/&element != &list->front());
      if (!word) return std::nullopt;
      read.push_back(*std::move(word));
    }
    return read;
  }

  std::optional<FieldValue> variables() {
    const auto* table = std::get_if<TomlTable>(&value_.content);
    if (table == nullptr) return wrong_type();
    if (table->empty() || table->size() > most_words)
      return fail(fmt::format("'{}' must have 1 to {} variables, but has {}", field_.name,
                              most_words, table->size()),
                  fmt::format("write {}", example_of(field_)));
    ProgramVariables read;
    for (const TomlEntry& entry : *table) {
      if (!is_variable_name(entry.key)) {
        problem_ = {entry.place, fmt::format("'{}' cannot name a variable", entry.key),
                    "use letters, digits and _, and start with a letter or _"};
        return std::nullopt;
      }
      auto text = one_of_many(entry.value, /*may_be_empty=*/true);
      if (!text) return std::nullopt;
      read.emplace(entry.key, *std::move(text));
    }
    return read;
  }

  // The table of a group: layer_norm = "build/libmine.so", or with ":function" behind it, or a
  // table that says more; "ours" is the catalogue's kernel again. A text is the library that all
  // kernels come from which a variant replaces.
  std::optional<FieldValue> kernels() {
    if (const auto* library = std::get_if<std::string>(&value_.content)) return words_of(*library);
    const auto* table = std::get_if<TomlTable>(&value_.content);
    if (table == nullptr) return wrong_type();
    ReplacedKernels read;
    for (const TomlEntry& entry : *table) {
      std::vector<std::string_view> names;
      for (const Kernel& known : kernel_catalogue()) names.push_back(known.name);
      if (std::ranges::find(names, entry.key) == names.end()) {
        problem_ = {entry.place, fmt::format("no kernel is named '{}'", entry.key),
                    did_you_mean(entry.key, names, "'stepgate kernel describe' lists the kernels")};
        return std::nullopt;
      }
      auto replacement = replacement_of(entry);
      if (!replacement) return std::nullopt;
      read.emplace(entry.key, *std::move(replacement));
    }
    return read;
  }

  std::optional<KernelReplacement> replacement_of(const TomlEntry& kernel) {
    KernelReplacement replacement{.library = {}, .function = kernel.key};
    if (const auto* text = std::get_if<std::string>(&kernel.value.content)) {
      if (*text == "ours") return replacement;
      return library_of(*text, kernel.value, replacement);
    }
    const auto* table = std::get_if<TomlTable>(&kernel.value.content);
    const TomlEntry* otherwise = nullptr;
    const auto wrong = [&](const TomlEntry& at, std::string_view must_be, std::string hint) {
      problem_ = {at.value.place,
                  fmt::format("'kernels.{}{}{}' must be {}, but is {}", kernel.key,
                              &at == &kernel ? "" : ".", &at == &kernel ? "" : at.key, must_be,
                              type_text(at.value)),
                  std::move(hint)};
      return std::nullopt;
    };
    if (table == nullptr)
      return wrong(kernel, "a string or a table", fmt::format("write {}", a_replacement));
    for (const TomlEntry& entry : *table) {
      const auto* text = std::get_if<std::string>(&entry.value.content);
      const auto* whole = std::get_if<std::int64_t>(&entry.value.content);
      if (entry.key == "library") {
        if (text == nullptr) return wrong(entry, "a string", "name the shared library");
        const bool names_function = find(*table, "function") != nullptr;
        if (!library_of(*text, entry.value, replacement, names_function)) return std::nullopt;
      } else if (entry.key == "function") {
        if (text == nullptr || text->empty())
          return wrong(entry, "a string", "name what the library exports");
        replacement.function = *text;
      } else if (entry.key == "launches") {
        if (whole == nullptr || *whole < 1 || *whole > most_launches)
          return wrong(entry, fmt::format("a whole number from 1 to {}", most_launches),
                       "say how many kernels a call enqueues");
        replacement.launches = *whole;
      } else if (entry.key == "workspace") {
        const BytesOrProblem bytes =
            text == nullptr ? BytesOrProblem(std::string()) : parse_bytes(*text);
        if (const auto* problem = std::get_if<std::string>(&bytes); problem != nullptr)
          return wrong(entry, "a size as a string", "write workspace = \"4 MiB\"");
        replacement.workspace_bytes = std::get<std::int64_t>(bytes);
      } else if (entry.key == "time_us") {
        const auto* real = std::get_if<double>(&entry.value.content);
        const double time = real != nullptr    ? *real
                            : whole != nullptr ? static_cast<double>(*whole)
                                               : 0;
        if (!(time > 0 && time <= 1e9))
          return wrong(entry, "a number above 0", "say how long a launch takes, in microseconds");
        replacement.microseconds = time;
      } else if (entry.key == "otherwise") {
        const auto& words = enumerators<Otherwise>;
        const auto known = std::ranges::find(words, text == nullptr ? "" : *text);
        if (known == words.end())
          return wrong(entry, "\"refuse\" or \"ours\"",
                       did_you_mean(text == nullptr ? "" : *text, words,
                                    "say who launches what the library does not support"));
        replacement.otherwise = static_cast<Otherwise>(known - words.begin());
        otherwise = &entry;
      } else {
        constexpr std::array<std::string_view, 6> keys{"library",   "function", "launches",
                                                       "workspace", "time_us",  "otherwise"};
        problem_ = {entry.place, fmt::format("unknown key 'kernels.{}.{}'", kernel.key, entry.key),
                    did_you_mean(entry.key, keys,
                                 "say library, function, launches, workspace, time_us or "
                                 "otherwise")};
        return std::nullopt;
      }
    }
    if (replacement.otherwise == Otherwise::ours) {
      const std::string against = reason_against_ours(replacement, kernel.key);
      if (!against.empty()) {
        problem_ = {
            otherwise->value.place,
            fmt::format("'kernels.{}.otherwise' cannot be \"ours\": {}", kernel.key, against),
            "leave it out, and let the library support every shape of the step"};
        return std::nullopt;
      }
    }
    if (!replacement.library.empty()) return replacement;
    problem_ = {kernel.place, fmt::format("'kernels.{}' names no library", kernel.key),
                fmt::format("write {}", a_replacement)};
    return std::nullopt;
  }

  // The plan counts a launch before anybody knows who makes it, so both must count alike. Empty
  // where they do.
  static std::string reason_against_ours(const KernelReplacement& replacement,
                                         std::string_view name) {
    const KernelLibrary& own = kernel(name).library;
    if (replacement.launches != 1)
      return fmt::format("a call of the library launches {} kernels, and stepgate's own one",
                         replacement.launches);
    if (replacement.workspace_bytes != 0) return "stepgate's own kernel does not use the workspace";
    if (own.uses_workspace || own.is_gemm() || own.is_attention)
      return fmt::format("stepgate's own {} is a library's, with workspace of its own", name);
    return "";
  }

  // "build/libmine.so:norm": the function stands behind the last colon of the file's name, unless a
  // key of its own names it.
  std::optional<KernelReplacement> library_of(const std::string& text, const TomlValue& at,
                                              KernelReplacement& replacement,
                                              bool names_function = false) {
    const std::size_t name = text.rfind('/') + 1;  // npos + 1 is 0
    const std::size_t colon = text.rfind(':');
    const bool has_function = !names_function && colon != std::string::npos && colon >= name;
    replacement.library = text.substr(0, has_function ? colon : std::string::npos);
    if (has_function) replacement.function = text.substr(colon + 1);
    if (one_line(text) == text && text.size() <= most_letters && !replacement.library.empty() &&
        !replacement.function.empty())
      return replacement;
    problem_ = {at.place, fmt::format("'{}' names no library and function", one_line(text)),
                fmt::format("write {}", a_replacement)};
    return std::nullopt;
  }

  std::optional<std::string> one_of_many(const TomlValue& element, bool may_be_empty) {
    const auto* text = std::get_if<std::string>(&element.content);
    if (text != nullptr && text->empty() && may_be_empty) return "";
    ValueReader reader(field_, element);
    const auto word = text != nullptr ? reader.words_of(*text) : reader.wrong_type();
    if (word) return std::get<std::string>(*word);
    problem_ = std::move(reader).problem();
    return std::nullopt;
  }

  static bool is_variable_name(std::string_view name) {
    const auto fits = [](char letter) {
      return letter == '_' || std::isalnum(static_cast<unsigned char>(letter)) != 0;
    };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::ranges::all_of(name, fits);
  }

  std::optional<FieldValue> number() {
    const auto* whole = std::get_if<std::int64_t>(&value_.content);
    if (whole != nullptr) {
      const auto value = static_cast<double>(*whole);
      return in_range(value, value);
    }
    const auto* value = std::get_if<double>(&value_.content);
    return value != nullptr ? in_range(*value, *value) : wrong_type();
  }

  std::optional<FieldValue> boolean() {
    const auto* value = std::get_if<bool>(&value_.content);
    return value != nullptr ? std::optional<FieldValue>(*value) : wrong_type();
  }

  std::optional<FieldValue> choice(const std::string& text) {
    std::vector<std::string_view> names;
    for (const Choice& choice : field_.values.choices) {
      if (choice.name == text) {
        if (choice.value) return *choice.value;
        return fail(fmt::format("'{}' is not built yet", text), possible_values());
      }
      names.push_back(choice.name);
    }
    const std::string_view familiar = choice_for(field_.name, text);
    const FamiliarWord* word = familiar_word(text);
    const bool is_remarked = word != nullptr && !word->remark.empty();
    return fail(fmt::format("'{}' has no choice '{}'", field_.name, text),
                !familiar.empty() ? fmt::format("did you mean '{}'?", familiar)
                : is_remarked     ? std::string(word->remark)
                                  : did_you_mean(text, names, possible_values()));
  }

  std::string possible_values() const {
    return fmt::format("'{}' may be {}", field_.name, field_values_text(field_.values));
  }

  std::optional<FieldValue> bytes(const std::string& text) {
    const BytesOrProblem read = parse_bytes(text);
    if (const auto* problem = std::get_if<std::string>(&read)) {
      return fail(fmt::format("'{}' of '{}' {}", text, field_.name, *problem),
                  fmt::format("write a whole number with B, KiB, MiB or GiB{}{}",
                              field_.values.word.empty() ? "" : ", or ", field_.values.word));
    }
    const std::int64_t value = std::get<std::int64_t>(read);
    return in_range(static_cast<double>(value), value);
  }

  std::optional<FieldValue> capacity(const std::string& text) {
    const auto prefix = number_prefix(text);
    if (!prefix || text.find('%') == std::string::npos) {
      const auto size = bytes(text);
      if (!size) {
        problem_.hint = fmt::format("write {}", example_of(field_));
        return std::nullopt;
      }
      return MemoryCap{CapOf::bytes, static_cast<double>(std::get<std::int64_t>(*size))};
    }
    return share(text, prefix->value, text.substr(prefix->length));
  }

  std::optional<FieldValue> share(const std::string& text, double percent,
                                  const std::string& rest) {
    const bool of_need = rest == "% of need" || rest == " % of need";
    const bool of_device = rest == "% of device" || rest == " % of device";
    if (!of_need && !of_device) {
      return fail(fmt::format("'{}' of '{}' is no share of what the step needs or a device has",
                              text, field_.name),
                  fmt::format("write {}", example_of(field_)));
    }
    constexpr double least = 1;
    const double most = of_need ? 10000 : 100;
    if (!(percent >= least && percent <= most)) {
      return fail(fmt::format("'{}' must be between {} and {} % of {}, but is {}", field_.name,
                              least, most, of_need ? "need" : "device", text),
                  of_need ? "the need is what is live at once at the largest batch"
                          : "no allocator can take more than the device has");
    }
    return MemoryCap{of_need ? CapOf::need : CapOf::device, percent / 100};
  }

  std::optional<FieldValue> percent(const std::string& text) {
    const auto prefix = number_prefix(text);
    if (!prefix || text.substr(prefix->length) != "%") {
      return fail(fmt::format("'{}' must be a share, but is '{}'", field_.name, text),
                  fmt::format("write {}", example_of(field_)));
    }
    return in_range(prefix->value / 100, prefix->value / 100);
  }

  std::optional<FieldValue> version(const std::string* text) {
    if (text == nullptr) return number();
    const auto prefix = number_prefix(*text);
    if (!prefix || prefix->length != text->size()) {
      return fail(fmt::format("'{}' must be a version, but is '{}'", field_.name, *text),
                  fmt::format("write {} = \"8.0\"", field_.name));
    }
    return in_range(prefix->value, prefix->value);
  }

  static constexpr std::size_t most_letters = 4096;
  static constexpr std::size_t most_words = 256;
  static constexpr std::int64_t most_launches = 1000;

  const Field& field_;
  const TomlValue& value_;
  Diagnostic problem_;
};

template <class Number>
std::optional<Number> whole_text_as(std::string_view text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return all ? std::optional(number) : std::nullopt;
}

// Parses "[16, 24]" or "16,24"; nullopt for anything else.
std::optional<TomlArray> list_of_argument(std::string_view text, const Place& place) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  TomlArray list;
  while (true) {
    const auto comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const auto number = whole_text_as<std::int64_t>(part);
    if (!number) return std::nullopt;
    list.push_back({*number, place, place});
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<FieldValue> read_field_value(const Field& field, const TomlValue& value,
                                           std::vector<Diagnostic>& diagnostics) {
  require(is_built(field), "only built fields are read");
  ValueReader reader(field, value);
  auto result = reader.read();
  if (!result) diagnostics.push_back(std::move(reader).problem());
  return result;
}

TomlValue toml_of_argument(const Field& field, std::string_view text, const Place& place) {
  TomlValue value{std::string(text), place, place};
  const FieldKind kind = field.values.kind;
  if (kind == FieldKind::boolean && (text == "true" || text == "false")) {
    value.content = text == "true";
  } else if (kind == FieldKind::integers) {
    if (auto list = list_of_argument(text, place)) value.content = *std::move(list);
  } else if (kind == FieldKind::words || kind == FieldKind::variables ||
             (kind == FieldKind::kernels && text.starts_with('{'))) {
    std::vector<Diagnostic> no_toml;  // then the text itself is refused
    auto table = parse_toml(fmt::format("value = {}", text), place.file, no_toml);
    if (table && table->size() == 1) value.content = std::move(table->front().value.content);
  } else if (kind == FieldKind::integer || kind == FieldKind::number) {
    if (const auto whole = whole_text_as<std::int64_t>(text)) {
      value.content = *whole;
    } else if (const auto real = whole_text_as<double>(text)) {
      value.content = *real;
    }
  }
  return value;
}

}  // namespace stepgate
