// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu_non_replayable_faults.c: RM does not know of the fault yet.
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
