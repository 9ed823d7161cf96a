// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: the descriptor that stands for the mm goes. What follows stops the channels and unsets the page directories.
// It relies on this: it holds a reference to the mm and to the VA space's descriptor; delaying it delays both, and
// what stops channels and unsets page directories at a process's death.
@@
identifier f =~ "^uvm_(mm_release|release_mm)$";
symbol va_space, uvm_file;
@@
 f(...)
 {
 <...
+if (uvm_fault_isolation_defer_mm_release(va_space, uvm_file))
+    return;
+
 if (uvm_va_space_mm_enabled(va_space)) {
 ...
 fput(uvm_file);
 }
 ...>
 }
