// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Sinks in external ranges: UVM's own sparse mappings. The memory behind a mapping may be another process's, so it is never made
// writable; the faulting client loses its view of it and nothing else changes.
#include "uvm_fault_isolation_internal.h"

// From these counts on a client's next sink is larger: 2 MiB, then 16 MiB. UVM's sparse mappings have entries of 64 KiB, and a table of them
// for each 2 MiB, which takes two pushes under the service lock. Only a mapping that has pages of 512 MiB needs as much.
#define UVM_FAULT_ISOLATION_EXTERNAL_LARGEST (UVM_SIZE_1MB * 16)
#define UVM_FAULT_ISOLATION_EXTERNAL_2M_AFTER 4
#define UVM_FAULT_ISOLATION_EXTERNAL_16M_AFTER 16

// While the machine sleeps RM must not be called.
#define UVM_FAULT_ISOLATION_FREE_AGAIN_MS 100

// What an unmapped mapping leaves behind can only be freed by RM, and not from here.
typedef struct
{
    struct list_head list_node;
    uvm_gpu_t *gpu;
    struct list_head objects;
} deferred_free_t;

// Under g_uvm_global.pm.lock.
static void free_deferred(uvm_fault_isolation_client_t *client)
{
    deferred_free_t *deferred, *next;
    LIST_HEAD(all);

    uvm_mutex_lock(&client->lock);
    list_splice_init(&client->deferred_frees, &all);
    uvm_mutex_unlock(&client->lock);

    list_for_each_entry_safe(deferred, next, &all, list_node) {
        uvm_deferred_free_object_list(&deferred->objects);
        uvm_gpu_release(deferred->gpu);
        uvm_kvfree(deferred);
    }
}

// Who destroys the VA space has that lock and waits for this work, so it must not wait for the lock in turn.
static void free_deferred_awake(uvm_fault_isolation_client_t *client)
{
    if (uvm_down_read_trylock(&g_uvm_global.pm.lock)) {
        free_deferred(client);
        uvm_up_read(&g_uvm_global.pm.lock);
    }
    else {
        uvm_fault_isolation_queue(&client->free_work, UVM_FAULT_ISOLATION_FREE_AGAIN_MS);
    }
}

static void free_deferred_entry(struct work_struct *work)
{
    uvm_fault_isolation_client_t *client = container_of(to_delayed_work(work), uvm_fault_isolation_client_t, free_work);

    UVM_ENTRY_VOID(free_deferred_awake(client));
}

void uvm_fault_isolation_external_client_init(uvm_fault_isolation_client_t *client)
{
    INIT_LIST_HEAD(&client->deferred_frees);
    INIT_DELAYED_WORK(&client->free_work, free_deferred_entry);
}

void uvm_fault_isolation_external_client_deinit(uvm_fault_isolation_client_t *client)
{
    cancel_delayed_work_sync(&client->free_work);
    free_deferred(client);
}

static deferred_free_t *deferred_free_create(uvm_gpu_t *gpu)
{
    deferred_free_t *deferred = uvm_kvmalloc_zero(sizeof(*deferred));

    if (!deferred)
        return NULL;

    INIT_LIST_HEAD(&deferred->objects);
    deferred->gpu = gpu;

    return deferred;
}

// Retains the GPU until the objects are gone, as the ioctl does.
static void deferred_free_submit(uvm_fault_isolation_client_t *client, deferred_free_t *deferred)
{
    uvm_assert_mutex_locked(&client->lock);

    if (list_empty(&deferred->objects)) {
        uvm_kvfree(deferred);
        return;
    }

    uvm_gpu_retain(deferred->gpu);
    list_add_tail(&deferred->list_node, &client->deferred_frees);
    uvm_fault_isolation_queue(&client->free_work, uvm_fault_isolation_test_delay_ms());
}

static bool is_sparse(uvm_fault_isolation_external_t *range, uvm_gpu_t *gpu, NvU64 address)
{
    uvm_ext_gpu_range_tree_t *range_tree = uvm_ext_gpu_range_tree(range, gpu);
    uvm_ext_gpu_map_t *map;
    bool sparse;

    uvm_mutex_lock(&range_tree->lock);
    map = uvm_ext_gpu_map_iter_first(range, gpu, address, address);
    sparse = map && !map->mem_handle;
    uvm_mutex_unlock(&range_tree->lock);

    return sparse;
}

// Cuts the region to what is 64 KiB aligned in the range. False: the address is not in what is left.
static bool clip(const uvm_va_range_t *va_range, NvU64 address, NvU64 size, NvU64 *base, NvU64 *length)
{
    NvU64 range_start = UVM_ALIGN_UP(va_range->node.start, UVM_PAGE_SIZE_64K);
    NvU64 range_end = UVM_ALIGN_DOWN(va_range->node.end + 1, UVM_PAGE_SIZE_64K);
    NvU64 start = max(range_start, UVM_ALIGN_DOWN(address, size));
    NvU64 end = min(range_end, UVM_ALIGN_DOWN(address, size) + size);

    *base = start;
    *length = end - start;

    return start <= address && address < end;
}

// Whether the range has 64 KiB there that can be sparse.
static bool may_sink(const uvm_va_range_t *va_range, NvU64 address)
{
    NvU64 base, length;

    return clip(va_range, address, UVM_PAGE_SIZE_64K, &base, &length);
}

// The entries of 64 KiB, and the directories on the way to them.
static NvU64 table_bytes(NvU64 length)
{
    return length / UVM_PAGE_SIZE_64K * sizeof(NvU64) + 4 * UVM_PAGE_SIZE_4K;
}

static const NvU64 sizes[] = {UVM_PAGE_SIZE_64K, UVM_SIZE_1MB * 2, UVM_FAULT_ISOLATION_EXTERNAL_LARGEST, UVM_SIZE_1MB * 512};

static size_t choose_size(NvU32 num_sinks)
{
    if (num_sinks >= UVM_FAULT_ISOLATION_EXTERNAL_16M_AFTER)
        return 2;

    return num_sinks >= UVM_FAULT_ISOLATION_EXTERNAL_2M_AFTER ? 1 : 0;
}

// A mapping splits only at its own page size, so a larger region may do where a smaller one does not.
static NV_STATUS map_sparse(uvm_va_range_t *va_range,
                            uvm_gpu_t *gpu,
                            NvU64 address,
                            NvU32 num_sinks,
                            struct list_head *objects,
                            NvU64 *mapped)
{
    NV_STATUS status = NV_ERR_INVALID_ADDRESS;
    NvU64 base, length;
    size_t i;

    for (i = choose_size(num_sinks); i < ARRAY_SIZE(sizes) && status == NV_ERR_INVALID_ADDRESS; ++i) {
        if (!clip(va_range, address, sizes[i], &base, &length))
            return NV_ERR_INVALID_ADDRESS;

        status = uvm_map_external_sparse_on_gpu(uvm_fault_isolation_external(va_range), gpu, base, length, objects);
        *mapped = length;
    }

    return status;
}

static NV_STATUS make(uvm_fault_isolation_book_t *book, uvm_gpu_t *gpu, uvm_va_range_t *va_range, NvU64 address, NvU64 *mapped)
{
    deferred_free_t *deferred = deferred_free_create(gpu);
    NV_STATUS status;

    if (!deferred)
        return NV_ERR_NO_MEMORY;

    status = map_sparse(va_range, gpu, address, book->num_external_sinks, &deferred->objects, mapped);
    deferred_free_submit(book->client, deferred);

    return status;
}

// The page size of a mapping there is not asked for, so the region is never larger than the client has come to.
static NV_STATUS foresee(uvm_fault_isolation_book_t *book,
                         uvm_gpu_va_space_t *gpu_va_space,
                         uvm_va_range_t *va_range,
                         NvU64 address,
                         NvU64 *mapped)
{
    NvU64 base;

    if (!clip(va_range, address, sizes[choose_size(book->num_external_sinks)], &base, mapped))
        return NV_ERR_INVALID_ADDRESS;

    return uvm_fault_isolation_foresee_external(book, gpu_va_space, base, base + *mapped - 1);
}

// A sink that is only foreseen is in no mapping, and with it no fault would have come back.
static bool is_sunk(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space, uvm_va_range_t *va_range, NvU64 address)
{
    if (book->is_foreseen)
        return uvm_fault_isolation_has_sink(book, gpu_va_space, address);

    return is_sparse(uvm_fault_isolation_external(va_range), gpu_va_space->gpu, address);
}

static uvm_fault_isolation_outcome_t sink_locked(uvm_fault_isolation_book_t *book,
                                                 uvm_gpu_va_space_t *gpu_va_space,
                                                 uvm_va_range_t *va_range,
                                                 const uvm_fault_buffer_entry_t *fault_entry)
{
    NvU32 batch = uvm_fault_isolation_batch(gpu_va_space->gpu, fault_entry);
    NvU64 address = fault_entry->fault_address;
    NvU64 mapped = 0;
    NV_STATUS status;

    uvm_assert_mutex_locked(&book->client->lock);

    if (!may_sink(va_range, address))
        return UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED;

    if (is_sunk(book, gpu_va_space, va_range, address)) {
        if (book->is_foreseen || (fault_entry->is_replayable && book->external_batch == batch))
            return UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;

        if (book->num_external_repeats++ >= uvm_fault_isolation_max_repeats()) {
            book->is_excessive = true;
            return UVM_FAULT_ISOLATION_OUTCOME_HELD;
        }
    }

    if (uvm_fault_isolation_is_full(book, table_bytes(UVM_FAULT_ISOLATION_EXTERNAL_LARGEST))) {
        book->is_excessive = true;
        return UVM_FAULT_ISOLATION_OUTCOME_HELD;
    }

    if (book->is_foreseen)
        status = foresee(book, gpu_va_space, va_range, address, &mapped);
    else
        status = make(book, gpu_va_space->gpu, va_range, address, &mapped);

    if (status != NV_OK)
        return UVM_FAULT_ISOLATION_OUTCOME_FAILED;

    ++book->num_external_sinks;
    book->table_bytes += table_bytes(mapped);
    book->external_batch = batch;

    return UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;
}

uvm_fault_isolation_outcome_t uvm_fault_isolation_sink_external(uvm_fault_isolation_book_t *book,
                                                                uvm_gpu_va_space_t *gpu_va_space,
                                                                uvm_va_range_t *va_range,
                                                                const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_fault_isolation_outcome_t outcome;

    uvm_mutex_lock(&book->client->lock);
    outcome = sink_locked(book, gpu_va_space, va_range, fault_entry);
    uvm_mutex_unlock(&book->client->lock);

    return outcome;
}
