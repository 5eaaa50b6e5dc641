// SPDX-License-Identifier: MIT
#include "compare/gate/finding.h"

namespace stepgate {

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::scenario:
      return "scenario";
    case FindingKind::counts:
      return "counts";
    case FindingKind::losses:
      return "losses";
    case FindingKind::time:
      return "time";
    case FindingKind::assertion:
      return "assertion";
  }
  return "";
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::blocks:
      return "blocks";
    case Severity::undecided:
      return "undecided";
    case Severity::not_gated:
      return "not gated";
    case Severity::failed:
      return "failed";
    case Severity::note:
      return "note";
  }
  return "";
}

}  // namespace stepgate
