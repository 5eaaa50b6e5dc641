// SPDX-License-Identifier: MIT
#include "plan/compose/update/parameter_list.h"

#include <utility>

namespace stepgate {

std::size_t ParameterList::add(std::string name, std::int64_t elements, double scale,
                               double centre) {
  tensors_.push_back({std::move(name), elements_, elements, centre, scale, unit_});
  elements_ += elements;
  return tensors_.size() - 1;
}

void ParameterList::align() {
  constexpr std::int64_t elements = 64;
  elements_ = (elements_ + elements - 1) / elements * elements;
}

std::vector<FlatTensor> ParameterList::places() const {
  std::vector<FlatTensor> places;
  for (const ParameterTensor& tensor : tensors_)
    places.push_back({tensor.first, tensor.elements, tensor.unit});
  return places;
}

std::vector<ContentPart> ParameterList::contents() const {
  std::vector<ContentPart> parts;
  std::int64_t end = 0;
  for (const ParameterTensor& tensor : tensors_) {
    if (tensor.first > end) parts.push_back({.elements = tensor.first - end});
    parts.push_back({tensor.elements, tensor.centre, tensor.scale});
    end = tensor.first + tensor.elements;
  }
  if (elements_ > end) parts.push_back({.elements = elements_ - end});
  return parts;
}

}  // namespace stepgate
