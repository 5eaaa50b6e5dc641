// SPDX-License-Identifier: MIT
// JSON, with every way in which it can be wrong.
#include "duel/worker/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "support/text/json_line.h"
#include "support/text/json_nesting.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;
// Ordered objects cost the square of their members, of which somebody else chooses how many.
using ReadJson = nlohmann::json;

constexpr std::int64_t most_steps = 1'000'000'000;
constexpr std::int64_t most_bytes = 1'000'000'000'000'000;
constexpr std::int64_t longest_run_nanoseconds = 3'600'000'000'000;
constexpr std::size_t longest_name_bytes = 200;
constexpr std::size_t most_works = 10'000;
constexpr std::size_t longest_words_bytes = 1000;

// Control characters of ASCII, and those that UTF-8 writes as C2 80 to C2 9F.
bool has_controls(std::string_view text) {
  unsigned char before = 0;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < ' ' || code == 0x7F || (before == 0xC2 && code < 0xA0)) return true;
    before = code;
  }
  return false;
}

// Reads members of one object and remembers the first thing that is wrong with it.
class Reader {
 public:
  explicit Reader(std::string_view line) {
    if (nests_too_deep(line)) {
      fact_ = fmt::format("nests deeper than {} levels", deepest_json);
      return;
    }
    json_ = ReadJson::parse(line, nullptr, false);
    if (json_.is_discarded()) {
      fact_ = "is not JSON";
    } else if (!json_.is_object()) {
      fact_ = "is not a JSON object";
    }
  }

  const std::string& fact() const { return fact_; }
  bool has(const char* key) const { return fact_.empty() && json_.contains(key); }
  void refuse(std::string fact) {
    if (fact_.empty()) fact_ = std::move(fact);
  }

  // A whole number within the bounds.
  std::int64_t number(const char* key, std::int64_t least, std::int64_t most) {
    const ReadJson* value = member(key);
    if (value == nullptr) return least;
    const bool whole = value->is_number_integer();
    const bool fits = whole && (!value->is_number_unsigned() ||
                                value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
    if (fits && value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most)
      return value->get<std::int64_t>();
    refuse(fmt::format("has '{}' {}, which is not a whole number from {} to {}", key,
                       short_form(*value), least, most));
    return least;
  }

  // A number from 0 up.
  double amount(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return 0;
    const double read = value->is_number() ? value->get<double>() : -1;
    if (!std::isfinite(read) || read < 0)
      refuse(fmt::format("has '{}' {}, which is no number from 0 up", key, short_form(*value)));
    return read;
  }

  std::string name(const char* key) {
    const ReadJson* value = member(key);
    return value == nullptr ? std::string() : name_in(*value, key);
  }

  std::string text(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_string()) refuse(fmt::format("has '{}' that is no text", key));
    return value->is_string() ? value->get<std::string>() : std::string();
  }

  // Different ones; none only where none are needed.
  std::vector<std::string> names(const char* key, bool may_be_none = false) {
    const ReadJson* value = member(key);
    if (value == nullptr) return {};
    const bool none = value->is_array() && value->empty();
    if (!value->is_array() || (none && !may_be_none) || value->size() > most_works) {
      refuse(fmt::format("has '{}' {}, which is not a list of 1 to {} names", key,
                         short_form(*value), most_works));
      return {};
    }
    std::vector<std::string> read;
    std::set<std::string> seen;
    for (const ReadJson& item : *value) {
      read.push_back(name_in(item, key));
      if (!seen.insert(read.back()).second)
        refuse(fmt::format("has '{}' with \"{}\" twice", key, read.back()));
    }
    return read;
  }

  // Any number of texts, each printable.
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> read;
    for (const ReadJson* item : items(key)) read.push_back(name_in(*item, key));
    return read;
  }

  std::map<std::string, GradientSketch> gradients(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_object() || value->size() > most_works) {
      refuse(fmt::format("has '{}' that is no object of gradients", key));
      return {};
    }
    std::map<std::string, GradientSketch> read;
    for (const auto& [name, text] : value->items()) {
      const auto sketch = text.is_string() ? sketch_of(text.get_ref<const std::string&>())
                                           : std::optional<GradientSketch>();
      if (!sketch || name.size() > longest_words_bytes || has_controls(name)) {
        refuse(fmt::format("has '{}' with {}, which is no gradient by a printable name", key,
                           short_form({{name, text}})));
        return {};
      }
      read[name] = *sketch;
    }
    return read;
  }

  double share(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return 0;
    const bool fits = value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 1;
    if (!fits) refuse(fmt::format("has '{}' {}, which is no share", key, short_form(*value)));
    return fits ? value->get<double>() : 0;
  }

  std::vector<LeftOut> left_out(const char* key) {
    std::vector<LeftOut> read;
    for (const ReadJson* item : items(key)) {
      if (!item->is_object() || !item->contains("scenario") || !item->contains("why")) {
        refuse(
            fmt::format("has '{}' with {}, which is no scenario and why", key, short_form(*item)));
        return {};
      }
      read.push_back({name_in(item->at("scenario"), key), words_in(item->at("why"), key)});
    }
    return read;
  }

  std::vector<PeriodicWork> periodic(const char* key) {
    std::vector<PeriodicWork> read;
    for (const ReadJson* item : items(key)) {
      Reader each(json_line(*item));
      read.push_back({.name = each.name("name"), .every = each.number("every", 1, most_steps)});
      read.back().rough_seconds = each.amount("seconds");
      if (!each.fact().empty()) refuse(fmt::format("has '{}' of which one {}", key, each.fact()));
    }
    return read;
  }

  // Counts and times are never negative.
  std::map<std::string, double> numbers(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_object() || value->size() > most_works) {
      refuse(fmt::format("has '{}' that is no object of numbers", key));
      return {};
    }
    std::map<std::string, double> read;
    for (const auto& [name, number] : value->items()) {
      const bool fits =
          number.is_number() && std::isfinite(number.get<double>()) && number.get<double>() >= 0;
      if (!fits || name.size() > longest_words_bytes || has_controls(name)) {
        refuse(fmt::format("has '{}' with {}, which is no number from 0 up by a printable name",
                           key, short_form({{name, number}})));
        return {};
      }
      read[name] = number.get<double>();
    }
    return read;
  }

  // A sentence; may be empty.
  std::string words(const char* key) {
    const ReadJson* value = member(key);
    return value == nullptr ? std::string() : words_in(*value, key);
  }

  bool flag(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) refuse(fmt::format("has '{}' that is neither true nor false", key));
    return value->is_boolean() && value->get<bool>();
  }

 private:
  const ReadJson* member(const char* key) {
    if (!fact_.empty()) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    refuse(fmt::format("has no '{}'", key));
    return nullptr;
  }

  std::vector<const ReadJson*> items(const char* key) {
    const ReadJson* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_array() || value->size() > most_works) {
      refuse(fmt::format("has '{}' {}, which is not a list of at most {}", key, short_form(*value),
                         most_works));
      return {};
    }
    std::vector<const ReadJson*> all;
    for (const ReadJson& item : *value) all.push_back(&item);
    return all;
  }

  std::string words_in(const ReadJson& value, const char* key) {
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    if (!value.is_string() || text.size() > longest_words_bytes || has_controls(text))
      refuse(fmt::format("has '{}' with {}, which is no printable text", key, short_form(value)));
    return text;
  }

  // Names are printed in reports: a terminal must find nothing in them to act on.
  std::string name_in(const ReadJson& value, const char* key) {
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    if (text.empty() || text.size() > longest_name_bytes || has_controls(text)) {
      refuse(fmt::format("has '{}' with {}, which is not a text of 1 to {} printable characters",
                         key, short_form(value), longest_name_bytes));
    }
    return text;
  }

  static std::string short_form(const ReadJson& value) {
    constexpr std::size_t most = 40;
    const std::string text = json_line(value);
    return text.size() > most ? text.substr(0, most) + "..." : text;
  }

  ReadJson json_;
  std::string fact_;
};

template <class Value, class Read>
Answer<Value> read_answer(std::string_view line, Read&& read) {
  Reader reader(line);
  if (reader.has("error")) {
    const std::string error = reader.text("error");
    return reader.fact().empty() ? Answer<Value>(WorkerSays{error}) : Problem{reader.fact()};
  }
  Value value = read(reader);
  return reader.fact().empty() ? Answer<Value>(std::move(value)) : Problem{reader.fact()};
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

std::string to_line(const Request& request) {
  return json_line(std::visit(
      Overloaded{[](const SayHello&) -> Json {
                   return {{"do", "hello"}, {"protocol", protocol_version}};
                 },
                 [](const LoadWork& load) -> Json {
                   return {{"do", "load"}, {"work", load.work}};
                 },
                 [](const RunSteps& run) -> Json {
                   return {{"do", "run"}, {"steps", run.steps}, {"wash_out", run.wash_out_steps}};
                 },
                 [](const UnloadWork&) -> Json {
                   return {{"do", "unload"}};
                 },
                 [](const CountWork& count) -> Json {
                   Json line{{"do", "count"}, {"work", count.work}};
                   if (count.times) line["times"] = true;
                   return line;
                 },
                 [](const Quit&) -> Json {
                   return {{"do", "quit"}};
                 }},
      request));
}

std::string to_line(const Hello& hello) {
  Json left_out = Json::array();
  for (const LeftOut& left : hello.left_out)
    left_out.push_back({{"scenario", left.scenario}, {"why", left.why}});
  Json line{{"protocol", protocol_version}, {"program", hello.program}};
  // A name has at least a character; what has none is left out.
  if (!hello.version.empty()) line["version"] = hello.version;
  if (!hello.device.empty()) line["device"] = hello.device;
  line["simulated"] = hello.simulated;
  line["stand_in"] = hello.stand_in;
  line["works"] = hello.works;
  line["counts"] = hello.counts;
  line["planned"] = hello.planned;
  line["left_out"] = std::move(left_out);
  line["calibrated"] = hello.calibrated;
  line["memory_bytes"] = hello.memory_bytes;
  return json_line(line);
}

std::string to_line(const StepCounts& counts) {
  Json gradients = Json::object();
  for (const auto& [parameter, sketch] : counts.gradients) gradients[parameter] = text_of(sketch);
  return json_line({{"planned", counts.planned},
                    {"traced", counts.traced},
                    {"untraced", counts.untraced},
                    {"operations", counts.operations},
                    {"waits", counts.waits},
                    {"time", counts.time},
                    {"losses", counts.losses},
                    {"gradients", std::move(gradients)},
                    {"gradient_bound", counts.gradient_bound},
                    {"begun_again", counts.begun_again}});
}

std::string to_line(const Loaded& loaded) {
  Json periodic = Json::array();
  for (const PeriodicWork& work : loaded.periodic) {
    periodic.push_back(
        {{"name", work.name}, {"every", work.every}, {"seconds", work.rough_seconds}});
  }
  return json_line({{"loaded", true},
                    {"wash_out", loaded.wash_out_steps},
                    {"period", loaded.period_steps},
                    {"periodic", std::move(periodic)}});
}

std::string to_line(const Ran& ran) {
  return json_line({{"steps", ran.steps}, {"elapsed_ns", ran.elapsed.count()}});
}

std::string unloaded_line() {
  return json_line({{"unloaded", true}});
}

std::string error_line(const std::string& message) {
  return json_line({{"error", message}});
}

std::variant<Request, Problem> read_request(std::string_view line) {
  Reader reader(line);
  const std::string what = reader.name("do");
  std::optional<Request> request;
  if (what == "hello") {
    reader.number("protocol", protocol_version, protocol_version);
    request = SayHello{};
  } else if (what == "load") {
    request = LoadWork{reader.name("work")};
  } else if (what == "run") {
    const std::int64_t steps = reader.number("steps", 1, most_steps);
    const std::int64_t wash_out =
        reader.has("wash_out") ? reader.number("wash_out", 0, most_steps) : 0;
    request = RunSteps{.steps = steps, .wash_out_steps = wash_out};
  } else if (what == "unload") {
    request = UnloadWork{};
  } else if (what == "count") {
    const std::string work = reader.name("work");
    request = CountWork{work, reader.has("times") && reader.flag("times")};
  } else if (what == "quit") {
    request = Quit{};
  } else {
    reader.refuse(
        fmt::format("has 'do' \"{}\"; say hello, load, run, unload, count or quit", what));
  }
  if (!reader.fact().empty()) return Problem{reader.fact()};
  return *request;
}

Answer<Hello> read_hello(std::string_view line) {
  return read_answer<Hello>(line, [](Reader& reader) {
    Hello hello;
    const std::int64_t version = reader.number("protocol", 1, 1'000'000);
    if (version != protocol_version) {
      reader.refuse(fmt::format("speaks version {} of the worker protocol; this stepgate speaks {}",
                                version, protocol_version));
    }
    hello.program = reader.name("program");
    if (reader.has("version")) hello.version = reader.name("version");
    if (reader.has("device")) hello.device = reader.name("device");
    if (reader.has("simulated")) hello.simulated = reader.flag("simulated");
    if (reader.has("stand_in")) hello.stand_in = reader.flag("stand_in");
    hello.works = reader.names("works", reader.has("planned"));
    if (reader.has("counts")) hello.counts = reader.flag("counts");
    if (reader.has("planned")) hello.planned = reader.names("planned", true);
    if (reader.has("left_out")) hello.left_out = reader.left_out("left_out");
    if (reader.has("calibrated")) hello.calibrated = reader.texts("calibrated");
    if (reader.has("memory_bytes"))
      hello.memory_bytes = reader.number("memory_bytes", 0, most_bytes);
    return hello;
  });
}

Answer<Loaded> read_loaded(std::string_view line) {
  return read_answer<Loaded>(line, [](Reader& reader) {
    Loaded loaded;
    if (!reader.flag("loaded")) reader.refuse("has 'loaded' false");
    if (reader.has("wash_out")) loaded.wash_out_steps = reader.number("wash_out", 0, most_steps);
    if (reader.has("period")) loaded.period_steps = reader.number("period", 1, most_steps);
    if (reader.has("periodic")) loaded.periodic = reader.periodic("periodic");
    return loaded;
  });
}

Answer<Ran> read_ran(std::string_view line) {
  return read_answer<Ran>(line, [](Reader& reader) {
    const std::int64_t steps = reader.number("steps", 1, most_steps);
    const std::int64_t elapsed = reader.number("elapsed_ns", 1, longest_run_nanoseconds);
    return Ran{.steps = steps, .elapsed = std::chrono::nanoseconds(elapsed)};
  });
}

Answer<UnloadWork> read_unloaded(std::string_view line) {
  return read_answer<UnloadWork>(line, [](Reader& reader) {
    if (!reader.flag("unloaded")) reader.refuse("has 'unloaded' false");
    return UnloadWork{};
  });
}

Answer<StepCounts> read_counts(std::string_view line) {
  return read_answer<StepCounts>(line, [](Reader& reader) {
    StepCounts counts;
    counts.planned = reader.numbers("planned");
    counts.traced = reader.numbers("traced");
    counts.untraced = reader.words("untraced");
    counts.operations = reader.numbers("operations");
    counts.waits = reader.numbers("waits");
    counts.time = reader.numbers("time");
    counts.losses = reader.texts("losses");
    if (reader.has("gradients")) counts.gradients = reader.gradients("gradients");
    if (reader.has("gradient_bound")) counts.gradient_bound = reader.share("gradient_bound");
    if (reader.has("begun_again")) counts.begun_again = reader.numbers("begun_again");
    return counts;
  });
}

}  // namespace stepgate
