// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/describe.h"

#include <fmt/format.h>

#include "kernels/fatbin/cubin.h"
#include "kernels/fatbin/image.h"
#include "kernels/fatbin/ptx_text.h"

namespace firebreak::fatbin {
namespace {

const char* to_string(ImageKind kind) {
  switch (kind) {
    case ImageKind::Ptx:
      return "PTX";
    case ImageKind::Cubin:
      return "cubin";
    case ImageKind::FatBinary:
      return "fat binary";
    case ImageKind::None:
      break;
  }
  return "nothing that is known";
}

const char* to_string(Compression compression) {
  switch (compression) {
    case Compression::None:
      return "none";
    case Compression::Lz4:
      return "lz4";
    case Compression::Zstd:
      return "zstd";
    case Compression::Unknown:
      break;
  }
  return "unknown";
}

std::string kind_of(const CodeEntry& entry) {
  if (entry.kind == CodeKind::Ptx) return "ptx";
  return entry.kind == CodeKind::Elf ? "elf" : fmt::format("kind{}", entry.number);
}

std::string describe(const Code& code) {
  std::string text;
  for (const Variable& variable : code.variables) {
    text += fmt::format("    variable {} {} {} {}{}{}\n", variable.name,
                        variable.memory == VariableSpace::Global ? "global" : "constant", variable.size_bytes,
                        variable.is_local ? "local" : "visible", variable.is_reached ? " reached" : "",
                        variable.is_literal ? " literal" : "");
  }
  if (code.obstacle) text += fmt::format("    obstacle: {}\n", fatbin::to_string(*code.obstacle));
  return text;
}

Code code_of(const CodeEntry& entry) {
  if (entry.kind == CodeKind::Other) return {{}, Obstacle::UnknownKind};
  const auto unpacked = unpack(entry);
  if (!unpacked) return {{}, Obstacle::Malformed};
  return entry.kind == CodeKind::Ptx ? code_of_ptx(unpacked->bytes) : code_of_cubin(unpacked->bytes);
}

Result<std::string> describe_entries(std::string_view image) {
  const auto entries = entries_of(image);
  if (!entries) return propagate(entries);
  std::string text;
  for (const CodeEntry& entry : *entries) {
    text += fmt::format("  {} {}{} {} {} {}\n", kind_of(entry), entry.arch, entry.only_this_arch ? "a" : "",
                        to_string(entry.compression), entry.payload.size(), entry.unpacked_bytes);
    text += describe(code_of(entry));
  }
  return text;
}

}  // namespace

Result<std::string> describe(std::string_view file) {
  const auto images = images_in(file);
  if (!images) return propagate(images);
  std::string text;
  std::size_t number = 0;
  for (const std::string_view image : *images) {
    const ImageKind kind = kind_of_image(image);
    text += fmt::format("image {}, {}, {} bytes\n", ++number, to_string(kind), image.size());
    if (kind != ImageKind::FatBinary) {
      text += describe(code_of_image(image, TargetGpu{}));
      continue;
    }
    const auto entries = describe_entries(image);
    if (!entries) return propagate(entries);
    text += *entries;
  }
  return text;
}

}  // namespace firebreak::fatbin
