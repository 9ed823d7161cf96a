// SPDX-License-Identifier: MIT OR GPL-2.0-only
// A copy engine's or PBDMA's fatal fault: its channel is cleared and does its access again, into the sink, instead of being killed.
#include "uvm_fault_isolation_internal.h"
#include "uvm_push.h"
#include "hwref/ampere/ga100/dev_runlist.h"

// The bit may come a little after the fault was told.
#define UVM_FAULT_ISOLATION_FAULTED_WAIT_NS (100 * 1000 * 1000ULL)

// The saved packet once more, since the service path's entry is gone by now.
static void parse(uvm_user_channel_t *user_channel, uvm_va_space_t *va_space, uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_parent_gpu_t *parent_gpu = user_channel->gpu->parent;

    memset(fault_entry, 0, sizeof(*fault_entry));
    parent_gpu->fault_buffer_hal->parse_non_replayable_entry(parent_gpu,
                                                             user_channel->kill_channel.fault_packet,
                                                             fault_entry);

    fault_entry->fault_address = UVM_PAGE_ALIGN_DOWN(fault_entry->fault_address);
    fault_entry->va_space = va_space;
    fault_entry->is_replayable = false;
    fault_entry->num_instances = 1;
    fault_entry->access_type_mask = uvm_fault_access_type_mask_bit(fault_entry->fault_access_type);
    fault_entry->fault_source.channel_id = user_channel->hw_channel_id;
    INIT_LIST_HEAD(&fault_entry->merged_instances_list);
}

static NV_STATUS clear_with_method(uvm_user_channel_t *user_channel, const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_gpu_t *gpu = user_channel->gpu;
    uvm_push_t push;
    NV_STATUS status = uvm_push_begin(gpu->channel_manager,
                                      UVM_CHANNEL_TYPE_MEMOPS,
                                      &push,
                                      "Clearing a contained fault at 0x%llx",
                                      fault_entry->fault_address);
    if (status != NV_OK)
        return status;

    if (uvm_fault_isolation_clears_by_rm(gpu))
        gpu->parent->host_hal->clear_faulted_channel_sw_method(&push, user_channel, fault_entry);
    else
        gpu->parent->host_hal->clear_faulted_channel_method(&push, user_channel, fault_entry);

    return uvm_push_end_and_wait(&push);
}

static bool is_of_host(const uvm_fault_buffer_entry_t *fault_entry)
{
    return fault_entry->fault_source.mmu_engine_type == UVM_MMU_ENGINE_TYPE_HOST;
}

static bool is_faulted(uvm_user_channel_t *user_channel, const uvm_fault_buffer_entry_t *fault_entry)
{
    NvU32 mask = is_of_host(fault_entry) ? HWCONST(_CHRAM, CHANNEL, PBDMA_FAULTED, TRUE) : HWCONST(_CHRAM, CHANNEL, ENG_FAULTED, TRUE);

    return UVM_GPU_READ_ONCE(*user_channel->chram_channel_register) & mask;
}

// A channel that was reset or cleared meanwhile is not faulted any more, and the HAL would wait for ever for the bit.
static bool comes_to_be_faulted(uvm_user_channel_t *user_channel, const uvm_fault_buffer_entry_t *fault_entry)
{
    NvU64 start_ns = NV_GETTIME();

    while (!is_faulted(user_channel, fault_entry)) {
        if (NV_GETTIME() - start_ns > UVM_FAULT_ISOLATION_FAULTED_WAIT_NS)
            return false;

        cond_resched();
    }

    return true;
}

// What the channel's other engine faulted on while this fault was dealt with: UVM drops the packet of a channel that is scheduled, and the
// bit is all that tells of it. It is cleared too, and that access faults once more. Before Ampere nobody can read the bit.
static bool has_second_fault(uvm_user_channel_t *user_channel,
                             const uvm_fault_buffer_entry_t *fault_entry,
                             uvm_fault_buffer_entry_t *second)
{
    *second = *fault_entry;
    second->fault_source.mmu_engine_type = is_of_host(fault_entry) ? UVM_MMU_ENGINE_TYPE_CE : UVM_MMU_ENGINE_TYPE_HOST;

    return is_faulted(user_channel, second);
}

static void clear_with_register(uvm_user_channel_t *user_channel, const uvm_fault_buffer_entry_t *fault_entry)
{
    const uvm_host_hal_t *host = user_channel->gpu->parent->host_hal;
    uvm_fault_buffer_entry_t second;
    bool is_first_faulted = comes_to_be_faulted(user_channel, fault_entry);
    bool is_second_faulted = has_second_fault(user_channel, fault_entry, &second);

    if (is_first_faulted)
        host->clear_faulted_channel_register(user_channel, fault_entry);

    if (is_second_faulted)
        host->clear_faulted_channel_register(user_channel, &second);
}

static NV_STATUS clear(uvm_user_channel_t *user_channel, const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_gpu_t *gpu = user_channel->gpu;

    if (uvm_fault_isolation_test_fails() == 3)
        return NV_ERR_NO_MEMORY;

    if (gpu->parent->has_clear_faulted_channel_method || uvm_fault_isolation_clears_by_rm(gpu))
        return clear_with_method(user_channel, fault_entry);

    clear_with_register(user_channel, fault_entry);

    return NV_OK;
}

bool uvm_fault_isolation_contain_channel(uvm_user_channel_t *user_channel)
{
    uvm_va_space_t *va_space = user_channel->kill_channel.va_space;
    uvm_fault_buffer_entry_t fault_entry;

    if (!uvm_fault_isolation_looks_at(va_space))
        return false;

    parse(user_channel, va_space, &fault_entry);
    if (!uvm_fault_isolation_contain(user_channel->gpu, &fault_entry))
        return false;

    // The channel's next fault, which the clear makes possible, is to come here again
    WRITE_ONCE(user_channel->kill_channel.scheduled, false);

    if (clear(user_channel, &fault_entry) == NV_OK)
        return true;

    WRITE_ONCE(user_channel->kill_channel.scheduled, true);

    return false;
}
