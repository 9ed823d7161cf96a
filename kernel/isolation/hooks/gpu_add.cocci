// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu.c: the GPU is up, and nobody can find it yet.
// It relies on this: the GPU's channels are up, the global lock is held, and the GPU is in no table in which a
// fault or a client could find it.
@@
symbol gpu;
@@
 add_gpu(...)
 {
 <...
+uvm_fault_isolation_gpu_add(gpu);
 atomic64_set(&gpu->retained_count, 1);
 ...>
 }
