// SPDX-License-Identifier: MIT
#include "judge/mechanism/diagnose.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepgate {
namespace {

// Joins words: "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += index + 1 == words.size() ? " and " : ", ";
    text += words[index];
  }
  return text;
}

// "attention and attention_gradient are cuDNN 9.14.0's".
std::string in_words(const std::vector<std::string>& kernels, const KernelChoice& choice) {
  if (choice.own_launches > 0)
    return fmt::format("{} of {} launches of {} are ours: {}", choice.own_launches, choice.launches,
                       listed(kernels), choice.reason);
  const std::string owner = choice.library.empty() ? "stepgate's own" : choice.library + "'s";
  return fmt::format("{} {} {}{}{}", listed(kernels), kernels.size() == 1 ? "is" : "are", owner,
                     choice.reason.empty() ? "" : ": ", choice.reason);
}

// Names kernels together that have the same implementation for the same reason.
std::string in_words(const std::vector<KernelChoice>& choices) {
  std::string text;
  for (auto choice = choices.begin(); choice != choices.end(); ++choice) {
    const auto goes_along = [&](const KernelChoice& other) {
      return other.library == choice->library && other.reason == choice->reason &&
             other.own_launches == choice->own_launches;
    };
    if (std::find_if(choices.begin(), choice, goes_along) != choice) continue;  // already named
    std::vector<std::string> kernels;
    for (const KernelChoice& other : choices) {
      if (goes_along(other)) kernels.push_back(other.kernel);
    }
    text += (text.empty() ? "" : "; ") + in_words(kernels, *choice);
  }
  return text;
}

}  // namespace

std::vector<std::string> library_notes(const Measurement& measurement) {
  struct Note {
    std::string words;
    std::vector<std::string> variants;
  };
  std::vector<Note> notes;
  for (const MeasuredVariant& variant : measurement.variants) {
    if (variant.choices.empty()) continue;
    const std::string words = in_words(variant.choices);
    auto note =
        std::find_if(notes.begin(), notes.end(), [&](const Note& n) { return n.words == words; });
    if (note == notes.end()) note = notes.insert(note, {.words = words, .variants = {}});
    note->variants.push_back("'" + variant.name + "'");
  }
  std::vector<std::string> sentences;
  for (const Note& note : notes) {
    sentences.push_back(fmt::format("in {}, {}", listed(note.variants), note.words));
  }
  return sentences;
}

}  // namespace stepgate
