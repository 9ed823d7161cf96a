// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.c: nothing of the VA space is left but its memory.
// It relies on this: the process that initializes a VA space owns it; at the end no bottom half can have it any
// more.
@@
symbol va_space;
@@
 uvm_va_space_destroy(...)
 {
 <...
+uvm_fault_isolation_client_destroy(va_space);
 uvm_kvfree(va_space->mapping);
 ...>
 }
