// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core_dump_file.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace firebreak::softgpu::driver {
namespace {

constexpr std::uint16_t cuda_machine = 190;  // EM_CUDA

/// Section types, from SHT_LOUSER on.
enum class Table : std::uint32_t {
  Image = 7,
  Devices = 9,
  Contexts = 10,
  Sms = 11,
  Grids = 12,
  Blocks = 13,
  Warps = 14,
  Lanes = 15,
};

struct DeviceEntry {
  std::uint32_t unused[22];
};
struct ContextEntry {
  std::uint64_t id;
  std::uint32_t unused[8];
};
struct GridEntry {
  std::uint64_t id;
  std::uint64_t context_id;
  std::uint32_t unused[14];
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t unused_too[10];
};
struct SmEntry {
  std::uint32_t id;
  std::uint32_t unused;
  std::uint32_t exception;
  std::uint32_t error_pc_valid;
  std::uint64_t error_pc;
  std::uint32_t unused_too[6];
};
struct BlockEntry {
  std::uint64_t grid_id;
  std::uint32_t unused[12];
};
struct WarpEntry {
  std::uint64_t error_pc;
  std::uint32_t id;
  std::uint32_t valid_lanes;
  std::uint32_t active_lanes;
  std::uint32_t is_broken;
  std::uint32_t error_pc_valid;
  std::uint32_t unused[9];
};
struct LaneEntry {
  std::uint64_t virtual_pc;
  std::uint64_t physical_pc;
  std::uint32_t lane;
  std::uint32_t thread[3];
  std::uint32_t exception;
  std::uint32_t call_depth;
  std::uint32_t unused[4];
};
static_assert(sizeof(DeviceEntry) == 88 && sizeof(ContextEntry) == 40 && sizeof(GridEntry) == 136);
static_assert(sizeof(SmEntry) == 48 && sizeof(BlockEntry) == 56);
static_assert(sizeof(WarpEntry) == 64 && sizeof(LaneEntry) == 56);

class CoreFile {
 public:
  CoreFile() : bytes_(sizeof(Elf64_Ehdr)) { add_header("", SHT_NULL, 0, 0); }

  template <class Entry>
  void add(const std::string& name, Table type, const std::vector<Entry>& entries) {
    add_section(name, SHT_LOUSER + static_cast<std::uint32_t>(type), entries.data(),
                entries.size() * sizeof(Entry), sizeof(Entry));
  }

  /// Names, then headers, come last. The image is as large as it takes for the whole to have its size.
  std::vector<std::byte> finish() {
    const std::string image = ".cudbg.relfimg.dev0.ctx0.mod0";
    const std::string names = ".shstrtab";
    const std::size_t rest_bytes = bytes_.size() + names_.size() + image.size() + names.size() + 2 +
                                   (headers_.size() + 2) * sizeof(Elf64_Shdr);
    add(image, Table::Image, std::vector<std::byte>(core_dump_bytes - std::min(rest_bytes, core_dump_bytes)));
    const std::string all_names = names_ + names + '\0';
    add_section(names, SHT_STRTAB, all_names.data(), all_names.size(), 0);
    write_file_header();
    append(headers_.data(), headers_.size() * sizeof(Elf64_Shdr));
    return std::move(bytes_);
  }

 private:
  void append(const void* data, std::size_t size_bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size_bytes);
  }

  void add_header(const std::string& name, std::uint32_t type, std::size_t size_bytes,
                  std::size_t entry_bytes) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names_.size());
    header.sh_type = type;
    header.sh_offset = bytes_.size();
    header.sh_size = size_bytes;
    header.sh_entsize = entry_bytes;
    headers_.push_back(header);
    names_ += name + '\0';
  }

  void add_section(const std::string& name, std::uint32_t type, const void* data, std::size_t size_bytes,
                   std::size_t entry_bytes) {
    add_header(name, type, size_bytes, entry_bytes);
    append(data, size_bytes);
  }

  void write_file_header() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_CORE;
    header.e_machine = cuda_machine;
    header.e_version = EV_CURRENT;
    header.e_shoff = bytes_.size();
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(headers_.size() - 1);
    std::memcpy(bytes_.data(), &header, sizeof(header));
  }

  std::vector<std::byte> bytes_;
  std::vector<Elf64_Shdr> headers_;
  std::string names_;
};

std::vector<SmEntry> sm_entries(const SmException& exception) {
  std::vector<SmEntry> sms(core_dump_sms);
  for (std::uint32_t id = 0; id < core_dump_sms; ++id) sms[id].id = id;
  if (exception.number == 0) return sms;
  sms[0].exception = exception.number;
  sms[0].error_pc_valid = 1;
  sms[0].error_pc = exception.program_counter;
  return sms;
}

std::vector<GridEntry> grid_entries(const std::vector<DumpedKernel>& kernels) {
  std::vector<GridEntry> grids;
  for (const DumpedKernel& kernel : kernels) {
    GridEntry grid{};
    grid.id = grids.size() + 1;
    grid.context_id = 1;
    const std::uint32_t sizes[] = {kernel.grid.x, kernel.grid.y, kernel.grid.z};
    const std::uint32_t block[] = {kernel.block.x, kernel.block.y, kernel.block.z};
    std::ranges::copy(sizes, grid.grid);
    std::ranges::copy(block, grid.block);
    grids.push_back(grid);
  }
  return grids;
}

std::uint32_t lanes_of(const DumpedKernel& kernel) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{kernel.block.x} * kernel.block.y * kernel.block.z, 32));
}

WarpEntry warp_entry(const SmException& exception, const DumpedKernel& kernel) {
  WarpEntry warp{};
  warp.valid_lanes = warp.active_lanes = 0xffffffffu >> (32 - lanes_of(kernel));
  if (!kernel.halted) return warp;
  const bool is_exception = exception.number != 0;
  warp.is_broken = is_exception ? 0 : 1;
  warp.error_pc_valid = is_exception ? 1 : 0;
  warp.error_pc = is_exception ? exception.program_counter : 0;
  return warp;
}

std::vector<LaneEntry> lane_entries(const SmException& exception, const DumpedKernel& kernel) {
  std::vector<LaneEntry> lanes(lanes_of(kernel));
  for (std::uint32_t index = 0; index < lanes.size(); ++index) {
    LaneEntry& lane = lanes[index];
    lane.virtual_pc = lane.physical_pc = kernel.program_counter;
    lane.lane = index;
    lane.thread[0] = index % kernel.block.x;
    lane.thread[1] = index / kernel.block.x % kernel.block.y;
    lane.thread[2] = index / kernel.block.x / kernel.block.y;
    lane.call_depth = 1;
    if (kernel.halted) lane.exception = exception.number;
  }
  return lanes;
}

}  // namespace

std::vector<std::byte> core_dump_file(const SmException& exception,
                                      const std::vector<DumpedKernel>& kernels) {
  CoreFile file;
  file.add(".cudbg.devtbl", Table::Devices, std::vector<DeviceEntry>(1));
  file.add(".cudbg.ctxtbl.dev0", Table::Contexts, std::vector<ContextEntry>{{1, {}}});
  file.add(".cudbg.gridtbl.dev0", Table::Grids, grid_entries(kernels));
  file.add(".cudbg.smtbl.dev0", Table::Sms, sm_entries(exception));
  if (kernels.empty()) return file.finish();
  std::vector<BlockEntry> blocks;
  for (std::size_t index = 0; index < kernels.size(); ++index) blocks.push_back({index + 1, {}});
  file.add(".cudbg.ctatbl.dev0.sm0", Table::Blocks, blocks);
  for (std::size_t index = 0; index < kernels.size(); ++index) {
    const std::string place = fmt::format(".dev0.sm0.cta{}", index);
    file.add(".cudbg.wptbl" + place, Table::Warps,
             std::vector<WarpEntry>{warp_entry(exception, kernels[index])});
    file.add(".cudbg.lntbl" + place + ".wp0", Table::Lanes, lane_entries(exception, kernels[index]));
  }
  for (std::uint32_t sm = 1; sm < core_dump_sms; ++sm)
    file.add(fmt::format(".cudbg.ctatbl.dev0.sm{}", sm), Table::Blocks, std::vector<BlockEntry>());
  return file.finish();
}

}  // namespace firebreak::softgpu::driver
