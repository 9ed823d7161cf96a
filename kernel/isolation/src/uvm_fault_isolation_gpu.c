// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Before anybody relies on sparse entries of a GPU: one is written into a table of nobody's, on the way that sinks take, and read back.
#include "uvm_fault_isolation_internal.h"
#include "uvm_push.h"
#include "uvm_rm_mem.h"

// Anywhere, as no channel has this tree.
#define UVM_FAULT_ISOLATION_SELF_TEST_ADDRESS (64 * UVM_SIZE_1GB)

// By the GPU's index; written while it is added, under the global lock, before anybody can fault there.
static bool g_passed[UVM_ID_MAX_GPUS];

static NvU64 tested_pte_maker(uvm_page_table_range_vec_t *range_vec, NvU64 offset, void *caller_data)
{
    if (uvm_fault_isolation_test_self_fails())
        return 0;

    return range_vec->tree->hal->make_sparse_pte();
}

NV_STATUS uvm_fault_isolation_read_entry(uvm_gpu_t *gpu, const uvm_page_directory_t *table, NvU32 index, uvm_rm_mem_t *copy)
{
    uvm_gpu_phys_address_t entry = table->phys_alloc.addr;
    uvm_push_t push;
    NV_STATUS status;

    entry.address += (NvU64)index * sizeof(NvU64);

    status = uvm_push_begin(gpu->channel_manager, UVM_CHANNEL_TYPE_GPU_TO_CPU, &push, "Reading a sparse entry back");
    if (status != NV_OK)
        return status;

    gpu->parent->ce_hal->memcopy(&push,
                                 uvm_rm_mem_get_gpu_va(copy, gpu, uvm_channel_is_proxy(push.channel)),
                                 uvm_mmu_gpu_address(gpu, entry),
                                 sizeof(NvU64));

    return uvm_push_end_and_wait(&push);
}

static NV_STATUS write_and_read(uvm_gpu_t *gpu, uvm_page_tree_t *tree, uvm_rm_mem_t *copy)
{
    const NvU64 *found = uvm_rm_mem_get_cpu_va(copy);
    uvm_page_table_range_vec_t ptes;
    NV_STATUS status = uvm_page_table_range_vec_init(tree,
                                                     UVM_FAULT_ISOLATION_SELF_TEST_ADDRESS,
                                                     UVM_PAGE_SIZE_64K,
                                                     UVM_PAGE_SIZE_64K,
                                                     UVM_PMM_ALLOC_FLAGS_NONE,
                                                     &ptes);
    if (status != NV_OK)
        return status;

    status = uvm_page_table_range_vec_write_ptes(&ptes, UVM_MEMBAR_SYS, tested_pte_maker, NULL);
    if (status == NV_OK)
        status = uvm_fault_isolation_read_entry(gpu, ptes.ranges[0].table, ptes.ranges[0].start_index, copy);

    if (status == NV_OK && *found != tree->hal->make_sparse_pte()) {
        pr_err("A sparse entry reads back as 0x%llx, GPU %s\n", *found, uvm_gpu_name(gpu));
        status = NV_ERR_INVALID_STATE;
    }

    uvm_page_table_range_vec_deinit(&ptes);

    return status;
}

static NV_STATUS test_with_tree(uvm_gpu_t *gpu, uvm_rm_mem_t *copy)
{
    uvm_page_tree_t *tree = uvm_kvmalloc_zero(sizeof(*tree));
    NV_STATUS status;

    if (!tree)
        return NV_ERR_NO_MEMORY;

    status = uvm_fault_isolation_page_tree_init(gpu, tree);
    if (status == NV_OK) {
        status = write_and_read(gpu, tree, copy);
        uvm_page_tree_deinit(tree);
    }

    uvm_kvfree(tree);

    return status;
}

static NV_STATUS test(uvm_gpu_t *gpu)
{
    uvm_rm_mem_t *copy;
    NV_STATUS status = uvm_rm_mem_alloc_and_map_cpu(gpu, UVM_RM_MEM_TYPE_SYS, sizeof(NvU64), 0, &copy);

    if (status != NV_OK)
        return status;

    status = test_with_tree(gpu, copy);
    uvm_rm_mem_free(copy);

    return status;
}

void uvm_fault_isolation_gpu_add(uvm_gpu_t *gpu)
{
    NV_STATUS status = NV_ERR_NOT_SUPPORTED;

    if (uvm_fault_isolation_sparse_supported(gpu) && !g_uvm_global.conf_computing_enabled)
        status = test(gpu);

    g_passed[uvm_id_gpu_index(gpu->id)] = status == NV_OK;
    uvm_fault_isolation_log_new_gpu(uvm_id_gpu_index(gpu->id));
    uvm_fault_isolation_log_self_test(status == NV_OK);

    if (status != NV_OK)
        pr_err("Fault isolation contains nothing on GPU %s: %s\n", uvm_gpu_name(gpu), nvstatusToString(status));
}

bool uvm_fault_isolation_self_test_passed(uvm_gpu_t *gpu)
{
    return g_passed[uvm_id_gpu_index(gpu->id)];
}
