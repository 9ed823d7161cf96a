// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.h: every file that calls us includes it.
@@
@@
 #include "uvm_range_tree.h"
+#include "uvm_fault_isolation.h"
