// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_map_external.c: its function is declared where ours find it.
// It relies on this: takes the external range tree's lock, no RM call; what it unmaps goes to a list that only RM
// can free, which a worker does.
@@
@@
 #include "uvm_map_external.h"
+#include "uvm_fault_isolation_compat.h"
