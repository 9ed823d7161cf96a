// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/image.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>

#include "kernels/fatbin/bytes.h"
#include "kernels/fatbin/cubin.h"
#include "kernels/fatbin/elf_view.h"
#include "kernels/fatbin/ptx_text.h"

namespace firebreak::fatbin {
namespace {

/// nvcc's assembler puts the text's zeroes up to the next 8 bytes behind it.
std::string_view text_of(std::string_view bytes) { return bytes.substr(0, bytes.find('\0')); }

bool is_known_kind(const CodeEntry& entry) { return entry.kind != CodeKind::Other; }

bool takes_machine_code(const CodeEntry& entry, const TargetGpu& gpu) {
  const unsigned major = entry.arch / 10;
  const unsigned minor = entry.arch % 10;
  return major == gpu.major && (entry.only_this_arch ? minor == gpu.minor : minor <= gpu.minor);
}

Code code_of_entry(const CodeEntry& entry) {
  if (!is_known_kind(entry) || entry.compression == Compression::Unknown) return {{}, Obstacle::UnknownKind};
  const auto unpacked = unpack(entry);
  if (!unpacked) return {{}, Obstacle::Malformed};
  return entry.kind == CodeKind::Ptx ? code_of_ptx(unpacked->bytes) : code_of_cubin(unpacked->bytes);
}

/// Nobody sees in machine code what a kernel does with an address. PTX beside it is of the same source.
bool may_store_addresses_by_its_ptx(const std::vector<CodeEntry>& entries) {
  return std::ranges::any_of(entries, [](const CodeEntry& entry) {
    return entry.kind == CodeKind::Ptx && code_of_entry(entry).stores_addresses;
  });
}

struct Merged {
  Variable variable;
  std::size_t count = 1;  ///< number of entries that have it
};

/// A variable of several entries is one, and may do what it may in any of them.
void add(std::map<std::string, Merged>& all, const Variable& variable) {
  const auto [known, is_new] = all.emplace(variable.name, Merged{variable});
  if (is_new) return;
  ++known->second.count;
  Variable& both = known->second.variable;
  both.size_bytes = std::max(both.size_bytes, variable.size_bytes);
  if (variable.memory == VariableSpace::Global) both.memory = VariableSpace::Global;
  both.is_local = both.is_local && variable.is_local;
  both.is_literal = both.is_literal && variable.is_literal;
  both.is_reached = both.is_reached || variable.is_reached;
}

Code code_of_fat_binary(std::string_view image, const TargetGpu& gpu) {
  const auto entries = entries_of(image);
  if (!entries) return {{}, Obstacle::Malformed};
  const auto chosen = candidates(*entries, gpu);
  if (chosen.empty()) return {{}, Obstacle::NoCode};
  Code all;
  std::map<std::string, Merged> variables;
  for (const CodeEntry* const entry : chosen) {
    const Code code = code_of_entry(*entry);
    if (!all.obstacle) all.obstacle = code.obstacle;
    for (const Variable& variable : code.variables) add(variables, variable);
  }
  for (auto& [name, merged] : variables) {
    merged.variable.is_certain = merged.count == chosen.size();
    all.variables.push_back(std::move(merged.variable));
  }
  const auto is_reached = [](const Variable& each) { return each.is_reached; };
  if (!all.obstacle && std::ranges::any_of(all.variables, is_reached) &&
      may_store_addresses_by_its_ptx(*entries))
    all.obstacle = Obstacle::StoresAddresses;
  return all;
}

/// nvcc's sections in a host program: of code, and of code that was linked (fatbinary_section.h).
bool is_section_of_code(std::string_view name) { return name == ".nv_fatbin" || name == "__nv_relfatbin"; }

constexpr char fat_binary_begin = 'P';
constexpr char wrapper_begin = '\xB1';

std::uintptr_t address_of(const char* bytes) { return reinterpret_cast<std::uintptr_t>(bytes); }

Found unwrapped(const char* bytes) {
  Wrapper wrapper{};
  std::memcpy(&wrapper, bytes, sizeof wrapper);
  if (wrapper.data == nullptr || *static_cast<const char*>(wrapper.data) == wrapper_begin) return {};
  Found found = find_image(wrapper.data);
  found.was_wrapped = true;
  found.needs_linking = wrapper.version != 1;
  return found;
}

}  // namespace

ImageKind kind_of_image(std::string_view image) {
  const auto magic = read_at<std::uint32_t>(image, 0);
  if (magic == fat_binary_magic) return ImageKind::FatBinary;
  if (image.substr(0, SELFMAG) == std::string_view(ELFMAG, SELFMAG)) return ImageKind::Cubin;
  const bool is_text = !image.empty() && (std::isprint(static_cast<unsigned char>(image[0])) != 0 ||
                                          std::isspace(static_cast<unsigned char>(image[0])) != 0);
  return is_text ? ImageKind::Ptx : ImageKind::None;
}

Found find_image(const void* image) {
  if (image == nullptr) return {};
  const auto* const bytes = static_cast<const char*>(image);
  // A text may be shorter than a magic: first the byte that tells them apart.
  const bool has_magic = bytes[0] == fat_binary_begin || bytes[0] == wrapper_begin || bytes[0] == ELFMAG[0];
  if (!has_magic) {
    const bool is_text = kind_of_image({bytes, 1}) == ImageKind::Ptx;
    return {is_text ? std::string_view(bytes, std::strlen(bytes) + 1) : std::string_view()};
  }
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic == wrapper_magic) return unwrapped(bytes);
  // The text ends where the headers say, and no further.
  const std::string_view readable(bytes,
                                  std::min<std::uintptr_t>(PTRDIFF_MAX, UINTPTR_MAX - address_of(bytes)));
  if (magic == fat_binary_magic) {
    const auto size_bytes = fat_binary_bytes(readable);
    return {size_bytes ? readable.substr(0, *size_bytes) : std::string_view()};
  }
  return {readable.substr(0, elf_bytes(readable))};
}

std::vector<const CodeEntry*> candidates(const std::vector<CodeEntry>& entries, const TargetGpu& gpu) {
  std::vector<const CodeEntry*> machine_code;
  std::vector<const CodeEntry*> ptx;
  for (const CodeEntry& entry : entries) {
    if (entry.kind != CodeKind::Ptx) {
      if (takes_machine_code(entry, gpu)) machine_code.push_back(&entry);
    } else if (entry.arch <= gpu.major * 10 + gpu.minor) {
      ptx.push_back(&entry);
    }
  }
  const bool is_ptx_possible = machine_code.empty() || gpu.may_prefer_ptx;
  if (is_ptx_possible) machine_code.insert(machine_code.end(), ptx.begin(), ptx.end());
  return machine_code;
}

ChosenCode choose_code(std::string_view image, const TargetGpu& gpu) {
  const ImageKind kind = kind_of_image(image);
  if (kind == ImageKind::Ptx) return {CodeForm::Ptx, std::string(text_of(image))};
  if (kind == ImageKind::Cubin) return {CodeForm::MachineCode, {}};
  if (kind != ImageKind::FatBinary) return {};
  const auto entries = entries_of(image);
  if (!entries) return {};
  const std::vector<const CodeEntry*> taken = candidates(*entries, gpu);
  const auto is_ptx = [](const CodeEntry* entry) { return entry->kind == CodeKind::Ptx; };
  if (taken.empty()) return {};
  if (std::ranges::none_of(taken, is_ptx)) return {CodeForm::MachineCode, {}};
  if (!std::ranges::all_of(taken, is_ptx)) return {};
  const auto newest = std::ranges::max_element(taken, {}, &CodeEntry::arch);
  if (std::ranges::count(taken, (*newest)->arch, &CodeEntry::arch) != 1) return {};
  const auto unpacked = unpack(**newest);
  if (!unpacked) return {};
  return {CodeForm::Ptx, std::string(text_of(unpacked->bytes))};
}

std::string newest_ptx(std::string_view image, const TargetGpu& gpu) {
  if (kind_of_image(image) != ImageKind::FatBinary) return {};
  const auto entries = entries_of(image);
  if (!entries) return {};
  const CodeEntry* newest = nullptr;
  for (const CodeEntry& entry : *entries) {
    const bool is_taken = entry.kind == CodeKind::Ptx && entry.arch <= gpu.major * 10 + gpu.minor;
    if (is_taken && (newest == nullptr || newest->arch < entry.arch)) newest = &entry;
  }
  if (newest == nullptr) return {};
  const auto unpacked = unpack(*newest);
  return unpacked ? std::string(text_of(unpacked->bytes)) : std::string();
}

Code code_of_image(std::string_view image, const TargetGpu& gpu) {
  switch (kind_of_image(image)) {
    case ImageKind::Ptx:
      return code_of_ptx(image);
    case ImageKind::Cubin:
      return code_of_cubin(image);
    case ImageKind::FatBinary:
      return code_of_fat_binary(image, gpu);
    case ImageKind::None:
      break;
  }
  return {{}, Obstacle::UnknownKind};
}

Result<std::vector<std::string_view>> images_in(std::string_view file) {
  const ImageKind kind = kind_of_image(file);
  if (kind == ImageKind::None)
    return fail(ErrorCode::InvalidArgument, "neither PTX, nor a fat binary, nor an ELF file");
  if (kind == ImageKind::FatBinary) return fat_binaries_in(file);
  std::vector<std::string_view> images;
  if (kind == ImageKind::Ptx) {
    images.push_back(file);
    return images;
  }
  const auto elf = ElfView::of(file);
  if (!elf) return propagate(elf);
  constexpr std::uint16_t machine_cuda = 190;
  if (elf->machine() == machine_cuda) {
    images.push_back(file);
    return images;
  }
  for (const auto& section : elf->sections()) {
    if (!is_section_of_code(section.name)) continue;
    const auto found = fat_binaries_in(section.content);
    if (!found) return propagate(found);
    images.insert(images.end(), found->begin(), found->end());
  }
  return images;
}

Result<std::vector<PtxText>> ptx_texts_in(std::string_view file) {
  const auto images = images_in(file);
  if (!images) return propagate(images);
  std::vector<PtxText> texts;
  for (const std::string_view image : *images) {
    const ImageKind kind = kind_of_image(image);
    if (kind == ImageKind::Ptx) texts.push_back({0, std::string(text_of(image))});
    if (kind != ImageKind::FatBinary) continue;
    const auto entries = entries_of(image);
    if (!entries) return propagate(entries);
    for (const CodeEntry& entry : *entries) {
      if (entry.kind != CodeKind::Ptx) continue;
      const auto unpacked = unpack(entry);
      if (!unpacked) return propagate(unpacked);
      texts.push_back({entry.arch, std::string(text_of(unpacked->bytes))});
    }
  }
  return texts;
}

}  // namespace firebreak::fatbin
