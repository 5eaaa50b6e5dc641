// SPDX-License-Identifier: MIT
// The ledger of `stepgate keep`: every candidate that was ever tested against a limit of errors
// that all of them share. It is a file of JSON Lines, one candidate a line. A candidate is known by
// its bytes and by what it was asked, so the same bytes go on where they stood and cost nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/folder_lock.h"
#include "base/record/record_json.h"
#include "judge/earlier_evidence.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

// At most this share of all that a ledger ever keeps is no gain, on average over ledgers.
inline constexpr double budget_of_candidates = 0.05;

enum class KeepOutcome { keep, discard, undecided };
// The outcome rests on this. A failure is that of HEAD's process, a check that of a library.
enum class KeepGround { nothing, failure, check, counts, time, assertions };

struct KeepVerdict {
  KeepOutcome outcome = KeepOutcome::undecided;
  KeepGround ground = KeepGround::nothing;
  std::string work = {};  // the workload that decided, or that is furthest from a decision
  std::optional<double> ratio = {};  // of its step time, HEAD's / BASE's, in a typical pair
  std::optional<RatioInterval> interval = {};
  std::int64_t pairs = 0;  // of launches, with those of earlier calls
  double evidence = 1;     // the e-value that every workload has the gain
  std::string why = {};    // a sentence
};
template <>
inline constexpr auto fields_of<RatioInterval> = fields<&RatioInterval::low, &RatioInterval::high>;
template <>
inline constexpr auto fields_of<KeepVerdict> =
    fields<&KeepVerdict::outcome, &KeepVerdict::ground, &KeepVerdict::work, &KeepVerdict::ratio,
           &KeepVerdict::interval, &KeepVerdict::pairs, &KeepVerdict::evidence, &KeepVerdict::why>;

// Describes what is tested, and how. Digests are hexadecimal.
struct CandidateSubject {
  std::string kernel = {};  // that a library stands in for; empty: a program
  std::string head = {};    // digest of HEAD's bytes, and ":function" where one is named
  std::string base = {};    // the same of BASE; empty: stepgate's own kernel
  std::string steps = {};   // digest of the scenarios, knobs and the gain
  std::string device = {};
  bool simulated = false;      // nothing is measured
  std::int64_t workspace = 0;  // bytes of the device that HEAD's library may use
  bool operator==(const CandidateSubject&) const = default;
};
template <>
inline constexpr auto fields_of<CandidateSubject> =
    fields<&CandidateSubject::kernel, &CandidateSubject::head, &CandidateSubject::base,
           &CandidateSubject::steps, &CandidateSubject::device, &CandidateSubject::simulated,
           described<&CandidateSubject::workspace, only_if_any>>;

struct Candidate {
  std::int64_t number = 0;  // in order of the first call, from 1 on
  CandidateSubject subject = {};
  std::string file = {};  // its name, for people
  std::string date = {};  // of the last call
  double level = 0;       // it is kept at an e-value of 1 / level; set by the first call
  KeepVerdict verdict = {};
  EarlierRounds pairs = {};  // of an undecided one, to go on from

  bool is_kept() const { return verdict.outcome == KeepOutcome::keep; }
};
template <>
inline constexpr auto fields_of<EarlierRounds> =
    fields<&EarlierRounds::contrasts, &EarlierRounds::times>;
template <>
inline constexpr auto fields_of<Candidate> =
    fields<&Candidate::number, &Candidate::subject, &Candidate::file, &Candidate::date,
           &Candidate::level, &Candidate::verdict, described<&Candidate::pairs, only_if_any>>;

// Reads the candidates of a ledger in order; none where there is no such file. Throws RequestError
// placed at a line that is not as stepgate wrote it.
std::vector<Candidate> read_candidates(const std::filesystem::path&);

// The last candidate that was kept for this kernel, or as a program; null where there is none.
const Candidate* last_kept(std::span<const Candidate>, std::string_view kernel);

std::int64_t kept_among(std::span<const Candidate>);

// The candidate with this subject, or else the next one, with the level that is its own.
Candidate candidate_of(std::span<const Candidate>, const CandidateSubject&);

// Returns the budget that is left for later candidates (error_budget.h).
double budget_left(std::span<const Candidate>);

// Where the bytes of a kept candidate lie, beside the ledger, so that a build that writes its
// output over them loses none.
std::filesystem::path kept_file(const std::filesystem::path& ledger, const Candidate&);

// Exclusive access to a ledger, from construction to destruction: candidates are tested one after
// the other. Other calls wait.
class CandidateTurn {
 public:
  // Throws RequestError where the file is damaged or cannot be locked.
  explicit CandidateTurn(std::filesystem::path);

  std::span<const Candidate> all() const { return all_; }

  // Adds the candidate, or replaces what the ledger has of its number, and writes the file whole.
  // Throws RequestError.
  void write(const Candidate&);

 private:
  std::filesystem::path path_;
  FolderLock lock_;
  std::vector<Candidate> all_;
};

}  // namespace stepgate
