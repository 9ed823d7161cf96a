// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_test.c: one test more, behind the check that tests are enabled.
// It relies on this: tests are behind its check of uvm_enable_builtin_tests, and their numbers stay below ours.
@@
@@
 uvm_test_ioctl(...)
 {
 <...
 UVM_ROUTE_CMD_STACK_INIT_CHECK(UVM_TEST_SKIP_MIGRATE_VMA, uvm_test_skip_migrate_vma);
+UVM_ROUTE_CMD_STACK_INIT_CHECK(UVM_TEST_FAULT_ISOLATION, uvm_test_fault_isolation);
 ...>
 }
