// SPDX-License-Identifier: Apache-2.0
#include "inject/sm/compiled_kernel.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace firebreak::inject {
namespace {

// Declared as in cuda.h. No other file needs them, so they are no entry points of src/program/cuda.
using LinkState = struct CUlinkState_st*;
using LinkCreate = CUresult (*)(unsigned int options, CUjit_option* names, void** values, LinkState* state);
using LinkAddData = CUresult (*)(LinkState state, int type, void* data, std::size_t size_bytes,
                                 const char* name, unsigned int options, CUjit_option* names, void** values);
using LinkComplete = CUresult (*)(LinkState state, void** binary, std::size_t* size_bytes);
using LinkDestroy = CUresult (*)(LinkState state);
constexpr int input_is_ptx = 1;  // CU_JIT_INPUT_PTX

template <class Structure>
std::optional<Structure> read_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Structure)) return std::nullopt;
  Structure structure;
  std::memcpy(&structure, bytes.data() + offset, sizeof structure);
  return structure;
}

std::string_view text_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const char* text = reinterpret_cast<const char*>(bytes.data() + offset);
  return {text, strnlen(text, bytes.size() - offset)};
}

}  // namespace

bool can_compile(const cuda::Driver& driver) {
  const auto create = reinterpret_cast<LinkCreate>(driver.symbol("cuLinkCreate_v2"));
  const auto destroy = reinterpret_cast<LinkDestroy>(driver.symbol("cuLinkDestroy"));
  LinkState state = nullptr;
  if (!create || !destroy || create(0, nullptr, nullptr, &state) == CUDA_ERROR_NOT_SUPPORTED) return false;
  if (state != nullptr) destroy(state);
  return true;
}

Result<std::vector<std::byte>> compile(const cuda::Driver& driver, std::string_view ptx) {
  const auto create = reinterpret_cast<LinkCreate>(driver.symbol("cuLinkCreate_v2"));
  const auto add_data = reinterpret_cast<LinkAddData>(driver.symbol("cuLinkAddData_v2"));
  const auto complete = reinterpret_cast<LinkComplete>(driver.symbol("cuLinkComplete"));
  const auto destroy = reinterpret_cast<LinkDestroy>(driver.symbol("cuLinkDestroy"));
  if (!create || !add_data || !complete || !destroy)
    return fail(ErrorCode::Unsupported, "this driver has no linker");
  LinkState state = nullptr;
  if (auto made = driver.check(create(0, nullptr, nullptr, &state), "cuLinkCreate"); !made)
    return propagate(made);
  std::string text(ptx);  // the driver wants a terminating zero, and counts it
  void* binary = nullptr;
  std::size_t size_bytes = 0;
  auto done =
      driver.check(add_data(state, input_is_ptx, text.data(), text.size() + 1, "kernel", 0, nullptr, nullptr),
                   "cuLinkAddData");
  if (done) done = driver.check(complete(state, &binary, &size_bytes), "cuLinkComplete");
  std::vector<std::byte> copy;
  if (done) copy.assign(static_cast<std::byte*>(binary), static_cast<std::byte*>(binary) + size_bytes);
  destroy(state);  // takes the binary along
  if (!done) return propagate(done);
  return copy;
}

std::span<std::byte> code_of(std::span<std::byte> binary, std::string_view kernel) {
  const auto header = read_at<Elf64_Ehdr>(binary, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto section = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(binary, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto names = section(header->e_shstrndx);
  if (!names) return {};
  const std::string wanted = ".text." + std::string(kernel);
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const auto candidate = section(index);
    if (!candidate || text_at(binary, names->sh_offset + candidate->sh_name) != wanted) continue;
    if (candidate->sh_offset > binary.size() || candidate->sh_size > binary.size() - candidate->sh_offset)
      return {};
    return binary.subspan(candidate->sh_offset, candidate->sh_size);
  }
  return {};
}

}  // namespace firebreak::inject
