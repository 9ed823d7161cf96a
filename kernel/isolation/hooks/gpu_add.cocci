// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_gpu.c: the GPU is up, and nobody can find it yet.
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
