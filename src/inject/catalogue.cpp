// SPDX-License-Identifier: Apache-2.0
#include "inject/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::array kinds{
    &unmapped_store_far,
    &unmapped_load_far,
    &unmapped_atomic_far,
    &unmapped_reduction_far,
    &unmapped_prefetch_far,
    &unmapped_store_low,
    &unmapped_store_near,
    &unmapped_store_before,
    &unmapped_load_near,
    &unmapped_atomic_near,
    &load_next_page,
    &load_beyond_1gib,
    &read_only_store,
    &read_only_atomic,
    &use_after_unmap,
    &use_after_free,
    &null_load,
    &host_pointer,
    &no_access_mapping,
    &bad_program_counter,
    &constant_beyond_window,
    &memset_unmap,
    &copy_source_unmap,
    &copy_engine_unmap,
    &copy_2d_unmap,
    &write_value_unmap,
    &wait_value_unmap,
    &misaligned_load,
    &misaligned_store,
    &misaligned_atomic,
    &shared_out_of_bounds,
    &local_out_of_bounds,
    &non_canonical_address,
    &trap,
    &breakpoint,
    &illegal_instruction,
    &stack_overflow,
    &barrier_misuse,
    &sigkill,
    &sigterm,
    &sigsegv,
    &exit,
    &exec,
    &sigkill_short_kernel,
    &sigkill_endless,
    &sigkill_full_gpu,
    &double_bit_ecc,
    &contained_ecc,
    &uncontained_ecc,
    &nvlink_error,
    &fallen_off_the_bus,
    &gsp_timeout,
};

/// Levenshtein's: how many characters to insert, remove or change to get from one to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::span<const Kind* const> catalogue() { return kinds; }

std::string current_name(const std::string& name, bool contained) {
  for (const char* former :
       {"unmapped-store", "unmapped-load", "unmapped-atomic", "unmapped-reduction", "unmapped-prefetch"}) {
    if (name != former) continue;
    // Of those at the low address one has stayed a kind.
    return name + (contained && name == "unmapped-store" ? "-low" : contained ? "" : "-far");
  }
  return name;
}

const Kind* find(std::string_view wanted) {
  const std::string name = current_name(std::string(wanted), false);
  const auto found = std::ranges::find(kinds, name, [](const Kind* kind) { return kind->name; });
  return found == kinds.end() ? nullptr : *found;
}

const Kind* closest(std::string_view name) {
  const auto distance = [name](const Kind* kind) { return edit_distance(name, kind->name); };
  const Kind* best = *std::ranges::min_element(kinds, {}, distance);
  // More than a third of the name wrong is no slip of the hand.
  return distance(best) * 3 <= best->name.size() ? best : nullptr;
}

}  // namespace firebreak::inject
