// SPDX-License-Identifier: MIT
// libFuzzer: reads any line as a request to a worker and as its answer to each request. The line is
// refused, or is written again unchanged.
#include "compare/worker/protocol.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

std::string written(const UnloadWork&) {
  return unloaded_line();
}
std::string written(const WorkerSays& says) {
  return error_line(says.error);
}
template <class Value>
std::string written(const Value& value) {
  return to_line(value);
}

std::optional<std::string> request_again(std::string_view line) {
  const auto read = read_request(line);
  const auto* request = std::get_if<Request>(&read);
  return request == nullptr ? std::nullopt : std::optional(to_line(*request));
}

template <auto read_answer>
std::optional<std::string> answer_again(std::string_view line) {
  return std::visit(
      [](const auto& answer) -> std::optional<std::string> {
        if constexpr (requires { answer.fact; }) {
          require(!answer.fact.empty(), "a line is refused for a reason");
          return std::nullopt;
        } else {
          return written(answer);
        }
      },
      read_answer(line));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = fuzzed_text(data, size);
  check_reads_back(line, request_again);
  check_reads_back(line, answer_again<read_hello>);
  check_reads_back(line, answer_again<read_loaded>);
  check_reads_back(line, answer_again<read_ran>);
  check_reads_back(line, answer_again<read_unloaded>);
  check_reads_back(line, answer_again<read_counts>);
  return 0;
}
