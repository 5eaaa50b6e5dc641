// SPDX-License-Identifier: MIT
// A fault of a request, where it is, and what to do about it. Every wrong file or argument becomes
// one of these; main prints them and chooses the exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace stepgate {

// A position in a file that the user wrote. Line and column count from 1; 0 means the file as a
// whole.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const Place&) const = default;
};

struct Diagnostic {
  Place place;
  std::string message;  // the fact
  std::string hint;     // the way out; may be empty

  bool operator==(const Diagnostic&) const = default;
};

// Formats a diagnostic: "scenarios/a.toml:3:1: unknown key 'x'; did you mean 'y'?"
std::string to_string(const Diagnostic&);

// Thrown when the request cannot be carried out as written: exit code 2. Carries every diagnostic,
// ordered by position.
class RequestError : public std::runtime_error {
 public:
  explicit RequestError(std::vector<Diagnostic> diagnostics);
  explicit RequestError(Diagnostic diagnostic);
  // For an error in an argument, which has no place in a file.
  RequestError(std::string message, std::string hint);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace stepgate
