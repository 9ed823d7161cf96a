// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_map_external.c: the fault path calls what only the ioctl could.
// It relies on this: takes the external range tree's lock, no RM call; what it unmaps goes to a list that only RM
// can free, which a worker does.
@@
typedef NV_STATUS;
identifier f = uvm_map_external_sparse_on_gpu;
@@
-static
 NV_STATUS f(...) { ... }
