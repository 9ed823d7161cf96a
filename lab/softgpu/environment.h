// SPDX-License-Identifier: Apache-2.0
/// The environment variables that the software GPU reads. It reads them once a process, at cuInit (driver) or
/// at start (MPS stand-in, devices).
#pragma once

namespace firebreak::softgpu::environment {

/// Folder of the state that all processes of one software GPU share; default /tmp/firebreak-softgpu-UID.
inline constexpr const char* directory = "FIREBREAK_SOFTGPU_DIR";
/// How many times faster than measured on hardware everything is delayed: 10 is ten times faster; default 1.
inline constexpr const char* speed = "FIREBREAK_SOFTGPU_SPEED";
/// Device memory in MiB; default 8192. Every process of one software GPU should see the same value.
inline constexpr const char* memory_mib = "FIREBREAK_SOFTGPU_MEMORY_MIB";
/// How many software GPUs the machine has; default 1, at most 8. A process computes on the one that
/// CUDA_VISIBLE_DEVICES names by its UUID, or how that begins, and on the first where it names none of them.
inline constexpr const char* count = "FIREBREAK_SOFTGPU_COUNT";
inline constexpr const char* visible_devices = "CUDA_VISIBLE_DEVICES";
/// How many milliseconds the GPU works on for a process that has died with a kernel under way, or "endless";
/// default 100. Nobody runs that kernel then: only its end is played.
inline constexpr const char* orphaned_work_ms = "FIREBREAK_SOFTGPU_ORPHANED_WORK_MS";
/// How many milliseconds kernels stand still that have a block on a multiprocessor which an exception has
/// halted, where the GPU takes no turn for another domain meanwhile, or "endless"; default 4000 (measured on
/// an H100), divided by the speed.
inline constexpr const char* halt_ms = "FIREBREAK_SOFTGPU_HALT_MS";
/// 0: an MPS client that does not dump after another's trap. It answers its server so at once, and its
/// kernels stand still until the reset (H200, docs/how/parking.md).
inline constexpr const char* dumps_after_traps = "FIREBREAK_SOFTGPU_DUMPS_AFTER_TRAPS";
/// 1: plays a kernel whose UVM serves the GPU in a managed range only where the CPU might write as well, as
/// UVM's source allows where the kernel knows device-private memory. Guard ranges is of no use there.
inline constexpr const char* uvm_asks_cpu = "FIREBREAK_SOFTGPU_UVM_ASKS_CPU";
/// 1: plays a driver of which a process can have one instance alone, whatever is done for a second one.
inline constexpr const char* one_instance = "FIREBREAK_SOFTGPU_ONE_INSTANCE";
/// 1: plays GPUs in the compute mode EXCLUSIVE_PROCESS, which NVML tells.
inline constexpr const char* is_exclusive = "FIREBREAK_SOFTGPU_IS_EXCLUSIVE";
/// NVIDIA's own: where the MPS control daemon listens; default /tmp/nvidia-mps.
inline constexpr const char* mps_pipe_directory = "CUDA_MPS_PIPE_DIRECTORY";
/// NVIDIA's own: where the MPS daemon writes control.log and server.log; default /var/log/nvidia-mps.
inline constexpr const char* mps_log_directory = "CUDA_MPS_LOG_DIRECTORY";

/// NVIDIA's own, of an MPS client: how much of the SMs, in percent, it may use.
inline constexpr const char* mps_active_thread_percentage = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
/// NVIDIA's own, of an MPS client: how much device memory it may have, "0=1G" or "0=512M".
inline constexpr const char* mps_pinned_device_mem_limit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

/// NVIDIA's own, 1: an exception of a kernel in the process's domain makes it write a core dump of its GPU.
/// With the second one 1 as well, that is told on standard error.
inline constexpr const char* core_dump_on_exception = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION";
inline constexpr const char* core_dump_progress = "CUDA_COREDUMP_SHOW_PROGRESS";
/// NVIDIA's own: the dump's file, also a FIFO; %h host, %p process, %t time; default core_%t_%h_%p.nvcudmp.
inline constexpr const char* core_dump_file = "CUDA_COREDUMP_FILE";
/// NVIDIA's own: words with commas between. Only skip_abort matters here: without it the process aborts after
/// its dump.
inline constexpr const char* core_dump_flags = "CUDA_COREDUMP_GENERATION_FLAGS";

}  // namespace firebreak::softgpu::environment
