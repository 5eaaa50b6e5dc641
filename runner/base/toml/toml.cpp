// SPDX-License-Identifier: MIT
// The one place that includes toml++: parse, then copy into our own tree in file order.
// Some packages compile toml++ into a library that throws; ours is the header, without exceptions.
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
// Reads numbers with from_chars, which takes no memory. With a stringstream, as is the default, a
// lack of memory looks like a malformed number.
#define TOML_FLOAT_CHARCONV 1
// toml++ 3.3 asserts conditions that it then handles by refusing. With NDEBUG it tells clang to
// assume them. So both are disabled, in every kind of build.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include "base/toml/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>

#include "base/files/read_file.h"
#include "base/text/ascii.h"
#include "base/text/utf8.h"

namespace stepgate {
namespace {

constexpr int most_dots_in_a_line = 128;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

bool beyond_ascii(char byte) {
  return static_cast<unsigned char>(byte) >= 0x80;
}

// Finds text that breaks toml++ instead of being refused. Skips strings and comments and checks the
// rest. After a malformed string it may skip the wrong text, but there the parser stops anyway.
class Guard {
 public:
  Guard(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::optional<Diagnostic> first_fault() {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        if (auto found = fault_of_string(c)) return found;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        if (beyond_ascii(c))
          return fault("a character beyond ASCII outside quotes", "put it in quotes");
        if (c == '\n') dots_ = 0;
        if (c == '.' && ++dots_ > most_dots_in_a_line) {
          return fault(fmt::format("more than {} dots in one line", most_dots_in_a_line),
                       "break the line up");
        }
        ++at_;
      }
    }
    return std::nullopt;
  }

 private:
  // Checks a string and moves behind it.
  std::optional<Diagnostic> fault_of_string(char quote) {
    const bool triple = text_.substr(at_).starts_with(std::string(3, quote));
    const std::string closing(triple ? 3 : 1, quote);
    at_ += closing.size();
    while (at_ < text_.size() && !text_.substr(at_).starts_with(closing)) {
      if (!triple && text_[at_] == '\n') return std::nullopt;
      const bool escape = quote == '"' && text_[at_] == '\\';
      if (escape && triple && beyond_ascii_follows_break(at_ + 1)) {
        return fault("a character beyond ASCII after a backslash that ends the line",
                     "put it on the line before");
      }
      at_ += escape ? 2 : 1;
    }
    at_ = std::min(at_ + closing.size(), text_.size());
    // Up to two more quotes may precede the closing three.
    for (int more = 0; triple && more < 2 && text_.substr(at_).starts_with(quote); ++more) ++at_;
    return std::nullopt;
  }

  bool beyond_ascii_follows_break(std::size_t from) const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n\v\f", from);
    return next != std::string_view::npos && next > from && beyond_ascii(text_[next]);
  }

  std::optional<Diagnostic> fault(std::string message, std::string hint) const {
    const std::string_view before = text_.substr(0, at_);
    const std::size_t line_end = before.rfind('\n');
    const std::size_t line_start = line_end == std::string_view::npos ? 0 : line_end + 1;
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return Diagnostic{
        {file_, static_cast<int>(line), 1 + count_code_points(before.substr(line_start))},
        std::move(message),
        std::move(hint)};
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int dots_ = 0;
};

// The first fault, with its place in the file, that toml++ must not be given. The text is valid
// UTF-8. Faults are:
// - a character beyond ASCII outside strings and comments: TOML has none there, and toml++ 3.3 runs
//   into undefined behaviour (found by fuzzing);
// - more dots in a line, outside strings and comments, than any key needs: toml++ limits nested
//   values but not the parts of a key, and frees its tables recursively;
// - a character beyond ASCII after a backslash that ends a line of a string: toml++ 3.3 runs into
//   the same undefined behaviour.
std::optional<Diagnostic> unfit_for_parser(std::string_view text, const std::string& file) {
  return Guard(text, file).first_fault();
}

// Replaces each character beyond ASCII by '~'; a byte order mark at the start stays. Lines and
// columns are unchanged. On malformed values toml++ handles such characters with undefined
// behaviour, so this text is parsed first. The original is parsed only if that succeeds.
std::string in_ascii(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  if (text.starts_with(byte_order_mark)) {
    ascii = byte_order_mark;
    text.remove_prefix(byte_order_mark.size());
  }
  for (const char byte : text) {
    const bool continues = (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    if (!continues) ascii += beyond_ascii(byte) ? '~' : byte;
  }
  return ascii;
}

constexpr int deepest_table = 32;

Place place_of(const toml::source_position& position, const std::string& file) {
  return {file, static_cast<int>(position.line), static_cast<int>(position.column)};
}

class TreeCopier {
 public:
  TreeCopier(std::string_view text, const std::string& file, std::vector<Diagnostic>& diagnostics)
      : lines_(text), file_(file), diagnostics_(diagnostics) {}

  TomlTable table(const toml::table& source, int depth) {
    TomlTable entries;
    entries.reserve(source.size());
    for (const auto& [key, node] : source) {
      const Place place = place_of(key.source().begin, file_);
      if (depth >= deepest_table) {
        diagnostics_.push_back({place, fmt::format("tables nest deeper than {}", deepest_table),
                                "no table here needs more than three"});
        break;
      }
      entries.push_back({std::string(key.str()), place, value(node, depth)});
    }
    // Restores the order of the file, since toml++ iterates in the order of the keys.
    std::sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
      return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
    });
    return entries;
  }

 private:
  TomlValue value(const toml::node& node, int depth) {
    TomlValue result;
    result.place = place_of(node.source().begin, file_);
    result.text_place = result.place;
    switch (node.type()) {
      case toml::node_type::table:
        result.content = table(*node.as_table(), depth + 1);
        break;
      case toml::node_type::array:
        result.content = array(*node.as_array(), depth + 1);
        break;
      case toml::node_type::string:
        result.content = **node.as_string();
        result.text_place = inside_quotes(result.place);
        break;
      case toml::node_type::integer:
        result.content = std::int64_t{**node.as_integer()};
        break;
      case toml::node_type::floating_point:
        result.content = **node.as_floating_point();
        break;
      case toml::node_type::boolean:
        result.content = **node.as_boolean();
        break;
      default:
        result.content = TomlDate{};
    }
    return result;
  }

  TomlArray array(const toml::array& source, int depth) {
    TomlArray values;
    if (depth >= deepest_table) return values;
    for (const toml::node& node : source) values.push_back(value(node, depth));
    return values;
  }

  Place inside_quotes(Place place) const {
    const std::string_view rest = lines_.from(place.line, place.column);
    if (rest.empty()) return place;
    const bool triple = rest.size() >= 3 && rest[1] == rest[0] && rest[2] == rest[0];
    place.column += triple ? 3 : 1;
    const bool starts_below = triple && rest.find_first_not_of('\r', 3) == std::string_view::npos;
    if (starts_below) return {place.file, place.line + 1, 1};  // TOML drops this line end
    return place;
  }

  Utf8Lines lines_;
  const std::string& file_;
  std::vector<Diagnostic>& diagnostics_;
};

// The text without quotes that stands where a value should, up to the value's end, if the parser
// failed in it: "fix.step_ms_mean <= 2" of `line = fix.step_ms_mean <= 2  # why`. Empty otherwise.
std::string_view unquoted_value(const Place& place, const Utf8Lines& lines) {
  const std::string_view line = lines.from(place.line, 1);
  const auto failed_at = line.size() - lines.from(place.line, place.column).size();
  constexpr std::string_view of_a_word =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
  const std::size_t before = line.substr(0, failed_at).find_last_not_of(of_a_word);
  if (before == std::string_view::npos) return {};
  const std::size_t sign = line.substr(0, before + 1).find_last_not_of(" \t");
  if (sign == std::string_view::npos) return {};
  const bool is_value = line[sign] == '=' || line[sign] == ',' || line[sign] == '[';
  if (!is_value || line.find('=') > sign) return {};
  std::string_view value = line.substr(before + 1);
  value = value.substr(0, value.find_first_of("#,}]\r\"'"));
  const std::size_t last = value.find_last_not_of(" \t");
  return last == std::string_view::npos ? "" : value.substr(0, last + 1);
}

// The hint for text without quotes.
std::string way_out_of(std::string_view unquoted) {
  if (unquoted == "True" || unquoted == "False")
    return unquoted == "True" ? "write true" : "write false";
  if (unquoted == "None" || unquoted == "null" || unquoted == "nil")
    return "leave the line out, or write \"none\" where the knob has that word";
  return fmt::format("put it in quotes: \"{}\"", unquoted);
}

// Whether messages may show what stands in a file. Of one that is found by its name, in a folder of
// a checkout, nobody knows what it is: it may be a link to somebody's password.
enum class Shown { text, nothing };

// More is no value that somebody meant to put in quotes.
constexpr std::size_t most_quoted = 200;

bool is_text(std::string_view unquoted) {
  const char first = unquoted.empty() ? '0' : small_letter(unquoted.front());
  return first >= 'a' && first <= 'z' && unquoted.size() <= most_quoted;
}

// Makes a diagnostic with a hint from toml++'s "Error while parsing <what>: <fact> (MACRO)".
Diagnostic in_words(std::string_view description, Place place, const Utf8Lines& lines,
                    Shown shown) {
  const bool at_line_end = lines.from(place.line, place.column).empty();
  if (at_line_end && description.find("control characters") != std::string_view::npos) {
    return {std::move(place), "not TOML: a string that does not end on its line",
            "close it with a quote"};
  }
  const std::string_view unquoted = unquoted_value(place, lines);
  if (shown == Shown::text && is_text(unquoted))
    return {std::move(place), fmt::format("not TOML: '{}' without quotes", unquoted),
            way_out_of(unquoted)};
  constexpr std::string_view prefix = "Error while parsing ";
  constexpr std::string_view macro = " (TOML_MAX_NESTED_VALUES)";
  if (description.ends_with(macro)) description.remove_suffix(macro.size());
  std::string fact(description);
  const std::size_t colon = description.find(": ");
  if (description.starts_with(prefix) && colon != std::string_view::npos) {
    fact = fmt::format("{} (in the {})", description.substr(colon + 2),
                       description.substr(prefix.size(), colon - prefix.size()));
  }
  return {std::move(place), "not TOML: " + fact, "see https://toml.io"};
}

std::optional<Diagnostic> unfit_for_toml(std::string_view text, const std::string& file) {
  if (const auto bad = first_bad_utf8(text)) {
    return Diagnostic{Place{file, bad->line, bad->column}, "not UTF-8",
                      "save the file as UTF-8 text"};
  }
  return unfit_for_parser(text, file);
}

std::optional<TomlTable> parsed(std::string_view text, const std::string& file, Shown shown,
                                std::vector<Diagnostic>& diagnostics) {
  if (auto unfit = unfit_for_toml(text, file)) {
    diagnostics.push_back(std::move(*unfit));
    return std::nullopt;
  }
  const std::string ascii = in_ascii(text);
  toml::parse_result result = toml::parse(ascii);
  if (result && ascii != text) result = toml::parse(text);
  if (!result) {
    diagnostics.push_back(in_words(result.error().description(),
                                   place_of(result.error().source().begin, file), Utf8Lines(text),
                                   shown));
    return std::nullopt;
  }
  const std::size_t before = diagnostics.size();
  TomlTable table = TreeCopier(text, file, diagnostics).table(result.table(), 0);
  if (diagnostics.size() > before) return std::nullopt;
  return table;
}

}  // namespace

std::string_view type_text(const TomlValue& value) {
  constexpr std::array<std::string_view, 7> texts{
      "a string", "a whole number", "a decimal number", "true or false",
      "a date",   "a list",         "a table"};
  return texts[value.content.index()];
}

const TomlEntry* find(const TomlTable& table, std::string_view key) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const TomlEntry& entry) { return entry.key == key; });
  return found == table.end() ? nullptr : &*found;
}

std::optional<TomlTable> parse_toml(std::string_view text, const std::string& file,
                                    std::vector<Diagnostic>& diagnostics) {
  return parsed(text, file, Shown::text, diagnostics);
}

TomlTable read_toml(const std::filesystem::path& path, std::string_view what) {
  TextOrProblem text = read_file(path, what);
  if (const auto* problem = std::get_if<Diagnostic>(&text)) throw RequestError(*problem);
  std::vector<Diagnostic> diagnostics;
  auto table =
      parsed(std::get<std::string>(text), path.generic_string(), Shown::nothing, diagnostics);
  if (!table) throw RequestError(std::move(diagnostics));
  return std::move(*table);
}

}  // namespace stepgate
