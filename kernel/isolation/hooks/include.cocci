// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.h: every file that calls us includes it.
// It relies on this: at the end of the structure: no other field moves.
@@
@@
 #include "uvm_range_tree.h"
+#include "uvm_fault_isolation.h"
