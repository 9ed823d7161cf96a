// SPDX-License-Identifier: MIT OR GPL-2.0-only
// uvm.c: the last descriptor of the VA space goes.
// It relies on this: the same for processes without a descriptor for the mm; the destruction is the one of
// uvm_release_deferred.
@@
symbol filp, va_space;
@@
 int uvm_release(...)
 {
 <...
 filp->private_data = NULL;
 filp->f_mapping = NULL;
+
+if (uvm_fault_isolation_defer_va_space_destroy(va_space))
+    return 0;
 ...>
 }

@@
symbol filp, va_space;
@@
 void uvm_release_va_space(...)
 {
 <...
 filp->private_data = NULL;
 filp->f_mapping = NULL;
+
+if (uvm_fault_isolation_defer_va_space_destroy(va_space))
+    return;
 ...>
 }
