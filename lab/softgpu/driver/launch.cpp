// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ground/base/units.h"
#include "softgpu/driver/core_dump_lines.h"
#include "softgpu/driver/device_attributes.h"
#include "softgpu/driver/kernel_on_gpu.h"

namespace firebreak::softgpu::driver {

namespace {

bool dimensions_allowed(const Function& function, Dimensions grid, Dimensions block) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool grid_fits = grid.x >= 1 && grid.x <= 0x7fffffffu && grid.y >= 1 && grid.y <= 65535 &&
                         grid.z >= 1 && grid.z <= 65535;
  const bool block_fits = block.x <= 1024 && block.y <= 1024 && block.z <= 64 && threads >= 1;
  return grid_fits && block_fits && threads <= function.kernel.max_threads_per_block() &&
         threads <= max_threads_per_block;
}

std::size_t parameter_bytes(const Kernel& kernel) {
  std::size_t end = 0;
  for (const KernelParameter& parameter : kernel.parameters()) {
    end = std::max<std::size_t>(end, parameter.offset_bytes + parameter.size_bytes);
  }
  return end;
}

Answer<std::vector<std::byte>> pack_pointers(const Kernel& kernel, void** kernel_params) {
  std::vector<std::byte> packed(parameter_bytes(kernel));
  std::size_t index = 0;
  for (const KernelParameter& parameter : kernel.parameters()) {
    const void* value = kernel_params[index++];
    if (value == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE);
    std::memcpy(packed.data() + parameter.offset_bytes, value, parameter.size_bytes);
  }
  return packed;
}

Answer<std::vector<std::byte>> pack_buffer(const Kernel& kernel, void** extra) {
  const void* buffer = nullptr;
  std::size_t size_bytes = 0;
  for (; reinterpret_cast<std::uintptr_t>(*extra) != CU_LAUNCH_PARAM_END_AS_INT; extra += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(extra[0]);
    if (key == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT) {
      buffer = extra[1];
    } else if (key == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT) {
      size_bytes = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return refuse(CUDA_ERROR_INVALID_VALUE);
    }
  }
  const std::size_t wanted_bytes = parameter_bytes(kernel);
  if (buffer == nullptr || size_bytes < wanted_bytes) return refuse(CUDA_ERROR_INVALID_VALUE);
  std::vector<std::byte> packed(wanted_bytes);
  std::memcpy(packed.data(), buffer, wanted_bytes);
  return packed;
}

Answer<std::vector<std::byte>> pack(const Kernel& kernel, const LaunchArguments& arguments) {
  if (arguments.kernel_params != nullptr && arguments.extra != nullptr)
    return refuse(CUDA_ERROR_INVALID_VALUE);
  if (kernel.parameters().empty()) return std::vector<std::byte>();
  if (arguments.kernel_params != nullptr) return pack_pointers(kernel, arguments.kernel_params);
  if (arguments.extra != nullptr) return pack_buffer(kernel, arguments.extra);
  return refuse(CUDA_ERROR_INVALID_VALUE);
}

/// Host addresses of what the parameters may point at, as far as the kernel may write there: whatever in them
/// is such an address.
std::vector<std::uint64_t> pointed_at(const AddressSpace& space, const std::vector<std::byte>& parameters) {
  std::vector<std::uint64_t> hosts;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t address = 0;
    std::memcpy(&address, parameters.data() + at, sizeof(address));
    const auto found = address % stored_again_bytes == 0 ? space.find(address) : std::nullopt;
    if (!found || found->access != PageAccess::ReadWrite || found->end - address < stored_again_bytes)
      continue;
    hosts.push_back(reinterpret_cast<std::uint64_t>(found->host + (address - found->begin)));
  }
  return hosts;
}

/// Marks places where a kernel that runs may store, while this lives.
class RunningStores {
 public:
  RunningStores(RmClient& client, std::vector<std::uint64_t> hosts)
      : client_(client), hosts_(std::move(hosts)) {
    client_.begin_stores(hosts_);
  }
  RunningStores(const RunningStores&) = delete;
  RunningStores& operator=(const RunningStores&) = delete;
  ~RunningStores() { client_.end_stores(hosts_); }

 private:
  RmClient& client_;
  std::vector<std::uint64_t> hosts_;
};

WorkOutcome to_work_outcome(const LaunchOutcome& outcome, const KernelOnGpu& on_gpu) {
  if (std::holds_alternative<Completed>(outcome)) return WorkDone{};
  if (const auto* fault = std::get_if<GpuFault>(&outcome)) {
    WorkFault of{cause_of(fault->kind), fault->access, fault->address, std::nullopt};
    if (!warp_has_left(*fault)) {
      of.exception = {exception_number(fault->kind), program_counter(*fault),
                      on_gpu.multiprocessor(fault->block)};
    }
    return of;
  }
  return WorkStopped{};
}

}  // namespace

Answer<Launch> prepare_launch(const Function& function, Dimensions grid, Dimensions block,
                              std::uint32_t dynamic_shared_bytes, const LaunchArguments& arguments) {
  const auto dynamic_limit_bytes = static_cast<std::uint32_t>(function.max_dynamic_shared_bytes.load());
  if (!dimensions_allowed(function, grid, block)) return refuse(CUDA_ERROR_INVALID_VALUE);
  if (dynamic_shared_bytes > dynamic_limit_bytes) return refuse(CUDA_ERROR_INVALID_VALUE);
  auto parameters = pack(function.kernel, arguments);
  if (!parameters) return refuse(parameters.error());
  Launch launch;
  launch.module = function.module;
  launch.kernel = &function.kernel;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared_bytes = dynamic_shared_bytes;
  launch.parameters = std::move(*parameters);
  return launch;
}

Work work_of_launch(Process& process, Context& context, Launch launch) {
  launch.stack_limit_bytes = context.limit(CU_LIMIT_STACK_SIZE).value_or(launch.stack_limit_bytes);
  Work work;
  work.is_lost_with_process = launch.kernel->writes_memory();
  work.run = [&process, launch = std::move(launch)] {
    const bool writes = launch.kernel->writes_memory();
    const RunningStores stores(process.rm_client(), writes ? pointed_at(process.space(), launch.parameters)
                                                           : std::vector<std::uint64_t>());
    process.note_work();
    CoreDumpMode::RunningKernel running(process.core_dump_mode(), launch);
    KernelOnGpu on_gpu(process.control());
    const LaunchOutcome outcome = run_launch(launch, process.space(), process.control(), &on_gpu);
    if (const auto* fault = std::get_if<GpuFault>(&outcome)) {
      warp_has_left(*fault) ? process.core_dump_mode().show(core_dump_lines(*fault)) : running.halt(*fault);
    }
    return to_work_outcome(outcome, on_gpu);
  };
  return work;
}

KernelNode node_of_launch(const Function& function, CUfunction handle, const Launch& launch,
                          const LaunchArguments& arguments) {
  KernelNode node;
  node.function = handle;
  node.context = function.context;
  const auto set = [](std::uint32_t(&into)[3], const Dimensions& from) {
    into[0] = from.x;
    into[1] = from.y;
    into[2] = from.z;
  };
  set(node.grid, launch.grid);
  set(node.block, launch.block);
  node.shared_bytes = launch.dynamic_shared_bytes;
  node.parameters = launch.parameters;
  for (const KernelParameter& parameter : function.kernel.parameters())
    node.offsets.push_back(parameter.offset_bytes);
  node.in_one_piece = arguments.extra != nullptr;
  return node;
}

int active_blocks(const Function& function, int block_size, std::size_t dynamic_shared_bytes) {
  const auto& kernel = function.kernel;
  if (block_size > static_cast<int>(kernel.max_threads_per_block())) return 0;
  const std::uint64_t warps = round_up(static_cast<std::uint64_t>(block_size), 32) / 32;
  const std::uint64_t registers = std::max<std::uint64_t>(kernel.register_count(), 16);
  const std::uint64_t shared_bytes =
      kernel.static_shared_bytes() + dynamic_shared_bytes + reserved_shared_bytes_per_block;
  const std::uint64_t by_threads = max_threads_per_multiprocessor / (warps * 32);
  const std::uint64_t by_registers = std::max<std::uint64_t>(
      registers_per_multiprocessor / (std::min<std::uint64_t>(registers, 255) * warps * 32), 1);
  const std::uint64_t by_shared = shared_bytes_per_multiprocessor / shared_bytes;
  return static_cast<int>(
      std::min({by_threads, by_registers, by_shared, std::uint64_t{max_blocks_per_multiprocessor}}));
}

BestBlock best_block(const Function& function, CUoccupancyB2DSize shared_bytes_of, std::size_t shared_bytes,
                     int limit) {
  const int kernel_limit = static_cast<int>(function.kernel.max_threads_per_block());
  const int largest = limit > 0 ? std::min(limit, kernel_limit) : kernel_limit;
  BestBlock best;
  for (int threads = largest - largest % 32; threads >= 32; threads -= 32) {
    const std::size_t dynamic_bytes = shared_bytes_of != nullptr ? shared_bytes_of(threads) : shared_bytes;
    const int blocks = active_blocks(function, threads, dynamic_bytes);
    if (blocks * threads > best.blocks_per_multiprocessor * best.threads) best = {threads, blocks};
  }
  return best;
}

}  // namespace firebreak::softgpu::driver
