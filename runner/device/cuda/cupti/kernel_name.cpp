// SPDX-License-Identifier: MIT
#include "device/cuda/cupti/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace stepgate {
namespace {

void drop_all(std::string& text, std::string_view part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
}

// The first parenthesis outside of template arguments begins the parameters.
std::size_t begin_of_parameters(const std::string& name) {
  int depth = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '<') ++depth;
    if (name[at] == '>') --depth;
    if (name[at] == '(' && depth == 0) return at;
  }
  return name.size();
}

}  // namespace

std::string readable_kernel_name(const char* symbol) {
  if (!symbol) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  if (status != 0 || !demangled) return symbol;
  std::string name = demangled.get();
  drop_all(name, "(anonymous namespace)::");
  name.resize(begin_of_parameters(name));
  if (name.starts_with("void ")) name.erase(0, 5);  // symbols of templates contain the return type
  return name;
}

}  // namespace stepgate
