// SPDX-License-Identifier: MIT
// The characters of an assertion, read from left to right, and where in the file they stand. The
// parser knows what they mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenario/assertions/expectation.h"

namespace stepgate {

struct RelationSign {
  std::string_view sign;
  std::optional<Relation> relation;  // none: a sign that people write instead
  std::string_view instead;          // what to write then
};

bool is_letter(char);  // or underscore

class AssertionText {
 public:
  // `start` is where the text's first character stands; both must outlive this.
  AssertionText(std::string_view text, const Place& start) : text_(text), start_(start) {}

  std::size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }

  void skip(std::size_t bytes) { at_ += bytes; }
  void skip_spaces();
  bool take(std::string_view expected);  // skips it if it stands here

  // The word that stands here, perhaps empty: letters, digits and _; or letters, % and /.
  std::string_view word() const;
  std::string_view unit_word() const;
  // Null when no sign stands here.
  const RelationSign* sign_here() const;
  // The sign, word or character that stands here, for messages.
  std::string_view seen() const;

  // Remembers what is wrong at that byte of the text; always false.
  bool fail(std::size_t where, std::string message, std::string hint);
  const std::optional<Diagnostic>& problem() const { return problem_; }

 private:
  std::string_view text_;
  const Place& start_;
  std::size_t at_ = 0;
  std::optional<Diagnostic> problem_;
};

}  // namespace stepgate
