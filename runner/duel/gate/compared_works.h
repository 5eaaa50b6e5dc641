// SPDX-License-Identifier: MIT
// Which works two programs are compared on.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "duel/launches/duel.h"
#include "scenario/scenario.h"

namespace stepgate {

// Whether one of the patterns (*, ?, [a-z]) matches; no patterns match everything.
bool is_wanted(std::span<const std::string> patterns, const std::string& work);

// All works of the scenarios, "scenario/variant".
std::vector<std::string> works_of(std::span<const Scenario>);

// Margins of the wanted works that a device runs and whose own margin is wider, relative.
std::map<std::string, double> wider_margins(std::span<const Scenario>,
                                            std::span<const std::string> patterns, double margin);

// A mistyped pattern must not make a gate smaller: throws RequestError for one that matches none of
// the works.
void refuse_unmatched(std::span<const std::string> patterns, std::span<const std::string> works);

// The works that both have in that list of their hellos and that are wanted, in BASE's order.
std::vector<std::string> works_in_common(const Introduction&,
                                         const std::vector<std::string> Hello::*list,
                                         std::span<const std::string> patterns);

}  // namespace stepgate
