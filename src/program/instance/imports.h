// SPDX-License-Identifier: Apache-2.0
/// The table of imports: what each function of the C library answers a copy of a driver that asks it. This is
/// the only place that knows what such a copy may do in its process. What has no row goes to the C library:
/// it takes nothing, or waits and may be left half done.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace firebreak::instance {

/// The thing that a function takes, or what else is done with it.
enum class Import {
  Memory,       ///< memory from the copy's own arena, which goes at once
  Mapping,      ///< noted, and unmapped
  Descriptor,   ///< noted, and closed
  Stream,       ///< likewise, with the C library's memory for it
  Thread,       ///< noted, and ended
  Key,          ///< noted, and deleted; nothing more is done at a thread's end
  Exit,         ///< noted, run at the process's end while the copy is there, and forgotten
  Environment,  ///< the answers of this instance; nothing is taken
  Linker,       ///< libraries that the copy may load: its debugger is a copy of its own, and goes with it
  Signals,      ///< the one that ends threads is never blocked
  Locked,  ///< the C library's own; whoever is inside holds a lock of the process's, and is not ended there
};

struct ImportRow {
  std::string_view name;
  Import what;
  /// Returns what the linker is to find, for the copy at that place.
  const void* (*entry)(std::size_t place);
  /// The same for the driver's debugger; null: that one.
  const void* (*entry_of_debugger)(std::size_t place) = nullptr;
};

std::span<const ImportRow> import_table();

}  // namespace firebreak::instance
