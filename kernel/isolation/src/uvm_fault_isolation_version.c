// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Whether nvidia.ko is of the version of the source that this module was built from. The build does not see nvidia.ko, so
// the kernel has no versions of its symbols to compare, and what the two tell each other may change with any version.
#include <linux/module.h>
#include "uvm_fault_isolation_internal.h"
#include "nv_uvm_interface.h"

// The module whose functions this one calls. The kernel noted it before our first instruction, and keeps it loaded.
static const struct module *rm_module(void)
{
#if defined(CONFIG_MODULE_UNLOAD)
    const struct module_use *use;

    list_for_each_entry(use, &THIS_MODULE->target_list, target_list) {
        if (within_module((unsigned long)nvUvmInterfaceSessionCreate, use->target))
            return use->target;
    }
#endif

    return NULL;
}

static bool is_same_version(void)
{
    const struct module *rm = rm_module();
    const char *version = rm ? rm->version : NULL;

    if (version && strcmp(version, NV_VERSION_STRING) == 0)
        return true;

    if (version)
        pr_err("nvidia.ko is %s, and this nvidia-uvm.ko with fault isolation is built from " NV_VERSION_STRING ": not loaded. Build it "
               "from the source of %s (SOURCE in /etc/firebreak/uvm.conf, dkms install), or take it away (dkms remove, depmod -a)\n",
               version,
               version);
    else
        pr_err("nvidia.ko does not tell its version, and this nvidia-uvm.ko with fault isolation is built from " NV_VERSION_STRING
               ": not loaded. Install NVIDIA's nvidia.ko of that version, or take this module away (dkms remove, depmod -a)\n");

    return false;
}

NV_STATUS uvm_fault_isolation_global_init(void)
{
    return is_same_version() ? uvm_global_init() : NV_ERR_LIB_RM_VERSION_MISMATCH;
}
