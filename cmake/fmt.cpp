// SPDX-License-Identifier: MIT
// fmt, compiled once. As a header-only library it is compiled in every file that formats, which was
// a third of the compile time without CUDA; the compiled one of distributions is a shared library,
// which need not be there where the headers are.
#include <fmt/format-inl.h>

// Functions that format.h declares for every file and format-inl.h defines as templates.
FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template locale_ref::locale_ref(const std::locale&);
template auto locale_ref::get<std::locale>() const -> std::locale;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<wchar_t>;
template auto decimal_point_impl(locale_ref) -> char;
template auto decimal_point_impl(locale_ref) -> wchar_t;
}  // namespace detail
FMT_END_NAMESPACE
