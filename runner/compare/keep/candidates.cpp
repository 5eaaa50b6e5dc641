// SPDX-License-Identifier: MIT
#include "compare/keep/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/files/write_file.h"
#include "base/text/diagnostic.h"
#include "base/text/json_line.h"
#include "compare/keep/error_budget.h"

namespace stepgate {
namespace {

constexpr std::string_view schema = "stepgate.candidate/1";
// Longest wait for other calls with the same ledger.
constexpr std::chrono::hours longest_turn{25};

[[noreturn]] void refuse(const std::filesystem::path& path, int line, std::string fact) {
  throw RequestError(Diagnostic{Place{path.generic_string(), line, 0}, std::move(fact),
                                "restore the ledger as stepgate wrote it, or begin another one, "
                                "which has a budget of its own"});
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

std::string line_of(const Candidate& candidate) {
  RecordJson json{{"schema", schema}};
  json.update(fields_json(candidate));
  return json_line(json) + '\n';
}

Candidate candidate_in(std::string_view line) {
  const RecordJson json = parsed_object(line);
  const auto said = json.find("schema");
  if (said == json.end()) throw WrongRecord::missing("schema");
  if (*said != schema) throw WrongRecord(*said, "is no schema of this version");
  return record_from<Candidate>(json);
}

}  // namespace

std::vector<Candidate> read_candidates(const std::filesystem::path& path) {
  std::vector<Candidate> all;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return all;
  if (!std::filesystem::is_regular_file(path, error)) refuse(path, 0, "is not an ordinary file");
  std::ifstream file(path);
  if (!file) refuse(path, 0, "cannot be read");
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      all.push_back(candidate_in(line));
    } catch (const WrongRecord& wrong) {
      refuse(path, number, wrong.what());
    }
    if (all.back().number != number)
      refuse(path, number, fmt::format("has number {}", all.back().number));
  }
  return all;
}

const Candidate* last_kept(std::span<const Candidate> all, std::string_view kernel) {
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Candidate& candidate) {
    return candidate.is_kept() && candidate.subject.kernel == kernel;
  });
  return found == all.rend() ? nullptr : &*found;
}

std::int64_t kept_among(std::span<const Candidate> all) {
  return std::ranges::count_if(all, &Candidate::is_kept);
}

Candidate candidate_of(std::span<const Candidate> all, const CandidateSubject& subject) {
  const auto found = std::ranges::find(all, subject, &Candidate::subject);
  if (found != all.end()) return *found;
  const std::int64_t number = std::ssize(all) + 1;
  return {.number = number,
          .subject = subject,
          .level = level_of_candidate(budget_of_candidates, number, kept_among(all))};
}

double budget_left(std::span<const Candidate> all) {
  return budget_left(budget_of_candidates, std::ssize(all), kept_among(all));
}

std::filesystem::path kept_file(const std::filesystem::path& ledger, const Candidate& candidate) {
  const std::string digest = candidate.subject.head.substr(0, candidate.subject.head.find(':'));
  return std::filesystem::path(ledger.string() + ".kept") / digest / candidate.file;
}

CandidateTurn::CandidateTurn(std::filesystem::path path)
    : path_(std::move(path)),
      lock_(folder_of(path_),
            LockPatience{.most = longest_turn, .work = path_.filename().string()}),
      all_(read_candidates(path_)) {}

void CandidateTurn::write(const Candidate& candidate) {
  const auto found = std::ranges::find(all_, candidate.number, &Candidate::number);
  found == all_.end() ? all_.push_back(candidate) : void(*found = candidate);
  std::string text;
  for (const Candidate& one : all_) text += line_of(one);
  write_file(path_, text);
}

}  // namespace stepgate
