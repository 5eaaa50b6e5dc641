// SPDX-License-Identifier: MIT
#include "report/trace/trace_events.h"

#include <fmt/format.h>

#include <iterator>
#include <ostream>

#include "base/text/json_line.h"
#include "report/append.h"

namespace stepgate {
namespace {

constexpr std::size_t most_kept_bytes = 1 << 16;

}  // namespace

std::string json_text(std::string_view text) {
  return json_line(nlohmann::json(text));
}

void TraceEvents::begin_event() {
  if (text_.size() > most_kept_bytes) {
    out_ << text_;
    text_.clear();
  }
  text_ += first_ ? "\n" : ",\n";
  first_ = false;
}

void TraceEvents::time(TraceTime span) {
  // Whole nanoseconds as decimal microseconds, so that what touches in the trace touches in the
  // file.
  append(text_, "{}.{:03}", span.count() / 1000, span.count() % 1000);
}

void TraceEvents::name_process(std::int64_t process, std::string_view name, std::string_view label,
                               std::int64_t place) {
  const auto entry = [&](std::string_view what, std::string_view key, const std::string& value) {
    begin_event();
    append(text_, R"({{"ph":"M","name":"{}","ts":0.000,"pid":{},"tid":0,"args":{{"{}":{}}}}})",
           what, process, key, value);
  };
  entry("process_name", "name", json_text(name));
  entry("process_labels", "labels", json_text(label));
  entry("process_sort_index", "sort_index", std::to_string(place));
}

void TraceEvents::name_row(Row row, std::string_view name, std::int64_t place) {
  const auto entry = [&](std::string_view what, std::string_view key, const std::string& value) {
    begin_event();
    append(text_, R"({{"ph":"M","name":"{}","ts":0.000,"pid":{},"tid":{},"args":{{"{}":{}}}}})",
           what, row.process, row.thread, key, value);
  };
  entry("thread_name", "name", json_text(name));
  entry("thread_sort_index", "sort_index", std::to_string(place));
}

void TraceEvents::stretch(std::string_view category, std::string_view name, Row row,
                          TraceTime begin, TraceTime end, std::string_view arguments) {
  begin_event();
  append(text_, R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":)", category,
         json_text(name), row.process, row.thread);
  time(begin - base_);
  text_ += R"(,"dur":)";
  time(end - begin);
  append(text_, R"(,"args":{{{}}}}})", arguments);
}

void TraceEvents::arrow(std::int64_t number, Row from, TraceTime left, Row to, TraceTime arrived) {
  begin_event();
  append(text_, R"({{"ph":"s","id":{},"pid":{},"tid":{},"cat":"ac2g","name":"ac2g","ts":)", number,
         from.process, from.thread);
  time(left - base_);
  text_ += '}';
  begin_event();
  append(text_, R"({{"ph":"f","bp":"e","id":{},"pid":{},"tid":{},"cat":"ac2g","name":"ac2g","ts":)",
         number, to.process, to.thread);
  time(arrived - base_);
  text_ += '}';
}

void TraceEvents::counter(std::string_view name, std::int64_t process, TraceTime at,
                          std::string_view series, std::int64_t value) {
  begin_event();
  append(text_, R"({{"ph":"C","name":"{}","pid":{},"args":{{"{}":{}}},"ts":)", name, process,
         series, value);
  time(at - base_);
  text_ += '}';
}

void TraceEvents::finish() {
  out_ << text_;
  text_.clear();
}

}  // namespace stepgate
