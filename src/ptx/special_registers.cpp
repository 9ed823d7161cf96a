// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ptx/parser.h"

namespace firebreak::ptx {
namespace {

using S = SpecialRegister;

// In the order of the enumeration, so that a register indexes its name.
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
    "%current_graph_exec",
};

}  // namespace

SpecialRegister special_register_from_name(std::string_view name, std::string_view component) {
  if (name.empty() || name.front() != '%') return S::None;
  for (std::size_t i = 1; i < names.size(); ++i) {
    const std::string_view candidate = names[i];
    if (!candidate.starts_with(name)) continue;
    const std::string_view rest = candidate.substr(name.size());
    if (component.empty() ? rest.empty()
                          : rest.size() == 2 && rest.front() == '.' && rest.substr(1) == component)
      return static_cast<S>(i);
  }
  return S::None;
}

std::string_view name_of(SpecialRegister special) { return names[static_cast<std::size_t>(special)]; }

}  // namespace firebreak::ptx
