// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace firebreak::fuzz {
namespace {

constexpr std::array all = {
    Target{"agent", "", play_agent, can_play_agent},
    Target{"guard_page", "", read_guard_page},
    Target{"kept_state", "", read_kept_state},
    Target{"redo_ring", "", read_redo_ring},
    Target{"shared_memory", "", read_shared_memory},
    Target{"spare_page", "", read_spare_page},
    Target{"wire", "", read_wire},
    Target{"status", "", read_status},
    Target{"kernel_log", "", read_kernel_log},
    Target{"mps_log", "", read_mps_log},
    Target{"mps_answer", "", read_mps_answer},
    Target{"core_dump_lines", "", read_core_dump_lines},
    Target{"core_dump", "", read_core_dump},
    Target{"proc", "", read_proc},
    Target{"uvm_queue", "", read_uvm_queue},
    Target{"schedule", "", read_schedule},
    Target{"ptx", "src/kernels/ptx/testdata", read_ptx},
    Target{"fat_binary", "src/kernels/fatbin/testdata", read_fat_binary},
};

}  // namespace

std::span<const Target> targets() { return all; }

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace firebreak::fuzz
