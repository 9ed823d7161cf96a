// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_test.c: what the new test is asked for with.
// It relies on this: tests are behind its check of uvm_enable_builtin_tests, and their numbers stay below ours.
@@
@@
 #include "uvm_test_ioctl.h"
+#include "uvm_fault_isolation_test_ioctl.h"
