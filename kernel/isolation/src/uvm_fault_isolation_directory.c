// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Sparse entries of page directories: what lies beside a sink, as far as nothing is there. They take no memory, and end a storm over the
// whole address space after some faults. A page table that UVM makes later overwrites the entry that it needs.
#include "uvm_fault_isolation_internal.h"
#include "uvm_push.h"

// Of the address's bits those below what one entry of a directory at that depth covers.
static NvU32 entry_shift(uvm_page_tree_t *tree, NvU32 depth)
{
    NvU32 shift = tree->hal->num_va_bits();
    NvU32 i;

    for (i = 0; i <= depth; ++i)
        shift -= tree->hal->index_bits(i, UVM_PAGE_SIZE_2M);

    return shift;
}

// RM copies its own entries into the root that UVM gives it, and UVM does not know of them: a new table there could take the place of one.
// Below an entry for which UVM has a table, every table is UVM's. The first entry is UVM's sooner or later: all memory of a client's lies there.
bool uvm_fault_isolation_is_in_uvm_tables(uvm_gpu_va_space_t *gpu_va_space, NvU64 address)
{
    uvm_page_tree_t *tree = &gpu_va_space->page_tables;
    NvU64 index = address >> entry_shift(tree, 0) & ((1ULL << tree->hal->index_bits(0, UVM_PAGE_SIZE_2M)) - 1);
    bool has_table;

    uvm_mutex_lock(&tree->lock);
    has_table = index == 0 || tree->root->entries[index * tree->hal->entries_per_index(0)] != NULL;
    uvm_mutex_unlock(&tree->lock);

    return has_table;
}

static bool has_hmm_block(uvm_va_space_t *va_space, NvU64 start, NvU64 end)
{
    bool has_block = false;

#if UVM_IS_CONFIG_HMM()
    if (uvm_hmm_is_enabled(va_space)) {
        uvm_mutex_lock(&va_space->hmm.blocks_lock);
        has_block = uvm_range_tree_iter_first(&va_space->hmm.blocks, start, end) != NULL;
        uvm_mutex_unlock(&va_space->hmm.blocks_lock);
    }
#endif

    return has_block;
}

// Blocks of pageable memory belong to no range.
bool uvm_fault_isolation_is_free(uvm_gpu_va_space_t *gpu_va_space, NvU64 start, NvU64 end)
{
    uvm_va_space_t *va_space = gpu_va_space->va_space;

    return uvm_gpu_can_address(gpu_va_space->gpu, start, end - start + 1) &&
           !uvm_range_tree_iter_first(&va_space->va_range_tree, start, end) &&
           !has_hmm_block(va_space, start, end);
}

static void choose(uvm_gpu_va_space_t *gpu_va_space, uvm_fault_isolation_siblings_t *siblings)
{
    NvU64 size = 1ULL << siblings->entry_shift;
    size_t i;

    for (i = 0; i < siblings->num_entries; ++i) {
        NvU64 start = siblings->start + i * size;

        if (!siblings->directory->entries[i] && uvm_fault_isolation_is_free(gpu_va_space, start, start + size - 1))
            __set_bit(i, siblings->entries);
    }
}

// Runs of entries, under the tree's lock. Those that a table has come to are left alone.
static NV_STATUS write_entries(uvm_page_tree_t *tree, uvm_fault_isolation_siblings_t *siblings, NvU64 value)
{
    uvm_page_directory_t *directory = siblings->directory;
    bool is_sysmem = directory->phys_alloc.addr.aperture == UVM_APERTURE_SYS;
    uvm_gpu_t *gpu = tree->gpu;
    unsigned int first, end, i;
    uvm_push_t push;
    NV_STATUS status;

    uvm_assert_mutex_locked(&tree->lock);

    for_each_set_bit(i, siblings->entries, siblings->num_entries) {
        if (directory->entries[i])
            __clear_bit(i, siblings->entries);
    }

    if (bitmap_empty(siblings->entries, siblings->num_entries))
        return NV_OK;

    status = uvm_push_begin_acquire(gpu->channel_manager,
                                    UVM_CHANNEL_TYPE_GPU_INTERNAL,
                                    &tree->tracker,
                                    &push,
                                    "Entries beside a sink, from 0x%llx on",
                                    siblings->start);
    if (status != NV_OK)
        return status;

    for (first = find_first_bit(siblings->entries, siblings->num_entries);
         first < siblings->num_entries;
         first = find_next_bit(siblings->entries, siblings->num_entries, end)) {
        uvm_gpu_address_t address = uvm_mmu_gpu_address(gpu, directory->phys_alloc.addr);

        end = find_next_zero_bit(siblings->entries, siblings->num_entries, first);
        address.address += first * sizeof(value);
        uvm_push_set_flag(&push, UVM_PUSH_FLAG_CE_NEXT_PIPELINED);
        uvm_push_set_flag(&push, UVM_PUSH_FLAG_NEXT_MEMBAR_NONE);
        gpu->parent->ce_hal->memset_8(&push, address, value, (end - first) * sizeof(value));
    }

    uvm_hal_wfi_membar(&push, is_sysmem ? UVM_MEMBAR_SYS : UVM_MEMBAR_GPU);
    gpu->parent->host_hal->tlb_invalidate_all(&push, uvm_fault_isolation_pdb(tree), directory->depth, UVM_MEMBAR_NONE);

    return uvm_push_end_and_wait(&push);
}

static void add(uvm_gpu_va_space_t *gpu_va_space,
                uvm_page_directory_t *directory,
                NvU64 address,
                uvm_fault_isolation_siblings_t *siblings)
{
    uvm_page_tree_t *tree = &gpu_va_space->page_tables;
    NvU32 bits = tree->hal->index_bits(directory->depth, UVM_PAGE_SIZE_2M);

    if (tree->hal->entry_size(directory->depth) != sizeof(NvU64) || 1U << bits > UVM_FAULT_ISOLATION_MAX_ENTRIES)
        return;

    siblings->directory = directory;
    siblings->num_entries = 1U << bits;
    siblings->entry_shift = entry_shift(tree, directory->depth);
    siblings->start = UVM_ALIGN_DOWN(address, (NvU64)siblings->num_entries << siblings->entry_shift);

    choose(gpu_va_space, siblings);
    if (write_entries(tree, siblings, tree->hal->make_sparse_pte()) != NV_OK)
        bitmap_zero(siblings->entries, UVM_FAULT_ISOLATION_MAX_ENTRIES);
}

// The table pins the directories above it.
void uvm_fault_isolation_siblings_add(uvm_gpu_va_space_t *gpu_va_space,
                                      uvm_page_directory_t *table,
                                      NvU64 address,
                                      uvm_fault_isolation_siblings_t *siblings)
{
    uvm_page_tree_t *tree = &gpu_va_space->page_tables;
    uvm_page_directory_t *directory = table->host_parent;
    size_t i;

    uvm_mutex_lock(&tree->lock);
    for (i = 0; i < UVM_FAULT_ISOLATION_SIBLING_LEVELS && directory && directory->host_parent; ++i) {
        add(gpu_va_space, directory, address, &siblings[i]);
        directory = directory->host_parent;
    }
    uvm_mutex_unlock(&tree->lock);
}

void uvm_fault_isolation_siblings_remove(uvm_page_tree_t *tree, uvm_fault_isolation_siblings_t *siblings)
{
    size_t i;

    uvm_mutex_lock(&tree->lock);
    for (i = 0; i < UVM_FAULT_ISOLATION_SIBLING_LEVELS; ++i) {
        if (siblings[i].directory)
            (void)write_entries(tree, &siblings[i], 0);
    }
    uvm_mutex_unlock(&tree->lock);
}

bool uvm_fault_isolation_siblings_overlap(const uvm_fault_isolation_siblings_t *siblings, NvU64 start, NvU64 end)
{
    size_t level;

    for (level = 0; level < UVM_FAULT_ISOLATION_SIBLING_LEVELS; ++level) {
        const uvm_fault_isolation_siblings_t *these = &siblings[level];
        NvU64 last = these->start + ((NvU64)these->num_entries << these->entry_shift) - 1;
        NvU64 first_bit, last_bit;

        if (!these->directory || end < these->start || start > last)
            continue;

        first_bit = (max(start, these->start) - these->start) >> these->entry_shift;
        last_bit = (min(end, last) - these->start) >> these->entry_shift;
        if (find_next_bit(these->entries, last_bit + 1, first_bit) <= last_bit)
            return true;
    }

    return false;
}
