// SPDX-License-Identifier: MIT
// Reads the characters of an assertion from left to right, with their positions in the file. The
// parser interprets them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenario/assertions/expectation.h"

namespace stepgate {

struct RelationSign {
  std::string_view sign;
  std::optional<Relation> relation;  // nullopt: a common sign that is not ours
  std::string_view instead;          // what to write in place of such a sign
};

bool is_letter(char);  // includes underscore

class AssertionText {
 public:
  // `start` is the place of the text's first character; both must outlive this object.
  AssertionText(std::string_view text, const Place& start) : text_(text), start_(start) {}

  std::size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }

  void skip(std::size_t bytes) { at_ += bytes; }
  void skip_spaces();
  bool take(std::string_view expected);  // skips it if it is next

  // The next word, perhaps empty: letters, digits and _; for units letters, % and /.
  std::string_view word() const;
  std::string_view unit_word() const;
  // The sign that is next, or nullptr.
  const RelationSign* sign_here() const;
  // The next sign, word or character, for messages.
  std::string_view seen() const;

  // The place of that byte of the text in the file.
  Place place_of(std::size_t where) const;
  // Records an error at that byte of the text; always returns false.
  bool fail(std::size_t where, std::string message, std::string hint);
  const std::optional<Diagnostic>& problem() const { return problem_; }

 private:
  std::string_view text_;
  const Place& start_;
  std::size_t at_ = 0;
  std::optional<Diagnostic> problem_;
};

}  // namespace stepgate
