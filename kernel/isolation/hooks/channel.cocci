// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_non_replayable_faults.c: RM does not know of the fault yet.
// It relies on this: this is the only place that tells RM of a fault. It runs on a queue of its own, with the
// packet saved and the VA space in read mode. Nothing was done to the channel yet, so clearing it makes it run
// again.
@@
symbol user_channel;
@@
 kill_channel_delayed(...)
 {
 <...
-if (user_channel->gpu_va_space)
+if (user_channel->gpu_va_space && !uvm_fault_isolation_contain_channel(user_channel))
 { ... }
 ...>
 }
