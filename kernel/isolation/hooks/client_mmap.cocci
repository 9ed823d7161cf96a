// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: a process maps something through a VA space's descriptor, and is entitled to.
// It relies on this: behind the check that the mm may map at all.
@@
symbol va_space;
@@
 uvm_mmap(...)
 {
 <...
 uvm_record_lock_mmap_lock_write(...);
+uvm_fault_isolation_client_mmap(va_space);
 ...>
 }
