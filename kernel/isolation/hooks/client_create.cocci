// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm_va_space.c: the process that initializes a VA space is the one that it belongs to.
// It relies on this: the process that initializes a VA space owns it; at the end no bottom half can have it any
// more.
@@
symbol va_space, va_space_ptr;
@@
 uvm_va_space_create(...)
 {
 <...
+uvm_fault_isolation_client_create(va_space);
 *va_space_ptr = va_space;
 ...>
 }
