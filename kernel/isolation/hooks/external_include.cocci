// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_map_external.c: its function is declared where ours find it.
@@
@@
 #include "uvm_map_external.h"
+#include "uvm_fault_isolation_compat.h"
