// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Who may be contained.
#include "uvm_fault_isolation_internal.h"

static bool channel_shares_group(uvm_user_channel_t *user_channel, uvm_va_space_t *va_space)
{
    NvU32 i;

    uvm_assert_spinlock_locked(&user_channel->gpu->parent->instance_ptr_table_lock);

    if (!user_channel->in_subctx || !user_channel->subctx_info)
        return false;

    for (i = 0; i < user_channel->tsg.max_subctx_count; ++i) {
        uvm_va_space_t *other = uvm_fault_isolation_subcontext_va_space(user_channel, i);

        if (other && other != va_space)
            return true;
    }

    return false;
}

// A client's copy engines may have groups of their own, so any channel of the VA space counts, not the faulting one.
bool uvm_fault_isolation_shares_group(uvm_va_space_t *va_space)
{
    uvm_gpu_va_space_t *gpu_va_space;
    uvm_user_channel_t *user_channel;
    bool shares = false;

    uvm_assert_rwsem_locked(&va_space->lock);

    for_each_gpu_va_space(gpu_va_space, va_space) {
        uvm_parent_gpu_t *parent_gpu = gpu_va_space->gpu->parent;

        uvm_spin_lock(&parent_gpu->instance_ptr_table_lock);

        list_for_each_entry(user_channel, &gpu_va_space->registered_channels, list_node)
            shares = shares || channel_shares_group(user_channel, va_space);

        uvm_spin_unlock(&parent_gpu->instance_ptr_table_lock);
    }

    return shares;
}

// Only where a sparse PTE takes the place of what the fault missed. With MIG UVM cancels in another way, and nobody has tried that.
static bool is_curable(uvm_gpu_va_space_t *gpu_va_space, const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_gpu_t *gpu = gpu_va_space->gpu;

    return fault_entry->is_virtual &&
           fault_entry->fault_type < UVM_FAULT_TYPE_FATAL &&
           uvm_fault_isolation_sparse_supported(gpu) &&
           uvm_fault_isolation_self_test_passed(gpu) &&
           !g_uvm_global.conf_computing_enabled &&
           !gpu->parent->smc.enabled &&
           !gpu_va_space->ats.enabled &&
           uvm_gpu_can_address(gpu, UVM_ALIGN_DOWN(fault_entry->fault_address, UVM_PAGE_SIZE_64K), UVM_PAGE_SIZE_64K);
}

// Or would be, in the mode that only foresees.
static bool is_condemned(uvm_fault_isolation_client_t *client)
{
    return READ_ONCE(client->is_condemned) ||
           (uvm_fault_isolation_mode() == UVM_FAULT_ISOLATION_MODE_REPORT && READ_ONCE(client->is_foreseen_condemned));
}

bool uvm_fault_isolation_is_for(uvm_fault_isolation_client_t *client)
{
    return !uvm_fault_isolation_opt_in() || is_condemned(client) ||
           (client->cgroup && uvm_fault_isolation_is_named(client->cgroup));
}

bool uvm_fault_isolation_looks_at(uvm_va_space_t *va_space)
{
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    return uvm_fault_isolation_mode() != UVM_FAULT_ISOLATION_MODE_OFF || (client && READ_ONCE(client->is_condemned));
}

bool uvm_fault_isolation_is_anybodys(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    return fault_entry->is_replayable && !fault_entry->is_fatal && !uvm_fault_isolation_service_mm(gpu);
}

uvm_fault_isolation_outcome_t uvm_fault_isolation_decide(uvm_gpu_va_space_t *gpu_va_space,
                                                         const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_va_space_t *va_space = gpu_va_space->va_space;
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (!is_curable(gpu_va_space, fault_entry))
        return UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED;

    if (client && !uvm_fault_isolation_is_for(client))
        return UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED;

    if (!client || client->is_doubtful || uvm_fault_isolation_is_server(client->process))
        return UVM_FAULT_ISOLATION_OUTCOME_DOUBT;

    if (uvm_fault_isolation_is_anybodys(gpu_va_space->gpu, fault_entry))
        return UVM_FAULT_ISOLATION_OUTCOME_DOUBT;

    if (!is_condemned(client) && !uvm_fault_isolation_alone() && !uvm_fault_isolation_shares_group(va_space))
        return UVM_FAULT_ISOLATION_OUTCOME_ALONE;

    if (uvm_fault_isolation_mode() == UVM_FAULT_ISOLATION_MODE_REPORT && !client->is_condemned)
        return UVM_FAULT_ISOLATION_OUTCOME_REPORTED;

    return UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;
}
