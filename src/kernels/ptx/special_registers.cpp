// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>

#include "kernels/ptx/parser.h"

namespace firebreak::ptx {
namespace {

using S = SpecialRegister;

// The order is the enumeration's, so that a register indexes its name.
constexpr std::array<std::string_view, static_cast<std::size_t>(S::CurrentGraphExec) + 1> names{
    "",
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%clusterid.x",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.x",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%cluster_nctaid.x",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%is_explicit_cluster",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%dynamic_smem_size",
    "%total_smem_size",
    "%aggr_smem_size",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%envreg",
    "%current_graph_exec",
};

bool is_environment(std::string_view name) {
  constexpr std::string_view prefix = "%envreg";
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  const std::string_view digits = name.substr(prefix.size());
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return problem == std::errc{} && end == digits.data() + digits.size() && value < 32 &&
         (digits.size() == 1 || digits.front() != '0');
}

}  // namespace

SpecialRegister special_register_from_name(std::string_view name, std::string_view component) {
  if (name.empty() || name.front() != '%') return S::None;
  if (component.empty() && is_environment(name)) return S::Envreg;
  for (std::size_t i = 1; i < names.size(); ++i) {
    const std::string_view candidate = names[i];
    if (static_cast<S>(i) == S::Envreg || !candidate.starts_with(name)) continue;
    const std::string_view rest = candidate.substr(name.size());
    if (component.empty() ? rest.empty()
                          : rest.size() == 2 && rest.front() == '.' && rest.substr(1) == component)
      return static_cast<S>(i);
  }
  return S::None;
}

std::string_view name_of(SpecialRegister special) { return names[static_cast<std::size_t>(special)]; }

}  // namespace firebreak::ptx
