// SPDX-License-Identifier: MIT
#include "plugin/kept_check.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/record/record_json.h"
#include "base/text/diagnostic.h"

namespace stepgate {

std::filesystem::path file_of_checks(const std::filesystem::path& library) {
  return library.string() + ".checks";
}

void keep_check(const std::filesystem::path& library, const KeptCheck& check) {
  const std::filesystem::path file = file_of_checks(library);
  std::error_code none;
  if (std::filesystem::exists(file, none) && !std::filesystem::is_regular_file(file, none))
    throw RequestError(
        fmt::format("the verdict cannot be kept in '{}', which is no file", file.string()),
        "remove it");
  std::ofstream out(file, std::ios::app);
  out << record_json(check).dump() + '\n' << std::flush;
  if (out) return;
  throw RequestError(
      fmt::format("the verdict cannot be kept in '{}': {}", file.string(), std::strerror(errno)),
      "`stepgate run` then says that nobody has checked the library");
}

std::optional<KeptCheck> kept_check(const std::filesystem::path& library,
                                    const std::string& identity, const std::string& kernel,
                                    const std::string& function) {
  const std::filesystem::path file = file_of_checks(library);
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return std::nullopt;
  std::ifstream in(file);
  std::optional<KeptCheck> newest;
  for (std::string line; std::getline(in, line);) {
    try {
      auto check = record_from<KeptCheck>(parsed_object(line));
      if (check.library == identity && check.kernel == kernel && check.function == function)
        newest = std::move(check);
    } catch (const WrongRecord&) {  // it decides nothing
    }
  }
  return newest;
}

}  // namespace stepgate
