// SPDX-License-Identifier: Apache-2.0
/// How what the program gives its GPU is noted for a redo, by the functions it is given by (notes.def).
#pragma once

#include <cstdint>
#include <span>

#include "program/virtual/process.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_api_rows.h"

#include "program/virtual/notes.def"

/// The struct of virtual_driver::notes for a function, by its symbol.
#define VIRTUAL_NOTE(symbol) \
  ::firebreak::virtual_driver::notes::CUDA_SECOND(VIRTUAL_NOTE_##symbol, UnknownNote, ~)

namespace firebreak::virtual_driver {

/// Of a launch's attribute: it says nothing of when the kernel runs, or of what it is given.
bool is_harmless(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

/// A launch's parameters are packed as the kernel has them.
void note_launch(const Turn& turn, GivenWork& given, const Work& work, const GivenLaunch& launch,
                 void** parameters, void** extra);
void note_launch(const Turn& turn, GivenWork& given, const Work& work, const CUlaunchConfig& config,
                 CUfunction function, void** parameters, void** extra);
/// Not by us.
void note_fill(GivenWork& given, const Work& work, const GivenArea& to, std::uint32_t value,
               std::uint32_t value_bytes);
/// One address is the host's, or none.
void note_copy(const Turn& turn, GivenWork& given, const Work& work, std::uint64_t to, std::uint64_t from,
               std::size_t size_bytes);

/// Of a copy from the host that returns once it has read that. `may_change_first`: work that is under way may
/// write there before that.
void note_upload(const Turn& turn, GivenWork& given, const Work& work, CUdeviceptr to, const void* from,
                 std::size_t size_bytes, bool may_change_first);

namespace notes {

struct UnknownNote {
  template <class... Arguments>
  static void put(const Turn&, GivenWork& given, const Work& work, const Arguments&...) {
    given.unknown(work);
  }
};

/// It has its place in its stream, and does nothing with memory.
struct NothingNote {
  template <class... Arguments>
  static void put(const Turn&, GivenWork& given, const Work& work, const Arguments&...) {
    given.nothing(work);
  }
};

struct LaunchNote {
  static void put(const Turn& turn, GivenWork& given, const Work& work, CUfunction function,
                  unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                  unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream,
                  void** parameters, void** extra) {
    const GivenLaunch launch{function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    note_launch(turn, given, work, launch, parameters, extra);
  }
};

struct ConfigLaunchNote {
  static void put(const Turn& turn, GivenWork& given, const Work& work, const CUlaunchConfig* config,
                  CUfunction function, void** parameters, void** extra) {
    note_launch(turn, given, work, *config, function, parameters, extra);
  }
};

struct GraphNote {
  static void put(const Turn& turn, GivenWork& given, const Work& work, CUgraphExec exec, CUstream) {
    const std::uint64_t content = turn.all.taken().any() ? 0 : turn.all.graphs().note_launch(exec);
    if (content == 0) return given.unknown(work);
    given.graph(work, content);
  }
};

struct CopyNote {
  template <class To, class From, class... Rest>
  static void put(const Turn& turn, GivenWork& given, const Work& work, To to, From from,
                  std::size_t size_bytes, Rest...) {
    note_copy(turn, given, work, (std::uint64_t)to, (std::uint64_t)from, size_bytes);  // NOLINT
  }
};

struct FillNote {
  template <class Value, class... Rest>
  static void put(const Turn&, GivenWork& given, const Work& work, CUdeviceptr to, Value value,
                  std::size_t count, Rest...) {
    note_fill(given, work, one_row(to, count * sizeof value), value, sizeof value);
  }
};

struct FillRowsNote {
  template <class Value, class... Rest>
  static void put(const Turn&, GivenWork& given, const Work& work, CUdeviceptr to, std::size_t pitch_bytes,
                  Value value, std::size_t width, std::size_t height, Rest...) {
    note_fill(given, work, {to, width * sizeof value, pitch_bytes, height}, value, sizeof value);
  }
};

/// Of ours it is; what the program writes so it may wait for.
struct WriteNote {
  static void put(const Turn& turn, GivenWork& given, const Work& work, CUstream, CUdeviceptr to,
                  std::uint32_t value, unsigned int) {
    if (!turn.all.is_marker(to)) return given.unknown(work);
    given.fill(work, one_row(to, sizeof value), value, sizeof value);
  }
};

}  // namespace notes
}  // namespace firebreak::virtual_driver
