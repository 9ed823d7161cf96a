// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/folder_map.h"

#include <algorithm>
#include <array>
#include <vector>

namespace firebreak::tidy {
namespace {

template <std::size_t N>
using Names = std::array<std::string_view, N>;

// One line a folder, as ARCHITECTURE.md draws it. "*" means every folder of the map.
constexpr Names<1> abi_knows{"src/base"};
constexpr Names<2> os_knows{"src/base", "src/abi"};
constexpr Names<1> fault_knows{"src/base"};
constexpr Names<1> ptx_knows{"src/base"};
constexpr Names<2> cuda_knows{"src/base", "src/abi"};
constexpr Names<2> inject_knows{"src/cuda", "src/fault"};
constexpr Names<3> watch_knows{"src/os", "src/abi", "src/fault"};
constexpr Names<1> mps_knows{"src/os"};
constexpr Names<3> guard_knows{"src/os", "src/abi", "src/cuda"};
constexpr Names<1> hold_knows{"src/os"};
constexpr Names<2> strays_knows{"src/watch", "src/guard"};
constexpr Names<3> park_knows{"src/os", "src/abi", "src/fault"};
constexpr Names<2> vault_knows{"src/os", "src/abi"};
constexpr Names<2> pair_knows{"src/base", "src/fault"};
constexpr Names<5> client_knows{"src/abi", "src/os", "src/cuda", "src/inject", "include/firebreak"};
constexpr Names<6> platform_knows{"src/base", "src/os",          "src/cuda",
                                  "src/mps",  "softgpu/devices", "softgpu/machine"};
constexpr Names<12> agent_knows{"src/watch",  "src/mps",    "src/vault",    "src/pair",
                                "src/hold",   "src/client", "src/inject",   "src/guard",
                                "src/strays", "src/park",   "src/platform", "src/ptx"};
constexpr Names<1> stage_knows{"src/os"};
constexpr Names<5> demo_knows{"src/abi", "src/os", "src/mps", "src/platform", "src/stage"};
constexpr Names<9> characterize_knows{"src/hold",   "src/os",  "src/fault",    "src/inject", "src/watch",
                                      "src/strays", "src/mps", "src/platform", "src/stage"};
constexpr Names<4> soak_knows{"src/os", "src/client", "src/platform", "src/stage"};
constexpr Names<4> cli_knows{"src/agent", "src/demo", "src/characterize", "src/soak"};
constexpr Names<5> softgpu_knows{"src/ptx", "src/base", "src/fault", "src/abi", "src/os"};
constexpr Names<1> softgpu_part_knows{"softgpu"};
constexpr Names<1> softgpu_machine_knows{"softgpu/interpreter"};
constexpr Names<1> softgpu_mps_knows{"softgpu/machine"};
constexpr Names<1> softgpu_devices_knows{"softgpu/machine"};
constexpr Names<3> softgpu_driver_knows{"softgpu/interpreter", "softgpu/machine", "softgpu/devices"};
constexpr Names<2> softgpu_nvml_knows{"softgpu/machine", "softgpu/devices"};
constexpr Names<3> workloads_know{"src/cuda", "src/base", "include/firebreak"};
constexpr Names<1> examples_know{"include/firebreak"};
constexpr Names<1> everything{"*"};

constexpr std::array<FolderRow, 36> rows{{
    {"include/firebreak", {}},
    {"src/base", {}},
    {"src/abi", abi_knows},
    {"src/os", os_knows},
    {"src/fault", fault_knows},
    {"src/ptx", ptx_knows},
    {"src/cuda", cuda_knows},
    {"src/inject", inject_knows},
    {"src/watch", watch_knows},
    {"src/mps", mps_knows},
    {"src/guard", guard_knows},
    {"src/hold", hold_knows},
    {"src/strays", strays_knows},
    {"src/park", park_knows},
    {"src/vault", vault_knows},
    {"src/pair", pair_knows},
    {"src/client", client_knows},
    {"src/platform", platform_knows},
    {"src/agent", agent_knows},
    {"src/stage", stage_knows},
    {"src/demo", demo_knows},
    {"src/characterize", characterize_knows},
    {"src/soak", soak_knows},
    {"src/cli", cli_knows},
    {"softgpu", softgpu_knows},
    {"softgpu/interpreter", softgpu_part_knows},
    {"softgpu/machine", softgpu_machine_knows},
    {"softgpu/mps", softgpu_mps_knows},
    {"softgpu/devices", softgpu_devices_knows},
    {"softgpu/driver", softgpu_driver_knows},
    {"softgpu/nvml", softgpu_nvml_knows},
    {"workloads", workloads_know},
    {"examples", examples_know},
    {"tools/tidy", {}},
    {"tests", everything},
    {"bench", everything},
}};

const FolderRow* find_row(std::string_view folder) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.folder == folder; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const FolderRow> folder_map() { return rows; }

std::string_view mapped_folder(std::string_view path) {
  std::string_view best;
  for (const auto& row : rows) {
    const bool inside = path.starts_with(row.folder) && path.substr(row.folder.size()).starts_with("/");
    if (inside && row.folder.size() > best.size()) best = row.folder;
  }
  return best;
}

bool may_know(std::string_view from, std::string_view to) {
  std::vector<std::string_view> reached{from};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == to) return true;
    const FolderRow* row = find_row(reached[i]);
    if (row == nullptr) continue;
    for (const auto next : row->knows) {
      if (next == "*") return true;
      if (std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
    }
  }
  return false;
}

}  // namespace firebreak::tidy
