// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The files in /proc that are root's alone. Root of a container owns them too, as every file of that user: without this look it would
// learn of other tenants, and hold the module with an open file.
#include <linux/capability.h>
#include <linux/seq_file.h>
#include "uvm_fault_isolation_internal.h"

int uvm_fault_isolation_may_use(void)
{
    return capable(CAP_SYS_ADMIN) ? 0 : -EPERM;
}

int uvm_fault_isolation_open(struct file *file, int (*show)(struct seq_file *, void *))
{
    int ret = uvm_fault_isolation_may_use();

    return ret ? ret : single_open(file, show, NULL);
}
