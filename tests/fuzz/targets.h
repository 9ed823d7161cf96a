// SPDX-License-Identifier: Apache-2.0
/// What reads bytes that others made, and what holds of it whatever they are. One table for the fuzzer and
/// for the test of the kept corpus.
#pragma once

#include <span>
#include <string_view>

namespace firebreak::fuzz {

struct Target {
  std::string_view name;     ///< and that of its folder in tests/fuzz/corpus
  std::string_view samples;  ///< a folder of the repository with more of them; empty: none
  void (*read)(std::string_view bytes);
  bool (*is_possible)() = [] { return true; };  ///< here and now
};

std::span<const Target> targets();

/// Ends the process with that sentence where it does not hold: that is what a fuzzer sees.
void require(bool holds, std::string_view what);

/// Lines and documents of text.
void read_wire(std::string_view bytes);
void read_status(std::string_view bytes);
void read_kernel_log(std::string_view bytes);
void read_mps_log(std::string_view bytes);
void read_mps_answer(std::string_view bytes);
void read_core_dump_lines(std::string_view bytes);
void read_proc(std::string_view bytes);
void read_ptx(std::string_view bytes);

/// A sequence of what peers of two users do to a whole agent (agent_stage.h).
void play_agent(std::string_view bytes);
/// As root, and not under the thread sanitizer.
bool can_play_agent();

/// Memory that others write, too.
void read_kept_state(std::string_view bytes);
void read_guard_page(std::string_view bytes);
void read_spare_page(std::string_view bytes);
void read_shared_memory(std::string_view bytes);
void read_redo_ring(std::string_view bytes);

/// Records that say what is a fault, and when there is to be one.
void read_uvm_queue(std::string_view bytes);
void read_schedule(std::string_view bytes);

/// Binary files.
void read_core_dump(std::string_view bytes);
void read_fat_binary(std::string_view bytes);

}  // namespace firebreak::fuzz
