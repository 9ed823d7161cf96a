// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What differs between the driver branches. UVM_FAULT_ISOLATION_BRANCH comes from the build.
#ifndef __UVM_FAULT_ISOLATION_COMPAT_H__
#define __UVM_FAULT_ISOLATION_COMPAT_H__

#include "uvm_global.h"
#include "uvm_gpu.h"
#include "uvm_hal.h"
#include "uvm_hmm.h"
#include "uvm_map_external.h"
#include "uvm_user_channel.h"
#include "uvm_va_block.h"
#include "uvm_va_range.h"
#include "uvm_va_space.h"
#include "uvm_va_space_mm.h"

#if UVM_FAULT_ISOLATION_BRANCH < 580
    typedef uvm_va_range_t uvm_fault_isolation_external_t;
    typedef uvm_replayable_fault_buffer_info_t uvm_replayable_fault_buffer_t;
    #define UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu) (&(gpu)->parent->fault_buffer_info)
#else
    typedef uvm_va_range_external_t uvm_fault_isolation_external_t;
    #define UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu) (&(gpu)->parent->fault_buffer)
#endif

static inline uvm_fault_isolation_external_t *uvm_fault_isolation_external(uvm_va_range_t *va_range)
{
#if UVM_FAULT_ISOLATION_BRANCH < 580
    return va_range;
#else
    return uvm_va_range_to_external(va_range);
#endif
}

// Faults fetched together have one number, so that the second of them is no repetition of the first.
static inline NvU32 uvm_fault_isolation_batch(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    if (fault_entry->is_replayable)
        return UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu)->replayable.batch_service_context.batch_id;

    return UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu)->non_replayable.batch_id;
}

// Of a hold of the GPU's service lock for replayable faults: each bottom half counts itself first. Under that lock.
static inline NvU64 uvm_fault_isolation_hold(uvm_gpu_t *gpu)
{
    return gpu->parent->isr.replayable_faults.stats.bottom_half_count;
}

// Of the VA space in which replayable faults were serviced last, NULL where that has none. Under the GPU's service lock.
static inline const struct mm_struct *uvm_fault_isolation_service_mm(uvm_gpu_t *gpu)
{
#if UVM_FAULT_ISOLATION_BRANCH < 580
    return UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu)->replayable.block_service_context.block_context.mm;
#else
    return UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu)->replayable.block_service_context.block_context->mm;
#endif
}

static inline bool uvm_fault_isolation_sparse_supported(uvm_gpu_t *gpu)
{
#if UVM_FAULT_ISOLATION_BRANCH < 590
    return gpu->parent->sparse_mappings_supported;
#else
    return true;
#endif
}

static inline uvm_gpu_phys_address_t uvm_fault_isolation_pdb(uvm_page_tree_t *tree)
{
#if UVM_FAULT_ISOLATION_BRANCH < 580
    return uvm_page_tree_pdb(tree)->addr;
#else
    return uvm_page_tree_pdb_address(tree);
#endif
}

// With a root of its own, and no VA space.
static inline NV_STATUS uvm_fault_isolation_page_tree_init(uvm_gpu_t *gpu, uvm_page_tree_t *tree)
{
#if UVM_FAULT_ISOLATION_BRANCH < 580
    return uvm_page_tree_init(gpu, NULL, UVM_PAGE_TREE_TYPE_USER, UVM_PAGE_SIZE_64K, uvm_gpu_page_tree_init_location(gpu), tree);
#elif UVM_FAULT_ISOLATION_BRANCH < 590
    return uvm_page_tree_init(gpu, NULL, UVM_PAGE_TREE_TYPE_USER, UVM_PAGE_SIZE_64K, uvm_get_page_tree_location(gpu), tree);
#else
    return uvm_page_tree_init(gpu, NULL, UVM_PAGE_TREE_TYPE_USER, uvm_get_page_tree_location(gpu), tree);
#endif
}

static inline NvU64 uvm_fault_isolation_unmapped_pte(uvm_page_tree_t *tree)
{
#if UVM_FAULT_ISOLATION_BRANCH < 590
    return tree->hal->unmapped_pte(UVM_PAGE_SIZE_64K);
#else
    return tree->hal->unmapped_pte();
#endif
}

// In a virtual machine with SR-IOV the registers are not the guest's.
static inline bool uvm_fault_isolation_clears_by_rm(uvm_gpu_t *gpu)
{
#if UVM_FAULT_ISOLATION_BRANCH < 580
    return uvm_gpu_is_virt_mode_sriov(gpu);
#else
    return uvm_parent_gpu_is_virt_mode_sriov(gpu->parent);
#endif
}

static inline uvm_va_space_t *uvm_fault_isolation_subcontext_va_space(uvm_user_channel_t *user_channel, NvU32 index)
{
#if UVM_FAULT_ISOLATION_BRANCH < 580
    return user_channel->subctx_info->subctxs[index].va_space;
#else
    uvm_gpu_va_space_t *gpu_va_space = user_channel->subctx_info->subctxs[index].gpu_va_space;

    return gpu_va_space ? gpu_va_space->va_space : NULL;
#endif
}

// In uvm_map_external.c, which a hook makes visible.
NV_STATUS uvm_map_external_sparse_on_gpu(uvm_fault_isolation_external_t *external_range,
                                         uvm_gpu_t *mapping_gpu,
                                         NvU64 base,
                                         NvU64 length,
                                         struct list_head *deferred_free_list);

#endif // __UVM_FAULT_ISOLATION_COMPAT_H__
