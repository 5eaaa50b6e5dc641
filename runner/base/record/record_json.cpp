// SPDX-License-Identifier: MIT
#include "base/record/record_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>

#include "base/text/json_line.h"
#include "base/text/json_nesting.h"
#include "base/text/utf8.h"
#include "base/text/visible_text.h"

namespace stepgate {
namespace {

constexpr const char* bytes_key = "bytes";
constexpr std::size_t most_shown = 40;  // bytes of a value or a key in an error
constexpr const char* twice = "twice";  // the fact of a repeated key

std::string short_form(const RecordJson& value) {
  const std::string text = json_line(value);
  return text.size() > most_shown ? text.substr(0, most_shown) + "..." : text;
}

std::string short_key(const std::string& key) {
  return beginning_of(key, most_shown);
}

std::string hexadecimal_of(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

// Reads a number from digits; nullopt where the text is not only digits or the number does not fit.
template <class Number>
std::optional<Number> number_of_digits(std::string_view digits) {
  Number number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number, 16);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

std::string bytes_of(const RecordJson& json) {
  const std::string_view digits = json.get_ref<const std::string&>();
  std::string bytes;
  if (digits.size() % 2 != 0) throw WrongRecord(json, "has half a byte");
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    const auto byte = number_of_digits<unsigned char>(digits.substr(at, 2));
    if (!byte) throw WrongRecord(json, "is not hexadecimal");
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

// Builds a value from the events of the parser. The library's own readers keep the last of repeated
// keys, and search an ordered object from its start for every key.
class ObjectBuilder : public nlohmann::json_sax<RecordJson> {
 public:
  RecordJson take_result() { return std::move(result_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(RecordJson::object()); }
  bool start_array(std::size_t) override { return open(RecordJson::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (!open_.back().keys.insert(key).second) refuse_repeated(key);
    open_.back().key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const RecordJson::exception&) override {
    return false;
  }

 private:
  // An object or array whose end is still to come.
  struct Open {
    RecordJson value;
    std::string key{};  // of the member that comes next
    std::set<std::string> keys{};
  };

  bool open(RecordJson empty) {
    if (open_.size() == deepest_json)
      throw WrongRecord::of_text(fmt::format("nests deeper than {} levels", deepest_json));
    open_.push_back({std::move(empty)});
    return true;
  }
  bool close() {
    RecordJson closed = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(closed));
  }
  bool add(RecordJson value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (Open& around = open_.back(); around.value.is_array()) {
      around.value.push_back(std::move(value));
    } else {
      around.value.get_ref<RecordJson::object_t&>().emplace_back(std::move(around.key),
                                                                 std::move(value));
    }
    return true;
  }
  [[noreturn]] void refuse_repeated(const std::string& key) const {
    WrongRecord wrong = WrongRecord::repeated(short_key(key));
    for (std::size_t index = open_.size() - 1; index-- > 0;) {
      const Open& around = open_[index];
      wrong = wrong.within(around.value.is_array() ? fmt::format("[{}]", around.value.size())
                                                   : short_key(around.key));
    }
    throw wrong;
  }

  std::vector<Open> open_;
  RecordJson result_;
};

std::string sentence_of(const std::string& path, const std::string& value,
                        const std::string& fact) {
  if (value.empty() && fact.empty()) return fmt::format("has no '{}'", one_line(path));
  if (value.empty()) return fact == twice ? fmt::format("has '{}' twice", one_line(path)) : fact;
  if (path.empty()) return fmt::format("is {}, which {}", one_line(value), fact);
  return fmt::format("has '{}' {}, which {}", one_line(path), one_line(value), fact);
}

}  // namespace

WrongRecord::WrongRecord(const RecordJson& value, std::string_view fact)
    : WrongRecord("", short_form(value), std::string(fact)) {}

WrongRecord::WrongRecord(std::string path, std::string value, std::string fact)
    : std::runtime_error(sentence_of(path, value, fact)),
      path_(std::move(path)),
      value_(std::move(value)),
      fact_(std::move(fact)) {}

WrongRecord WrongRecord::missing(std::string_view field) {
  return {std::string(field), "", ""};
}

WrongRecord WrongRecord::repeated(std::string_view key) {
  return {std::string(key), "", twice};
}

WrongRecord WrongRecord::of_text(std::string_view fact) {
  return {"", "", std::string(fact)};
}

WrongRecord WrongRecord::within(std::string_view place) const {
  const bool joins = path_.empty() || path_.starts_with('[');
  return {std::string(place) + (joins ? "" : ".") + path_, value_, fact_};
}

RecordJson parsed_object(std::string_view text) {
  ObjectBuilder builder;
  if (!RecordJson::sax_parse(text, &builder)) throw WrongRecord::of_text("is not JSON");
  RecordJson json = builder.take_result();
  if (!json.is_object()) throw WrongRecord::of_text("is not a JSON object");
  return json;
}

RecordJson with_plain_texts(RecordJson json) {
  if (json.is_object() && json.size() == 1 && json.contains(bytes_key) &&
      json.at(bytes_key).is_string())
    return bytes_of(json.at(bytes_key));
  for (RecordJson& part : json) {
    if (part.is_structured()) part = with_plain_texts(std::move(part));
  }
  return json;
}

RecordJson json_of_text(const std::string& text) {
  if (!first_bad_utf8(text)) return text;
  return {{bytes_key, hexadecimal_of(text)}};
}

std::string text_from(const RecordJson& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object() || !json.contains(bytes_key) || !json.at(bytes_key).is_string())
    throw WrongRecord(json, "is no text");
  return bytes_of(json.at(bytes_key));
}

RecordJson json_of_number(double number) {
  if (std::isfinite(number)) return number;
  return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(number));
}

double number_from(const RecordJson& json) {
  if (json.is_number()) return json.get<double>();
  const auto bits = json.is_string()
                        ? number_of_digits<std::uint64_t>(json.get_ref<const std::string&>())
                        : std::optional<std::uint64_t>();
  const double number = std::bit_cast<double>(bits.value_or(0));
  if (!bits || std::isfinite(number)) throw WrongRecord(json, "is no number");
  return number;
}

std::int64_t whole_number_from(const RecordJson& json, std::int64_t least, std::int64_t most) {
  if (!json.is_number_integer()) throw WrongRecord(json, "is no whole number");
  const bool fits = !json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX;
  const std::int64_t number = fits ? json.get<std::int64_t>() : 0;
  if (!fits || number < least || number > most)
    throw WrongRecord(json, fmt::format("is not from {} to {}", least, most));
  return number;
}

std::uint64_t natural_number_from(const RecordJson& json, std::uint64_t most) {
  const bool is_natural =
      json.is_number_unsigned() || (json.is_number_integer() && json.get<std::int64_t>() >= 0);
  if (!is_natural || json.get<std::uint64_t>() > most)
    throw WrongRecord(json, fmt::format("is no whole number from 0 to {}", most));
  return json.get<std::uint64_t>();
}

}  // namespace stepgate
