// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_test.c: what the new test is asked for with.
@@
@@
 #include "uvm_test_ioctl.h"
+#include "uvm_fault_isolation_test_ioctl.h"
