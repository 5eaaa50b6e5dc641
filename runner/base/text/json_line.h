// SPDX-License-Identifier: MIT
// JSON on one line, the way every station writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stepgate {

// Without the line's end. A name that is not UTF-8 must not lose the rest: it is written with
// replacement characters.
template <class Json = nlohmann::ordered_json>
std::string json_line(const Json& json) {
  constexpr int on_one_line = -1;
  return json.dump(on_one_line, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stepgate
