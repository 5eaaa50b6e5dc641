// SPDX-License-Identifier: MIT
#include "report/json/steps_json.h"

namespace stepgate {

nlohmann::ordered_json steps_json(const std::vector<DescribedStep>& steps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const DescribedStep& step : steps) {
    nlohmann::ordered_json words{{"variant", step.variant}};
    for (std::size_t at = 0; at < five_things.size(); ++at)
      words[std::string(five_things[at])] = step.words[at];
    words[std::string(other_things)] = step.other;
    all.push_back(std::move(words));
  }
  return all;
}

}  // namespace stepgate
