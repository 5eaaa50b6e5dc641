// SPDX-License-Identifier: MIT
// A record in a file that stepgate wrote: TOML of a value with listed fields (fields.h). Writer and
// reader both iterate over this list, so that they cannot disagree. Equal values are written as
// equal text, and the reader reports all errors.
//
// Strings are written as text, std::uint64_t as hexadecimal digits, and records as tables
// [environment]. A list of records is [[run]], or [variant.<name>] where a field is the name of its
// table. Any other type needs a form: a value with the functions `write(RecordWriter&, key, value)`
// and `read(RecordReader&, key, value)`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fnv1a.h"
#include "base/record/fields.h"
#include "base/toml/toml_keys.h"

namespace stepgate {

// Marks a member that is a record whose fields are written among the surrounding ones.
struct Inlined {};
inline constexpr Inlined inlined{};
// Marks the field that holds the name of the record's table.
struct TableName {};
inline constexpr TableName table_name{};
// Marks a list whose records each begin with a digest of all their fields. It detects accidental
// edits, but not forgery, since a forger can write the matching digest.
struct Digested {};
inline constexpr Digested digested{};

// A list of one number for each round, with absolute values up to `most`.
struct SeriesForm {
  double most = 0;
  std::size_t length = 0;  // 0: any, but at least 1
  // millionths rounds to 1e-6 and writes one line; exact keeps all bits and writes eight per line.
  enum class Layout { millionths, exact } layout = Layout::exact;
  bool is_required = false;
};

using NamedSeries = std::map<std::string, std::vector<double>>;

namespace record_in_detail {

template <class Form, class Where, class Value>
concept WrittenBy = requires(const Form& form, Where& where, Value& value) {
  form.write(where, std::string_view(), value);
};
template <class Form, class Where, class Value>
concept ReadBy = requires(const Form& form, Where& where, Value& value) {
  form.read(where, std::string_view(), value);
};

// The record's field that names its table; null where there is none.
template <Record Value>
auto* name_of_table(Value& value) {
  std::conditional_t<std::is_const_v<Value>, const std::string, std::string>* name = nullptr;
  for_each_field(value, [&](std::string_view, auto& field, auto about) {
    if constexpr (says<TableName>(about)) name = &field;
  });
  return name;
}

}  // namespace record_in_detail

class RecordWriter {
 public:
  // `path` is the name of the table in headers, "entry.run"; empty for the file itself.
  explicit RecordWriter(std::string path = "") : path_(std::move(path)) {}

  void text(std::string_view key, const std::string&);
  void hexadecimal(std::string_view key, std::uint64_t);
  void count(std::string_view key, std::int64_t);
  void number(std::string_view key, double);  // shortest text that is read back exactly
  void microseconds(std::string_view key, double seconds);
  void series(std::string_view key, const SeriesForm&, const std::vector<double>&);
  // Writes a table of series, or nothing if it is empty. Keys may be any text.
  void named_series(std::string_view key, const SeriesForm&, const NamedSeries&);

  template <Record Value>
  void fields(const Value& value) {
    for_each_field(
        value, [this]<class Field, auto... said>(std::string_view key, const Field& field,
                                                 Said<said...>) {
          using About = Said<said...>;
          if constexpr ((record_in_detail::WrittenBy<decltype(said), RecordWriter, const Field> ||
                         ...)) {
            const auto write = [&](const auto& form) {
              if constexpr (requires { form.write(*this, key, field); })
                form.write(*this, key, field);
            };
            (write(said), ...);
          } else if constexpr (says<NotCarried>(About{}) || says<TableName>(About{})) {
          } else if constexpr (says<Inlined>(About{})) {
            fields(field);
          } else if constexpr (std::is_same_v<Field, std::string>) {
            if (!is_left_out_if_empty(About{}) || !field.empty()) text(key, field);
          } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
            hexadecimal(key, field);
          } else if constexpr (Record<Field>) {
            begin_table(within(key));
            append(within(key), field, false);
          } else {
            for (const auto& each : field) {
              const std::string* name = record_in_detail::name_of_table(each);
              const std::string path = within(key) + (name == nullptr ? "" : '.' + *name);
              name == nullptr ? begin_tables(path) : begin_table(path);
              append(path, each, says<Digested>(About{}));
            }
          }
        });
  }

  const std::string& text() const { return text_; }

 private:
  std::string within(std::string_view key) const;
  void begin_table(const std::string& path);
  void begin_tables(const std::string& path);
  void begin(const std::string& path, std::string header);
  template <Record Value>
  void append(const std::string& path, const Value& value, bool is_digested) {
    RecordWriter inner(path);
    inner.fields(value);
    if (is_digested) hexadecimal("digest", fnv1a(inner.text_));
    text_ += inner.text_;
  }

  std::string path_;
  std::string text_;
};

// The digest of a value in a table with this path.
template <Record Value>
std::uint64_t record_digest(const std::string& path, const Value& value) {
  RecordWriter writer(path);
  writer.fields(value);
  return fnv1a(writer.text());
}

class RecordReader {
 public:
  // `what` names the table in messages, "a run"; `path` is that of the writer. After an error, the
  // target value keeps its old content. Every error ends with `way_out`. The table and the list of
  // errors must outlive the reader.
  RecordReader(const TomlTable&, Place, std::string what, std::string path, TomlKeys::Faults&,
               std::string_view way_out);

  void text(std::string_view key, std::string& to) { keys_.text(key, to); }
  void text_if_any(std::string_view key, std::string& to) { keys_.text_if_any(key, to); }
  void number_if_any(std::string_view key, std::optional<double>& to);  // 0 or more
  void microseconds(std::string_view key, double& to_seconds);
  // Returns whether the key exists.
  bool series(std::string_view key, const SeriesForm&, std::vector<double>& to);
  void named_series(std::string_view key, const SeriesForm&, NamedSeries& to);

  template <Record Value>
  void fields(Value& value) {
    for_each_field(
        value, [this]<class Field, auto... said>(std::string_view key, Field & field,
                                                 Said<said...>) {
          using About = Said<said...>;
          if constexpr ((record_in_detail::ReadBy<decltype(said), RecordReader, Field> || ...)) {
            const auto read_by = [&](const auto& form) {
              if constexpr (requires { form.read(*this, key, field); })
                form.read(*this, key, field);
            };
            (read_by(said), ...);
          } else if constexpr (says<NotCarried>(About{}) || says<TableName>(About{})) {
          } else if constexpr (says<Inlined>(About{})) {
            fields(field);
          } else if constexpr (std::is_same_v<Field, std::string>) {
            says<MayBeMissing>(About{}) ? keys_.text_if_any(key, field) : keys_.text(key, field);
          } else if constexpr (std::is_same_v<Field, std::uint64_t>) {
            keys_.hexadecimal_number(key, field);
          } else if constexpr (Record<Field>) {
            if (const TomlEntry* entry = keys_.required(key))
              read_table(*entry, in_words(key), key, field);
          } else if (const TomlEntry* entry =
                         says<MayBeMissing>(About{}) ? keys_.optional(key) : keys_.required(key)) {
            typename Field::value_type each{};
            if (record_in_detail::name_of_table(each) == nullptr) {
              for (const TomlKeys::Table& table : keys_.tables(*entry))
                read(*table.content, table.place, in_words(key), within(key), field.emplace_back());
            } else if (const TomlTable* named = table_of(*entry)) {
              for (const TomlEntry& one : *named) {
                *record_in_detail::name_of_table(each) = one.key;
                if (const TomlTable* content = table_of(one)) {
                  read(*content, one.place, named_in_words(key, one.key),
                       within(std::string(key) + '.' + one.key), field.emplace_back(each));
                }
              }
            }
          }
        });
  }
  // Returns whether the value was read without errors.
  template <Record Value>
  bool digested(Value& value) {
    const std::size_t faults_before = faults_.size();
    std::uint64_t digest = 0;
    keys_.hexadecimal_number("digest", digest);
    fields(value);
    refuse_the_rest();
    // Another error was reported, so the digest of these values would not match anyway.
    if (faults_.size() != faults_before) return false;
#if defined(STEPGATE_FUZZING)
    // A fuzzer never finds the right digest and could not reach the code after this check.
    if (digest == 0) return true;
#endif
    if (digest == record_digest(path_, value)) return true;
    refuse_digest();
    return false;
  }

  // Returns whether the file has the newest format; refuses later formats.
  bool is_format(std::int64_t newest, std::string_view file_kind, std::string_view otherwise) {
    return keys_.is_format(newest, file_kind, otherwise);
  }
  // Calls `read` with a reader for each [[key]] of the file; there may be none.
  template <class Read>
  void each_of(std::string_view key, std::string_view way_out, Read read) {
    const TomlEntry* entry = keys_.optional(key);
    if (entry == nullptr) return;  // all of them were removed
    for (const TomlKeys::Table& table : keys_.tables(*entry)) {
      RecordReader reader(*table.content, table.place, in_words(key), within(key), faults_,
                          way_out);
      read(reader);
    }
  }
  void refuse_the_rest();
  // Reports an error at the value of an existing key, with `way_out` or else with that of the
  // table.
  void fault(std::string_view key, std::string message, std::string way_out = "");

 private:
  std::string within(std::string_view key) const;
  static std::string in_words(std::string_view key);  // "a run"
  static std::string named_in_words(std::string_view what, const std::string& name);
  const TomlTable* table_of(const TomlEntry&);
  void read_series(const TomlEntry&, const SeriesForm&, std::vector<double>& to);
  void refuse_digest();
  template <Record Value>
  void read_table(const TomlEntry& entry, std::string what, std::string_view key, Value& value) {
    if (const TomlTable* content = table_of(entry))
      read(*content, entry.place, std::move(what), within(key), value);
  }
  template <Record Value>
  void read(const TomlTable& table, Place place, std::string what, std::string path, Value& value) {
    RecordReader inner(table, std::move(place), std::move(what), std::move(path), faults_,
                       way_out_);
    inner.fields(value);
    inner.refuse_the_rest();
  }

  const TomlTable& table_;
  Place place_;
  std::string what_;
  std::string path_;
  TomlKeys::Faults& faults_;
  std::string_view way_out_;
  TomlKeys keys_;
  bool rest_refused_ = false;
};

// A file that is read as a record.
class RecordFile {
 public:
  // `what` names the kind of file in messages, "a baseline". Throws RequestError when the file
  // cannot be read, exceeds the limit of read_toml, or is not TOML.
  RecordFile(const std::filesystem::path& path, const std::string& what, std::string_view way_out)
      : table_(read_toml(path, what)),
        record_(table_, {path.generic_string(), 0, 0}, what, "", faults_, way_out) {}
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const TomlTable& table() const { return table_; }
  RecordReader& record() { return record_; }
  bool has_faults() const { return !faults_.empty(); }
  // Throws RequestError with all errors, if there are any.
  void throw_faults();

 private:
  TomlTable table_;
  TomlKeys::Faults faults_;
  RecordReader record_;
};

}  // namespace stepgate
