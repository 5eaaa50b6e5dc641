// SPDX-License-Identifier: MIT
// A record in a file that stepgate wrote. What it consists of is one function over a value, which
// both a RecordWriter and a RecordReader walk, so that what is written and what is read cannot
// differ:
//
//   constexpr auto run_fields = [](auto& record, auto& run) {
//     record.text("date", run.date);
//     record.hexadecimal("seed", run.seed);
//   };
//
// The writer gives the same text for the same values; the reader finds everything that is wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/environment/environment.h"
#include "support/fnv1a.h"
#include "support/toml/toml_keys.h"

namespace stepgate {

struct NumberForm {
  double low = 0;
  double high = 0;
  // 0: as many as it takes to read the same number back.
  int significant_digits = 6;
};

// A list of one number a round, none further from 0 than `most`.
struct SeriesForm {
  double most = 0;
  std::size_t length = 0;  // 0: any, but at least one
  // To a millionth in one line, or to the last bit with eight in a line.
  enum class Layout { millionths, exact } layout = Layout::exact;
  bool is_required = false;
};

using NamedSeries = std::map<std::string, std::vector<double>>;

class RecordWriter {
 public:
  // `path` is the table's name in headers, "entry.run"; empty for the file itself.
  explicit RecordWriter(std::string path = "") : path_(std::move(path)) {}

  void text(std::string_view key, const std::string&);
  void text_if_any(std::string_view key, const std::string&);  // nothing for an empty one
  void hexadecimal(std::string_view key, std::uint64_t);
  void count(std::string_view key, std::int64_t);
  void number(std::string_view key, const NumberForm&, double);
  void number_if_any(std::string_view key, const NumberForm&, const std::optional<double>&);
  void microseconds(std::string_view key, double seconds);
  void series_if_any(std::string_view key, const SeriesForm&,
                     const std::optional<std::vector<double>>&);
  // A table of them; nothing for an empty one. Keys are anything.
  void named_series(std::string_view key, const SeriesForm&, const NamedSeries&);

  template <class Value, class Fields>
  void table(std::string_view key, std::string_view /*what*/, const Value& value, Fields fields) {
    begin_table(within(key));
    append(within(key), value, fields);
  }
  // [[key]]
  template <class Value, class Fields>
  void tables(std::string_view key, std::string_view /*what*/, const std::vector<Value>& values,
              Fields fields) {
    for (const Value& value : values) {
      begin_tables(within(key));
      append(within(key), value, fields);
    }
  }
  // [key.<name of the value>]
  template <class Value, class Fields>
  void named_tables(std::string_view key, std::string_view /*what*/,
                    const std::vector<Value>& values, std::string Value::*name, Fields fields) {
    for (const Value& value : values) {
      const std::string path = within(key) + '.' + value.*name;
      begin_table(path);
      append(path, value, fields);
    }
  }
  // A check that only a reader makes; a writer's values are valid.
  template <class Message>
  void check(bool /*holds*/, Message /*otherwise*/) {}
  // The value's fields after a number for all of them, so that a hand that changes one is noticed.
  // It finds accidents; whoever means to deceive writes the number that fits.
  template <class Value, class Fields>
  bool digested(const Value& value, Fields fields) {
    RecordWriter inner(path_);
    fields(inner, value);
    hexadecimal("digest", fnv1a(inner.text_));
    text_ += inner.text_;
    return true;
  }

  const std::string& text() const { return text_; }

 private:
  std::string within(std::string_view key) const;
  void begin_table(const std::string& path);
  void begin_tables(const std::string& path);
  void begin(const std::string& path, std::string header);
  template <class Value, class Fields>
  void append(const std::string& path, const Value& value, Fields fields) {
    RecordWriter inner(path);
    fields(inner, value);
    text_ += inner.text_;
  }

  std::string path_;
  std::string text_;
};

// The digest that a value has in a table of this path.
template <class Value, class Fields>
std::uint64_t record_digest(const std::string& path, const Value& value, Fields fields) {
  RecordWriter writer(path);
  fields(writer, value);
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
  void hexadecimal(std::string_view key, std::uint64_t& to) { keys_.hexadecimal_number(key, to); }
  void count(std::string_view key, std::int64_t& to) { keys_.count(key, to); }
  void number(std::string_view key, const NumberForm&, double& to);
  void number_if_any(std::string_view key, const NumberForm&, std::optional<double>& to);
  void microseconds(std::string_view key, double& to_seconds);
  void series_if_any(std::string_view key, const SeriesForm&,
                     std::optional<std::vector<double>>& to);
  void named_series(std::string_view key, const SeriesForm&, NamedSeries& to);

  template <class Value, class Fields>
  void table(std::string_view key, std::string what, Value& value, Fields fields) {
    const TomlEntry* entry = keys_.required(key);
    if (entry == nullptr) return;
    const TomlTable* content = table_of(*entry);
    if (content == nullptr) return;
    read(*content, entry->place, std::move(what), within(key), value, fields);
  }
  template <class Value, class Fields>
  void tables(std::string_view key, const std::string& what, std::vector<Value>& values,
              Fields fields) {
    const TomlEntry* entry = keys_.required(key);
    if (entry == nullptr) return;
    for (const TomlKeys::Table& table : keys_.tables(*entry)) {
      read(*table.content, table.place, what, within(key), values.emplace_back(), fields);
    }
  }
  template <class Value, class Fields>
  void named_tables(std::string_view key, std::string_view what, std::vector<Value>& values,
                    std::string Value::*name, Fields fields) {
    const TomlEntry* entry = keys_.required(key);
    const TomlTable* named = entry == nullptr ? nullptr : table_of(*entry);
    if (named == nullptr) return;
    for (const TomlEntry& one : *named) {
      const TomlTable* content = table_of(one);
      if (content == nullptr) continue;
      Value& value = values.emplace_back();
      value.*name = one.key;
      read(*content, one.place, named_in_words(what, one.key), within(key) + '.' + one.key, value,
           fields);
    }
  }
  // At the table, where everything else is right.
  template <class Message>
  void check(bool holds, Message otherwise) {
    if (!holds && faults_.empty()) keys_.fault(place_, otherwise());
  }
  // Whether nothing was wrong with it.
  template <class Value, class Fields>
  bool digested(Value& value, Fields fields) {
    const std::size_t faults_before = faults_.size();
    std::uint64_t digest = 0;
    hexadecimal("digest", digest);
    fields(*this, value);
    refuse_the_rest();
    // A plain error has been reported; the digest is for values that look right.
    if (faults_.size() != faults_before) return false;
#if defined(STEPGATE_FUZZING)
    // A fuzzer never finds the digest that fits, and would see nothing of what lies behind it.
    if (digest == 0) return true;
#endif
    if (digest == record_digest(path_, value, fields)) return true;
    refuse_digest();
    return false;
  }

  // Whether the file's format is the newest; a later one is refused.
  bool is_format(std::int64_t newest, std::string_view file_kind, std::string_view otherwise) {
    return keys_.is_format(newest, file_kind, otherwise);
  }
  // [[key]] of a file, which may have none; `read` is called with the reader of each.
  template <class Read>
  void each_of(std::string_view key, const std::string& what, std::string_view way_out, Read read) {
    const TomlEntry* entry = keys_.optional(key);
    if (entry == nullptr) return;  // all were taken out
    for (const TomlKeys::Table& table : keys_.tables(*entry)) {
      RecordReader reader(*table.content, table.place, what, within(key), faults_, way_out);
      read(reader);
    }
  }
  void refuse_the_rest();
  // At the value of a key that is there; with another way out than the table's, or with that.
  void fault(std::string_view key, std::string message, std::string way_out = "");

 private:
  std::string within(std::string_view key) const;
  static std::string named_in_words(std::string_view what, const std::string& name);
  const TomlTable* table_of(const TomlEntry&);
  void read_series(const TomlEntry&, const SeriesForm&, std::vector<double>& to);
  void refuse_digest();
  template <class Value, class Fields>
  void read(const TomlTable& table, Place place, std::string what, std::string path, Value& value,
            Fields fields) {
    RecordReader inner(table, std::move(place), std::move(what), std::move(path), faults_,
                       way_out_);
    fields(inner, value);
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

// The table [environment] of a record.
constexpr auto environment_fields = [](auto& record, auto& environment) {
  for (const EnvironmentKey& key : environment_keys()) {
    if (key.is_optional) {
      record.text_if_any(key.name, environment.*key.value);
    } else {
      record.text(key.name, environment.*key.value);
    }
  }
};

}  // namespace stepgate
