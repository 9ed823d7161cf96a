// SPDX-License-Identifier: Apache-2.0
/// fmt's own code, compiled here: Debian has no archive of it, and its shared library is not everywhere.
#include <fmt/format-inl.h>

template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl<char>(locale_ref);
template char fmt::detail::decimal_point_impl<char>(locale_ref);
