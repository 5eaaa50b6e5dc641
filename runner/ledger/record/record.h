// SPDX-License-Identifier: MIT
// A record in a file that stepgate wrote: TOML of a value whose fields are listed (fields.h). The
// writer and the reader walk that list, so that what is written and what is read cannot differ. The
// writer gives the same text for the same values; the reader finds everything that is wrong.
//
// A text is a string, a std::uint64_t hexadecimal digits, a record a table [environment] and a list
// of records tables [[run]], or [variant.<name>] where a field is the name of its table. Anything
// else has a form: a value with functions `write(RecordWriter&, key, value)` and
// `read(RecordReader&, key, value)`.
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

// The fields of a member that is a record stand among those around it.
struct Inlined {};
inline constexpr Inlined inlined{};
// The field is the name of the record's table.
struct TableName {};
inline constexpr TableName table_name{};
// Each of a list begins with a number for all of its fields, so that a hand that changes one is
// noticed. It finds accidents, not forgery: a forger writes the matching number.
struct Digested {};
inline constexpr Digested digested{};

// A list of one number a round, none further from 0 than `most`.
struct SeriesForm {
  double most = 0;
  std::size_t length = 0;  // 0: any, but at least one
  // To a millionth in one line, or to the last bit with eight in a line.
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

// The record's field that names its table; null where none does.
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
  // `path` is the table's name in headers, "entry.run"; empty for the file itself.
  explicit RecordWriter(std::string path = "") : path_(std::move(path)) {}

  void text(std::string_view key, const std::string&);
  void hexadecimal(std::string_view key, std::uint64_t);
  void count(std::string_view key, std::int64_t);
  void number(std::string_view key, double);  // as many digits as it takes to read it back
  void microseconds(std::string_view key, double seconds);
  void series(std::string_view key, const SeriesForm&, const std::vector<double>&);
  // A table of them; nothing for an empty one. Keys are anything.
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

// The digest that a value has in a table of this path.
template <Record Value>
std::uint64_t record_digest(const std::string& path, const Value& value) {
  RecordWriter writer(path);
  writer.fields(value);
  return fnv1a(writer.text());
}

class RecordReader {
 public:
  // `what` names the table in messages, "a run", `path` is as the writer's. What is read is left as
  // it is where there is a fault; every fault ends with the way out. Table and faults must outlive
  // it.
  RecordReader(const TomlTable&, Place, std::string what, std::string path, TomlKeys::Faults&,
               std::string_view way_out);

  void text(std::string_view key, std::string& to) { keys_.text(key, to); }
  void text_if_any(std::string_view key, std::string& to) { keys_.text_if_any(key, to); }
  void number_if_any(std::string_view key, std::optional<double>& to);  // from 0 up
  void microseconds(std::string_view key, double& to_seconds);
  // Whether it was there.
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
  // Whether nothing was wrong with it.
  template <Record Value>
  bool digested(Value& value) {
    const std::size_t faults_before = faults_.size();
    std::uint64_t digest = 0;
    keys_.hexadecimal_number("digest", digest);
    fields(value);
    refuse_the_rest();
    // A plain error has been reported; the digest is for values that look right.
    if (faults_.size() != faults_before) return false;
#if defined(STEPGATE_FUZZING)
    // A fuzzer never finds the digest that fits, and would see nothing of what lies behind it.
    if (digest == 0) return true;
#endif
    if (digest == record_digest(path_, value)) return true;
    refuse_digest();
    return false;
  }

  // Whether the file's format is the newest; a later one is refused.
  bool is_format(std::int64_t newest, std::string_view file_kind, std::string_view otherwise) {
    return keys_.is_format(newest, file_kind, otherwise);
  }
  // [[key]] of a file, which may have none; `read` is called with the reader of each.
  template <class Read>
  void each_of(std::string_view key, std::string_view way_out, Read read) {
    const TomlEntry* entry = keys_.optional(key);
    if (entry == nullptr) return;  // all were taken out
    for (const TomlKeys::Table& table : keys_.tables(*entry)) {
      RecordReader reader(*table.content, table.place, in_words(key), within(key), faults_,
                          way_out);
      read(reader);
    }
  }
  void refuse_the_rest();
  // At the value of a key that is there; with another way out than the table's, or with that.
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

// A file to be read as a record.
class RecordFile {
 public:
  // `what` names its kind in messages, "a baseline". Throws RequestError when it cannot be read, is
  // larger than read_toml takes, or is not TOML.
  RecordFile(const std::filesystem::path& path, const std::string& what, std::string_view way_out)
      : table_(read_toml(path, what)),
        record_(table_, {path.generic_string(), 0, 0}, what, "", faults_, way_out) {}
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const TomlTable& table() const { return table_; }
  RecordReader& record() { return record_; }
  bool has_faults() const { return !faults_.empty(); }
  // Throws RequestError with everything that is wrong, if anything is.
  void throw_faults();

 private:
  TomlTable table_;
  TomlKeys::Faults faults_;
  RecordReader record_;
};

}  // namespace stepgate
