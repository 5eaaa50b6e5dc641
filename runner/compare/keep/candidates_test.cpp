// SPDX-License-Identifier: MIT
#include "compare/keep/candidates.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/files/temporary_folder.h"
#include "base/testing/planted_record.h"
#include "base/text/diagnostic.h"
#include "compare/keep/error_budget.h"

namespace stepgate {
namespace {

class Candidates : public testing::Test {
 protected:
  Candidate add(const std::string& head, KeepOutcome outcome, const std::string& kernel = "") {
    CandidateTurn turn(path_);
    Candidate candidate = candidate_of(turn.all(), {.kernel = kernel, .head = head});
    candidate.file = "a.so";
    candidate.verdict.outcome = outcome;
    turn.write(candidate);
    return candidate;
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The message for a ledger with this text.
  std::string refusal(const std::string& text) const {
    std::ofstream(path_) << text;
    try {
      (void)read_candidates(path_);
    } catch (const RequestError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "kernels.ledger";
};

TEST_F(Candidates, AreThereAgainWithAllThatWasFound) {
  Candidate planted = planted_record<Candidate>();
  planted.number = 1;
  CandidateTurn(path_).write(planted);
  const std::vector<Candidate> read = read_candidates(path_);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(record_json(read.front()), record_json(planted));
}

TEST_F(Candidates, OfTheSameBytesGoOnAndCostNoBudget) {
  const Candidate first = add("aa", KeepOutcome::undecided);
  const Candidate other = add("bb", KeepOutcome::discard);
  const double left = budget_left(read_candidates(path_));
  const Candidate again = add("aa", KeepOutcome::discard);
  EXPECT_EQ(again.number, first.number);
  EXPECT_EQ(again.level, first.level);
  EXPECT_EQ(other.number, 2);
  EXPECT_LT(other.level, first.level);
  EXPECT_EQ(read_candidates(path_).size(), 2u);
  EXPECT_EQ(budget_left(read_candidates(path_)), left);
}

// A later success does not lower what an earlier candidate must reach: it would then be kept for
// evidence that it had had before and lost.
TEST_F(Candidates, KeepTheLevelOfTheirFirstCall) {
  const Candidate before = add("aa", KeepOutcome::undecided);
  add("bb", KeepOutcome::keep);
  EXPECT_EQ(add("aa", KeepOutcome::undecided).level, before.level);
  EXPECT_DOUBLE_EQ(add("cc", KeepOutcome::undecided).level,
                   2 * budget_of_candidates * share_of_candidate(3));
}

TEST_F(Candidates, AnythingElseThatIsAskedMakesAnotherCandidate) {
  const CandidateSubject asked{
      .kernel = "norm", .head = "aa", .base = "bb", .steps = "cc", .device = "dd"};
  Candidate known;
  known.number = 1;
  known.subject = asked;
  const std::array all{known};
  EXPECT_EQ(candidate_of(all, asked).number, 1);
  for (std::string CandidateSubject::*member :
       {&CandidateSubject::kernel, &CandidateSubject::head, &CandidateSubject::base,
        &CandidateSubject::steps, &CandidateSubject::device}) {
    CandidateSubject other = asked;
    other.*member = "x";
    EXPECT_EQ(candidate_of(all, other).number, 2);
  }
  CandidateSubject measured = asked;
  measured.simulated = true;
  EXPECT_EQ(candidate_of(all, measured).number, 2);
}

TEST_F(Candidates, TheLastKeptOneIsThatOfItsKernel) {
  add("aa", KeepOutcome::keep, "norm");
  const Candidate kept = add("bb:fast", KeepOutcome::keep, "norm");
  add("cc", KeepOutcome::keep, "softmax");
  add("dd", KeepOutcome::discard, "norm");
  const std::vector<Candidate> all = read_candidates(path_);
  ASSERT_NE(last_kept(all, "norm"), nullptr);
  EXPECT_EQ(last_kept(all, "norm")->subject.head, "bb:fast");
  EXPECT_EQ(last_kept(all, ""), nullptr);
  EXPECT_EQ(kept_file(path_, kept), path_.string() + ".kept/bb/a.so");
}

TEST_F(Candidates, AreRefusedWhereTheFileIsNotAsItWasWritten) {
  add("aa", KeepOutcome::undecided);
  add("bb", KeepOutcome::undecided);
  const std::string whole = text();
  const std::string second = whole.substr(whole.find('\n') + 1);
  EXPECT_NE(refusal(second).find("kernels.ledger:1:"), std::string::npos);
  EXPECT_NE(refusal(second).find("has number 2"), std::string::npos);  // the first was taken out
  EXPECT_NE(refusal(whole.substr(0, whole.size() - 5)).find("kernels.ledger:2:"),
            std::string::npos);
  EXPECT_NE(refusal("{\"schema\":\"stepgate.candidate/2\"}\n").find("no schema of this version"),
            std::string::npos);
  EXPECT_NE(refusal("{\"number\":1}\n").find("has no 'schema'"), std::string::npos);
  EXPECT_EQ(refusal(whole), "");
}

}  // namespace
}  // namespace stepgate
