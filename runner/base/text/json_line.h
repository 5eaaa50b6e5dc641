// SPDX-License-Identifier: MIT
// JSON on one line, the way every station writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/text/visible_text.h"

namespace stepgate {

// Returns the JSON on one line, without a line end; what a terminal or a CI system could take for
// something else is escaped. Bytes that are not UTF-8 become replacement characters, so that the
// rest is kept.
template <class Json = nlohmann::ordered_json>
std::string json_line(const Json& json) {
  constexpr int on_one_line = -1;
  return visible_json(json.dump(on_one_line, ' ', false, Json::error_handler_t::replace));
}

}  // namespace stepgate
