// SPDX-License-Identifier: MIT
#include "report/html/embedded_picture.h"

#include <fmt/format.h>

#include "report/html/html.h"
#include "report/picture/svg.h"

namespace stepgate {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void take_out(std::string& text, std::string_view what) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.erase(at, what.size());
}

}  // namespace

std::string embedded_picture(std::string_view svg, std::string_view words, int number) {
  std::string embedded(svg);
  take_out(embedded, text_style);
  take_out(embedded, " xmlns=\"http://www.w3.org/2000/svg\"");
  // No text of a file can look like this: quotes are entities there.
  replace_all(embedded, "<pattern id=\"", fmt::format("<pattern id=\"p{}-", number));
  replace_all(embedded, "\"url(#", fmt::format("\"url(#p{}-", number));
  const std::string_view begin = "<svg";
  const std::size_t at = embedded.find(begin);
  if (at == std::string::npos) return "";
  embedded.insert(
      at + begin.size(),
      fmt::format(" class=\"picture\" role=\"img\" aria-label=\"{}\"", html_text(words)));
  return embedded;
}

}  // namespace stepgate
