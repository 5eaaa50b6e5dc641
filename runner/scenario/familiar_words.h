// SPDX-License-Identifier: MIT
// Words that people bring along from PyTorch, profilers and other tools, and what they are called
// here. `stepgate fields WORD` looks them up, and so do the hints where a key, a choice or a metric
// is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// Names are separated by ", ", of the likeliest first. A name is a knob, a metric, or a knob with a
// choice: `model.dtype = "bf16"`.
struct FamiliarWord {
  std::string_view words;  // as people type them, separated by ", "
  std::string_view names;  // may be empty, where there is only a remark
  std::string_view remark = {};
};

std::span<const FamiliarWord> familiar_words();

// nullptr if the word is not in the table. Capitals, and whatever is no letter or digit, make no
// difference: "DataLoader", "num-workers" and "gradient checkpointing" are found.
const FamiliarWord* familiar_word(std::string_view word);

// The names that a familiar word leads to; none for any other word.
std::vector<std::string_view> names_for(std::string_view word);

// The choice of the field that a familiar word means, "bf16" for ("model.dtype", "bfloat16"); empty
// where there is none.
std::string_view choice_for(std::string_view field, std::string_view word);

// The hint where an unknown word stands in place of a knob or of a metric: its remark, or "did you
// mean 'samples_per_s', 'tokens_per_s' or 'steps_per_s'?" Names of the place come before all
// others, which are left out where there is one. Empty for a word that is not familiar.
enum class FamiliarPlace { knob, metric };
std::string familiar_hint(std::string_view word, FamiliarPlace place);

}  // namespace stepgate
