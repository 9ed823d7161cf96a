// SPDX-License-Identifier: Apache-2.0
/// Fat binaries: one program's code for several GPUs, one entry each, often compressed.
///
/// NVIDIA does not publish the format. What is known of it here: ZLUDA's trace (zluda_trace/src) and the
/// structures in NVIDIA's fatbinary_section.h for the wrapper and the headers, nvopen-tools'
/// FORMAT_SPECIFICATION.md for the flags, and what the toolkit's own `fatbinary` 13.0 writes, by which the
/// tests' sample was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::fatbin {

/// The structure that nvcc puts before a fat binary in a host program; `data` points at it.
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;  ///< 1; 2: `more` is a list of fat binaries that the driver may have to link
  const void* data;
  const void* more;
};
inline constexpr std::uint32_t wrapper_magic = 0x466243B1;
inline constexpr std::uint32_t fat_binary_magic = 0xBA55ED50;

enum class CodeKind : std::uint16_t { Ptx = 1, Elf = 2, Other = 0 };
enum class Compression { None, Lz4, Zstd, Unknown };

struct CodeEntry {
  CodeKind kind = CodeKind::Other;
  std::uint16_t number = 0;     ///< the kind as it is written there
  unsigned arch = 0;            ///< 90: compute capability 9.0
  bool only_this_arch = false;  ///< sm_90a: for no later minor version
  Compression compression = Compression::None;
  std::string_view payload;  ///< inside the fat binary, as it is stored
  std::uint64_t unpacked_bytes = 0;
};

/// Bytes that belong to nobody else, or are part of the image.
struct Unpacked {
  std::string_view bytes;
  std::unique_ptr<char[]> own;
};

/// Largest content of one entry: cuBLAS' largest is under a tenth of it.
inline constexpr std::uint64_t most_unpacked_bytes = std::uint64_t{1} << 29;

/// How long the fat binary is that begins here, by its header; an error where none does, or it is cut off.
Result<std::uint64_t> fat_binary_bytes(std::string_view image);

/// The entries of the fat binary that begins here.
Result<std::vector<CodeEntry>> entries_of(std::string_view image);

/// Unpacks an entry. Refuses one whose header says more than `most_bytes`, or something that is not so,
/// before it takes any memory.
Result<Unpacked> unpack(const CodeEntry& entry, std::uint64_t most_bytes = most_unpacked_bytes);

/// Returns all fat binaries of a `.nv_fatbin` section: they lie one after the other, with zeroes between
/// them.
Result<std::vector<std::string_view>> fat_binaries_in(std::string_view section);

}  // namespace firebreak::fatbin
