// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The built-in tests, behind UVM's test ioctl: who may be contained, the sinks and their bounds, what mode report foresees of them, what a
// failed one leaves, and the formats that are relied on. The sinks are those of a client that nobody else knows, in the caller's tables.
#include "uvm_fault_isolation_internal.h"
#include "uvm_fault_isolation_test_ioctl.h"
#include "uvm_push_macros.h"
#include "uvm_rm_mem.h"
#include "uvm_test.h"
#include "hwref/hopper/gh100/dev_mmu.h"

// No range of the caller's lies from here on.
#define UVM_FAULT_ISOLATION_TEST_START (64 * UVM_SIZE_1TB)
#define UVM_FAULT_ISOLATION_TEST_STRIDE (4 * UVM_SIZE_1GB)

// More than a storm's steps are.
#define UVM_FAULT_ISOLATION_TEST_STEPS 14

// Since Hopper addresses have more bits, and the entries another format.
#define UVM_FAULT_ISOLATION_TEST_BITS_BEFORE_HOPPER 49

typedef struct
{
    uvm_gpu_va_space_t *gpu_va_space;
    uvm_fault_isolation_client_t *client;
    uvm_rm_mem_t *copy;
} isolation_test_t;

static uvm_fault_buffer_entry_t fault_at(uvm_gpu_va_space_t *gpu_va_space, NvU64 address, bool is_replayable)
{
    uvm_fault_buffer_entry_t fault_entry = {
        .fault_address = address,
        .va_space = gpu_va_space->va_space,
        .fault_type = UVM_FAULT_TYPE_INVALID_PDE,
        .fault_access_type = UVM_FAULT_ACCESS_TYPE_WRITE,
        .is_replayable = is_replayable,
        .is_virtual = true,
        .is_fatal = true,
    };

    return fault_entry;
}

// Faults of copy engines are never of one batch, so each is one more. Those of SMs are here, as no batch comes between.
static uvm_fault_isolation_outcome_t sink_at(isolation_test_t *test, uvm_fault_isolation_book_t *book, NvU64 address, bool is_replayable)
{
    uvm_fault_buffer_entry_t fault_entry = fault_at(test->gpu_va_space, address, is_replayable);

    return uvm_fault_isolation_sink_no_range(book, test->gpu_va_space, &fault_entry);
}

static bool has_sink(isolation_test_t *test, uvm_fault_isolation_book_t *book, NvU64 address)
{
    bool found;

    uvm_mutex_lock(&book->client->lock);
    found = uvm_fault_isolation_has_sink(book, test->gpu_va_space, address);
    uvm_mutex_unlock(&book->client->lock);

    return found;
}

static void start_anew(isolation_test_t *test)
{
    uvm_fault_isolation_client_t *client = test->client;

    uvm_fault_isolation_forget_sinks(&client->made, test->gpu_va_space);
    uvm_fault_isolation_forget_sinks(&client->foreseen, test->gpu_va_space);
    memset(&client->made, 0, sizeof(client->made));
    memset(&client->foreseen, 0, sizeof(client->foreseen));
    uvm_fault_isolation_book_init(&client->made, client, false);
    uvm_fault_isolation_book_init(&client->foreseen, client, true);
}

// Of the entries of 64 KiB or 2 MiB from the address on, how many have this value.
static NV_STATUS count_entries(isolation_test_t *test, NvU64 address, NvU64 size, NvU32 page_size, NvU64 value, NvU32 *count)
{
    const NvU64 *found = uvm_rm_mem_get_cpu_va(test->copy);
    uvm_page_table_range_vec_t ptes;
    NV_STATUS status;
    NvU32 i;

    *count = 0;
    status = uvm_page_table_range_vec_init(&test->gpu_va_space->page_tables,
                                           address,
                                           size,
                                           page_size,
                                           UVM_PMM_ALLOC_FLAGS_EVICT,
                                           &ptes);
    if (status != NV_OK)
        return status;

    for (i = 0; i < ptes.ranges[0].entry_count && status == NV_OK; ++i) {
        status = uvm_fault_isolation_read_entry(test->gpu_va_space->gpu,
                                                ptes.ranges[0].table,
                                                ptes.ranges[0].start_index + i,
                                                test->copy);
        *count += *found == value;
    }

    uvm_page_table_range_vec_deinit(&ptes);

    return status;
}

static NV_STATUS test_formats(isolation_test_t *test)
{
    uvm_page_tree_t *tree = &test->gpu_va_space->page_tables;
    NvU64 sparse = tree->hal->make_sparse_pte();

    TEST_CHECK_RET(sparse != 0);
    TEST_CHECK_RET(sparse != uvm_fault_isolation_unmapped_pte(tree));

    // The same bits in a directory: what isolation writes beside a sink
    if (tree->hal->num_va_bits() > UVM_FAULT_ISOLATION_TEST_BITS_BEFORE_HOPPER) {
        TEST_CHECK_RET(READ_HWVALUE(sparse, _MMU_VER3, PDE, IS_PTE) == NV_MMU_VER3_PDE_IS_PTE_FALSE);
        TEST_CHECK_RET(READ_HWVALUE(sparse, _MMU_VER3, PDE, APERTURE) == NV_MMU_VER3_PDE_APERTURE_INVALID);
        TEST_CHECK_RET(READ_HWVALUE(sparse, _MMU_VER3, PDE, PCF) == NV_MMU_VER3_PDE_PCF_SPARSE_ATS_ALLOWED);
    }
    else {
        TEST_CHECK_RET(READ_HWVALUE(sparse, _MMU_VER2, PDE, IS_PTE) == NV_MMU_VER2_PDE_IS_PTE_FALSE);
        TEST_CHECK_RET(READ_HWVALUE(sparse, _MMU_VER2, PDE, APERTURE) == NV_MMU_VER2_PDE_APERTURE_INVALID);
        TEST_CHECK_RET(READ_HWVALUE(sparse, _MMU_VER2, PDE, VOL) == NV_MMU_VER2_PDE_VOL_TRUE);
    }

    return NV_OK;
}

// Who asks holds the VA space's lock in write mode, so nobody sees what is changed for a moment here.
static NV_STATUS test_policy(uvm_gpu_va_space_t *gpu_va_space, bool shares_group)
{
    uvm_fault_isolation_client_t *client = gpu_va_space->va_space->fault_isolation;
    uvm_fault_buffer_entry_t good = fault_at(gpu_va_space, UVM_FAULT_ISOLATION_TEST_START, true);
    uvm_fault_buffer_entry_t physical = good, fatal = good, outside = good;
    uvm_fault_isolation_outcome_t with_ats, with_mig, confidential, doubtful, unknown, condemned;

    physical.is_virtual = false;
    fatal.fault_type = UVM_FAULT_TYPE_FATAL;
    outside.fault_address = 1ULL << 62;

    TEST_CHECK_RET(client && !client->is_condemned && !client->is_doubtful);
    TEST_CHECK_RET(uvm_fault_isolation_decide(gpu_va_space, &good) ==
                   (shares_group ? UVM_FAULT_ISOLATION_OUTCOME_CONTAINED : UVM_FAULT_ISOLATION_OUTCOME_ALONE));
    TEST_CHECK_RET(uvm_fault_isolation_decide(gpu_va_space, &physical) == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
    TEST_CHECK_RET(uvm_fault_isolation_decide(gpu_va_space, &fatal) == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
    TEST_CHECK_RET(uvm_fault_isolation_decide(gpu_va_space, &outside) == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);

    gpu_va_space->ats.enabled = true;
    with_ats = uvm_fault_isolation_decide(gpu_va_space, &good);
    gpu_va_space->ats.enabled = false;

    gpu_va_space->gpu->parent->smc.enabled = true;
    with_mig = uvm_fault_isolation_decide(gpu_va_space, &good);
    gpu_va_space->gpu->parent->smc.enabled = false;

    g_uvm_global.conf_computing_enabled = true;
    confidential = uvm_fault_isolation_decide(gpu_va_space, &good);
    g_uvm_global.conf_computing_enabled = false;

    client->is_doubtful = true;
    doubtful = uvm_fault_isolation_decide(gpu_va_space, &good);
    client->is_doubtful = false;

    client->is_condemned = true;
    condemned = uvm_fault_isolation_decide(gpu_va_space, &good);
    client->is_condemned = false;

    gpu_va_space->va_space->fault_isolation = NULL;
    unknown = uvm_fault_isolation_decide(gpu_va_space, &good);
    gpu_va_space->va_space->fault_isolation = client;

    TEST_CHECK_RET(with_ats == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
    TEST_CHECK_RET(with_mig == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
    TEST_CHECK_RET(confidential == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
    TEST_CHECK_RET(doubtful == UVM_FAULT_ISOLATION_OUTCOME_DOUBT);
    TEST_CHECK_RET(unknown == UVM_FAULT_ISOLATION_OUTCOME_DOUBT);
    TEST_CHECK_RET(condemned == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);

    return NV_OK;
}

// Under the root's last entry UVM has no table, so what is there may be RM's.
static NV_STATUS test_root(isolation_test_t *test)
{
    const uvm_page_tree_t *tree = &test->gpu_va_space->page_tables;
    NvU32 bits = tree->hal->num_va_bits();
    NvU64 address = (1ULL << bits) - UVM_PAGE_SIZE_64K;

    TEST_CHECK_RET(sink_at(test, &test->client->made, address, true) == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
    TEST_CHECK_RET(sink_at(test, &test->client->foreseen, address, true) == UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);

    return NV_OK;
}

static NV_STATUS test_repeats(isolation_test_t *test)
{
    uvm_fault_isolation_book_t *made = &test->client->made;
    NvU64 sparse = test->gpu_va_space->page_tables.hal->make_sparse_pte();
    NvU32 count, i;

    TEST_CHECK_RET(sink_at(test, made, UVM_FAULT_ISOLATION_TEST_START, true) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);
    TEST_NV_CHECK_RET(count_entries(test, UVM_FAULT_ISOLATION_TEST_START, 2 * UVM_PAGE_SIZE_64K, UVM_PAGE_SIZE_64K, sparse, &count));
    TEST_CHECK_RET(count == 1);

    // Of the same batch: no repetition, and no second sink
    TEST_CHECK_RET(sink_at(test, made, UVM_FAULT_ISOLATION_TEST_START, true) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);
    TEST_CHECK_RET(made->num_sinks_made == 1);

    for (i = 0; i < uvm_fault_isolation_max_repeats(); ++i)
        TEST_CHECK_RET(sink_at(test, made, UVM_FAULT_ISOLATION_TEST_START, false) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);

    TEST_CHECK_RET(!made->is_excessive);
    TEST_CHECK_RET(sink_at(test, made, UVM_FAULT_ISOLATION_TEST_START, false) == UVM_FAULT_ISOLATION_OUTCOME_HELD);
    TEST_CHECK_RET(made->is_excessive);

    return NV_OK;
}

// What mode report would say of a storm is what becomes of it, and nothing of it is in a table.
static NV_STATUS test_storm(isolation_test_t *test)
{
    uvm_fault_isolation_book_t *made = &test->client->made;
    uvm_fault_isolation_book_t *foreseen = &test->client->foreseen;
    NvU64 sparse = test->gpu_va_space->page_tables.hal->make_sparse_pte();
    NvU32 count, i;

    for (i = 0; i < UVM_FAULT_ISOLATION_TEST_STEPS; ++i) {
        NvU64 address = UVM_FAULT_ISOLATION_TEST_START + i * UVM_FAULT_ISOLATION_TEST_STRIDE;
        NvU32 page_size = i < 4 ? UVM_PAGE_SIZE_64K : UVM_PAGE_SIZE_2M;

        TEST_CHECK_RET(sink_at(test, foreseen, address, false) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);
        TEST_NV_CHECK_RET(count_entries(test, address, page_size, page_size, sparse, &count));
        TEST_CHECK_RET(count == 0);

        TEST_CHECK_RET(sink_at(test, made, address, false) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);
        TEST_NV_CHECK_RET(count_entries(test, address, page_size, page_size, sparse, &count));
        TEST_CHECK_RET(count == 1);

        TEST_CHECK_RET(foreseen->num_sinks_made == made->num_sinks_made);
        TEST_CHECK_RET(foreseen->table_bytes == made->table_bytes);
        TEST_CHECK_RET(has_sink(test, made, address + UVM_PAGE_SIZE_64K) == (i >= 4));
        TEST_CHECK_RET(has_sink(test, made, address + UVM_PAGE_SIZE_2M) == (i >= 8));

        // The entries beside it begin after the twelfth
        TEST_CHECK_RET(uvm_fault_isolation_sink_overlaps(test->client,
                                                         address + 2 * UVM_PAGE_SIZE_512M,
                                                         address + 2 * UVM_PAGE_SIZE_512M) == (i >= 12));
    }

    return NV_OK;
}

// As if their tables took nearly all that they may. The oldest goes for the fourth, or where all are of one batch the fourth waits.
static NV_STATUS test_bound(isolation_test_t *test, uvm_fault_isolation_book_t *book, bool is_one_batch)
{
    NvU64 start = UVM_FAULT_ISOLATION_TEST_START;
    NvU64 added;
    uvm_fault_isolation_outcome_t outcome;

    TEST_CHECK_RET(sink_at(test, book, start, is_one_batch) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);
    TEST_CHECK_RET(sink_at(test, book, start + UVM_FAULT_ISOLATION_TEST_STRIDE, is_one_batch) == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED);

    added = uvm_fault_isolation_max_table_bytes() - book->table_bytes - UVM_PAGE_SIZE_4K;
    book->table_bytes += added;
    outcome = sink_at(test, book, start + 2 * UVM_FAULT_ISOLATION_TEST_STRIDE, is_one_batch);
    book->table_bytes -= added;

    TEST_CHECK_RET(outcome == (is_one_batch ? UVM_FAULT_ISOLATION_OUTCOME_HELD : UVM_FAULT_ISOLATION_OUTCOME_CONTAINED));
    TEST_CHECK_RET(has_sink(test, book, start) == is_one_batch);
    TEST_CHECK_RET(book->is_excessive);

    return NV_OK;
}

static NV_STATUS test_bounds(isolation_test_t *test)
{
    NvU32 i;

    for (i = 0; i < 2; ++i) {
        start_anew(test);
        TEST_NV_CHECK_RET(test_bound(test, &test->client->made, i == 1));
        TEST_NV_CHECK_RET(test_bound(test, &test->client->foreseen, i == 1));
        TEST_CHECK_RET(test->client->made.table_bytes == test->client->foreseen.table_bytes);
    }

    return NV_OK;
}

// What was written before the failure is in a table that somebody else keeps, and may map something with later.
static NV_STATUS test_failed_sink(isolation_test_t *test)
{
    uvm_page_tree_t *tree = &test->gpu_va_space->page_tables;
    uvm_fault_isolation_book_t *made = &test->client->made;
    uvm_page_table_range_vec_t kept;
    NvU64 start = UVM_FAULT_ISOLATION_TEST_START;
    NvU32 count_sparse = 1, count_unmapped = 0;
    uvm_fault_isolation_outcome_t outcome;
    NV_STATUS status;

    status = uvm_page_table_range_vec_init(tree, start, UVM_PAGE_SIZE_2M, UVM_PAGE_SIZE_64K, UVM_PMM_ALLOC_FLAGS_EVICT, &kept);
    TEST_NV_CHECK_RET(status);

    outcome = sink_at(test, made, start, false);
    status = count_entries(test, start, UVM_PAGE_SIZE_2M, UVM_PAGE_SIZE_64K, tree->hal->make_sparse_pte(), &count_sparse);
    if (status == NV_OK)
        status = count_entries(test,
                               start,
                               UVM_PAGE_SIZE_64K,
                               UVM_PAGE_SIZE_64K,
                               uvm_fault_isolation_unmapped_pte(tree),
                               &count_unmapped);

    uvm_page_table_range_vec_deinit(&kept);

    TEST_NV_CHECK_RET(status);
    TEST_CHECK_RET(outcome == UVM_FAULT_ISOLATION_OUTCOME_FAILED);
    TEST_CHECK_RET(count_sparse == 0);
    TEST_CHECK_RET(count_unmapped == 1);
    TEST_CHECK_RET(made->num_sinks_made == 0 && made->table_bytes == 0);
    TEST_CHECK_RET(!has_sink(test, made, start));

    return NV_OK;
}

static NV_STATUS test_sinks(isolation_test_t *test)
{
    if (uvm_fault_isolation_test_fails() == 2)
        return test_failed_sink(test);

    TEST_NV_CHECK_RET(test_formats(test));
    TEST_NV_CHECK_RET(test_root(test));
    TEST_NV_CHECK_RET(test_repeats(test));
    start_anew(test);
    TEST_NV_CHECK_RET(test_storm(test));

    return test_bounds(test);
}

// RM is not to be called with the VA space lock held, so the memory comes from before.
static NV_STATUS test_va_space(uvm_va_space_t *va_space, uvm_gpu_t *gpu, isolation_test_t *test, bool shares_group)
{
    NV_STATUS status;

    uvm_va_space_down_write(va_space);

    test->gpu_va_space = uvm_gpu_va_space_get(va_space, gpu);
    status = test->gpu_va_space ? test_policy(test->gpu_va_space, shares_group) : NV_ERR_INVALID_DEVICE;
    if (status == NV_OK) {
        start_anew(test);
        status = test_sinks(test);
        start_anew(test);
    }

    uvm_va_space_up_write(va_space);

    return status;
}

static NV_STATUS test_gpu(uvm_va_space_t *va_space, uvm_gpu_t *gpu, uvm_fault_isolation_client_t *client, bool shares_group)
{
    isolation_test_t test = {.client = client};
    NV_STATUS status = uvm_rm_mem_alloc_and_map_cpu(gpu, UVM_RM_MEM_TYPE_SYS, sizeof(NvU64), 0, &test.copy);

    if (status != NV_OK)
        return status;

    status = test_va_space(va_space, gpu, &test, shares_group);
    uvm_rm_mem_free(test.copy);

    return status;
}

NV_STATUS uvm_test_fault_isolation(UVM_TEST_FAULT_ISOLATION_PARAMS *params, struct file *filp)
{
    uvm_va_space_t *va_space = uvm_va_space_get(filp);
    uvm_fault_isolation_client_t *client;
    uvm_gpu_t *gpu = uvm_va_space_retain_gpu_by_uuid(va_space, &params->gpu_uuid);
    NV_STATUS status = NV_ERR_NO_MEMORY;

    if (!gpu)
        return NV_ERR_INVALID_DEVICE;

    client = uvm_kvmalloc_zero(sizeof(*client));
    if (client) {
        uvm_mutex_init(&client->lock, UVM_LOCK_ORDER_FAULT_ISOLATION);
        uvm_fault_isolation_book_init(&client->made, client, false);
        uvm_fault_isolation_book_init(&client->foreseen, client, true);
        status = test_gpu(va_space, gpu, client, params->shares_group);
        uvm_kvfree(client);
    }

    uvm_gpu_release(gpu);

    return status;
}
