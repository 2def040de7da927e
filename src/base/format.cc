// SPDX-License-Identifier: Apache-2.0
// The code of fmt that its headers only declare: the distribution has that as a shared library alone, and the guest's
// programs are static.
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl(locale_ref) -> char;
template auto fmt::detail::dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template fmt::detail::locale_ref::locale_ref(const std::locale&);
template auto fmt::detail::locale_ref::get<std::locale>() const -> std::locale;
template void fmt::detail::buffer<char>::append(const char*, const char*);
template void fmt::detail::vformat_to(buffer<char>&, basic_string_view<char>,
                                      basic_format_args<format_context>, locale_ref);
