// SPDX-License-Identifier: MIT
// Printing a diagnostic, and keeping many of them in the order of their places.
#include "base/text/diagnostic.h"

#include <algorithm>
#include <tuple>

#include "base/text/visible_text.h"

namespace stepgate {
namespace {

std::vector<Diagnostic> in_file_order(std::vector<Diagnostic> diagnostics) {
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return std::tie(a.place.file, a.place.line, a.place.column) <
                            std::tie(b.place.file, b.place.line, b.place.column);
                   });
  return diagnostics;
}

std::string joined(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += to_string(diagnostic);
  }
  return text;
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (!diagnostic.place.file.empty()) {
    text += one_line(diagnostic.place.file);
    if (diagnostic.place.line > 0) {
      text += ':' + std::to_string(diagnostic.place.line) + ':' +
              std::to_string(diagnostic.place.column);
    }
    text += ": ";
  }
  text += one_line(diagnostic.message);
  if (!diagnostic.hint.empty()) text += "; " + one_line(diagnostic.hint);
  return text;
}

RequestError::RequestError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(joined(in_file_order(diagnostics))),
      diagnostics_(in_file_order(std::move(diagnostics))) {}

RequestError::RequestError(Diagnostic diagnostic)
    : RequestError(std::vector<Diagnostic>{std::move(diagnostic)}) {}

RequestError::RequestError(std::string message, std::string hint)
    : RequestError(Diagnostic{Place(), std::move(message), std::move(hint)}) {}

}  // namespace stepgate
