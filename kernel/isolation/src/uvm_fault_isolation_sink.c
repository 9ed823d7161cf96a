// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Sinks in page tables: regions of sparse PTEs, where reads give 0 and writes vanish. A new sink takes in the ones that it touches.
#include "uvm_fault_isolation_internal.h"

// The sinks of one GPU VA space.
typedef struct
{
    struct list_head list_node;
    uvm_gpu_va_space_t *gpu_va_space;
    uvm_range_tree_t tree;

    // In the order in which they were made
    struct list_head sinks;
} uvm_fault_isolation_space_t;

typedef struct
{
    uvm_range_tree_node_t node;
    struct list_head list_node;
    uvm_page_table_range_vec_t ptes;
    NvU64 table_bytes;
    uvm_fault_isolation_siblings_t *siblings;

    // Batches that faulted here although the PTEs were in place
    NvU32 num_repeats;
    NvU32 last_batch;
    bool last_is_replayable;
} uvm_fault_isolation_sink_t;

// A storm climbs these: the more sinks a client has had, the larger its next one. Each has one page table of its own at most, and is
// written in one go. They are free of ranges, except for the smallest.
typedef struct
{
    NvU64 size;
    NvU32 page_size;
    NvU32 sinks_before;
} uvm_fault_isolation_level_t;

static const uvm_fault_isolation_level_t levels[] = {
    {UVM_PAGE_SIZE_64K, UVM_PAGE_SIZE_64K, 0},
    {UVM_PAGE_SIZE_2M, UVM_PAGE_SIZE_2M, 4},
    {UVM_PAGE_SIZE_512M, UVM_PAGE_SIZE_2M, 8},
};

// From here on a sink takes along what is free beside it, in the directories above its table.
#define UVM_FAULT_ISOLATION_SIBLINGS_AFTER 12

// What a new sink takes in and gives up for room costs time under the service lock, so this is for both together.
#define UVM_FAULT_ISOLATION_MAX_ABSORBED 8

// At most one table on each level below the root.
#define UVM_FAULT_ISOLATION_MAX_SINK_BYTES (5 * UVM_PAGE_SIZE_4K)

void uvm_fault_isolation_book_init(uvm_fault_isolation_book_t *book, uvm_fault_isolation_client_t *client, bool is_foreseen)
{
    book->client = client;
    book->is_foreseen = is_foreseen;
    INIT_LIST_HEAD(&book->spaces);
}

static uvm_fault_isolation_sink_t *sink_of(uvm_range_tree_node_t *node)
{
    return container_of(node, uvm_fault_isolation_sink_t, node);
}

static uvm_fault_isolation_space_t *find_space(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space)
{
    uvm_fault_isolation_space_t *space;

    uvm_assert_mutex_locked(&book->client->lock);

    list_for_each_entry(space, &book->spaces, list_node) {
        if (space->gpu_va_space == gpu_va_space)
            return space;
    }

    return NULL;
}

static uvm_fault_isolation_space_t *find_or_create_space(uvm_fault_isolation_book_t *book,
                                                         uvm_gpu_va_space_t *gpu_va_space)
{
    uvm_fault_isolation_space_t *space = find_space(book, gpu_va_space);

    if (space)
        return space;

    space = uvm_kvmalloc_zero(sizeof(*space));
    if (!space)
        return NULL;

    space->gpu_va_space = gpu_va_space;
    uvm_range_tree_init(&space->tree);
    INIT_LIST_HEAD(&space->sinks);
    list_add_tail(&space->list_node, &book->spaces);

    return space;
}

static NvU64 sparse_pte_maker(uvm_page_table_range_vec_t *range_vec, NvU64 offset, void *caller_data)
{
    return range_vec->tree->hal->make_sparse_pte();
}

// Not the invalid pattern: that one would let the GPU read 4K PTEs below, which a managed block leaves as garbage under its big ones.
static NvU64 unmapped_pte_maker(uvm_page_table_range_vec_t *range_vec, NvU64 offset, void *caller_data)
{
    return range_vec->page_size == UVM_PAGE_SIZE_64K ? uvm_fault_isolation_unmapped_pte(range_vec->tree) : 0;
}

// More than the sink has to itself: directories above its tables may serve others, too.
static NvU64 table_bytes(const uvm_page_table_range_vec_t *ptes)
{
    const uvm_page_directory_t *directory;
    NvU64 bytes = 0;
    size_t i;

    for (i = 0; i < ptes->range_count; ++i) {
        for (directory = ptes->ranges[i].table; directory->host_parent; directory = directory->host_parent)
            bytes += directory->phys_alloc.size;
    }

    return bytes;
}

// What table_bytes() would be: below the root one table a level, for each table of the last.
static NvU64 foreseen_table_bytes(uvm_page_tree_t *tree, NvU64 start, NvU64 end, NvU32 page_size)
{
    NvU64 coverage = uvm_mmu_pde_coverage(tree, page_size);
    NvU64 num_tables = (UVM_ALIGN_DOWN(end, coverage) - UVM_ALIGN_DOWN(start, coverage)) / coverage + 1;
    NvU64 bytes = 0;
    NvU32 depth;

    for (depth = tree->hal->page_table_depth(page_size); depth > 0; --depth)
        bytes += tree->hal->allocation_size(depth, page_size);

    return num_tables * bytes;
}

static void count_sinks(uvm_fault_isolation_book_t *book, NvS64 change)
{
    if (book->is_foreseen)
        uvm_fault_isolation_log_foreseen_sinks(change);
    else
        uvm_fault_isolation_log_sinks(change);
}

static void count_table_bytes(uvm_fault_isolation_book_t *book, NvS64 change)
{
    book->table_bytes += change;
    if (book->is_foreseen)
        uvm_fault_isolation_log_foreseen_table_bytes(change);
    else
        uvm_fault_isolation_log_table_bytes(change);
}

static void forget_sink(uvm_fault_isolation_book_t *book, uvm_fault_isolation_space_t *space, uvm_fault_isolation_sink_t *sink)
{
    uvm_range_tree_remove(&space->tree, &sink->node);
    list_del(&sink->list_node);
    if (!book->is_foreseen)
        uvm_page_table_range_vec_deinit(&sink->ptes);

    count_table_bytes(book, -(NvS64)sink->table_bytes);
    count_sinks(book, -1);
    uvm_kvfree(sink->siblings);
    uvm_kvfree(sink);
}

// The tables may go on living under a neighbour's mappings, so nothing sparse may stay in them.
static void unwrite_entries(uvm_fault_isolation_sink_t *sink)
{
    (void)uvm_page_table_range_vec_write_ptes(&sink->ptes, UVM_MEMBAR_NONE, unmapped_pte_maker, NULL);
}

static void destroy_sink(uvm_fault_isolation_book_t *book, uvm_fault_isolation_space_t *space, uvm_fault_isolation_sink_t *sink)
{
    if (!book->is_foreseen)
        unwrite_entries(sink);

    if (sink->siblings)
        uvm_fault_isolation_siblings_remove(&space->gpu_va_space->page_tables, sink->siblings);

    forget_sink(book, space, sink);
}

static NV_STATUS write_entries(uvm_fault_isolation_space_t *space, uvm_fault_isolation_sink_t *sink, NvU32 page_size)
{
    NV_STATUS status;

    if (uvm_fault_isolation_test_fails() == 1)
        return NV_ERR_NO_MEMORY;

    status = uvm_page_table_range_vec_init(&space->gpu_va_space->page_tables,
                                           sink->node.start,
                                           uvm_range_tree_node_size(&sink->node),
                                           page_size,
                                           UVM_PMM_ALLOC_FLAGS_EVICT,
                                           &sink->ptes);
    if (status != NV_OK)
        return status;

    status = uvm_page_table_range_vec_write_ptes(&sink->ptes, UVM_MEMBAR_NONE, sparse_pte_maker, NULL);
    if (status == NV_OK && uvm_fault_isolation_test_fails() == 2)
        status = NV_ERR_NO_MEMORY;

    // Some may be written: nobody is condemned for them, so nobody may read zeros there
    if (status != NV_OK) {
        unwrite_entries(sink);
        uvm_page_table_range_vec_deinit(&sink->ptes);
    }

    return status;
}

// In a place without one.
static NV_STATUS create_sink(uvm_fault_isolation_book_t *book,
                             uvm_fault_isolation_space_t *space,
                             uvm_fault_isolation_sink_t *sink,
                             NvU32 page_size)
{
    uvm_page_tree_t *tree = &space->gpu_va_space->page_tables;
    NV_STATUS status = book->is_foreseen ? NV_OK : write_entries(space, sink, page_size);

    if (status != NV_OK)
        return status;

    status = uvm_range_tree_add(&space->tree, &sink->node);
    UVM_ASSERT(status == NV_OK);

    list_add_tail(&sink->list_node, &space->sinks);
    ++book->num_sinks_made;
    sink->table_bytes = book->is_foreseen ? foreseen_table_bytes(tree, sink->node.start, sink->node.end, page_size) :
                                            table_bytes(&sink->ptes);
    count_sinks(book, 1);
    count_table_bytes(book, sink->table_bytes);

    return NV_OK;
}

// Widens [*start, *end] by the sinks that it touches, takes over the highest repetition, and removes them.
static NvU32 absorb(uvm_fault_isolation_book_t *book,
                    uvm_fault_isolation_space_t *space,
                    NvU64 *start,
                    NvU64 *end,
                    NvU32 *num_absorbed)
{
    uvm_range_tree_node_t *node;
    NvU32 num_repeats = 0;

    while ((node = uvm_range_tree_iter_first(&space->tree, *start, *end))) {
        uvm_fault_isolation_sink_t *sink = sink_of(node);

        *start = min(*start, node->start);
        *end = max(*end, node->end);
        num_repeats = max(num_repeats, sink->num_repeats);
        destroy_sink(book, space, sink);
        ++*num_absorbed;
    }

    return num_repeats;
}

// A sink that was there when the fault happened: is it enough to replay, is it worth another try, or hopeless?
static bool is_same_batch(const uvm_fault_isolation_sink_t *sink, uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    return sink->last_is_replayable && fault_entry->is_replayable &&
           sink->last_batch == uvm_fault_isolation_batch(gpu, fault_entry);
}

bool uvm_fault_isolation_is_full(uvm_fault_isolation_book_t *book, NvU64 bytes)
{
    uvm_assert_mutex_locked(&book->client->lock);

    return book->table_bytes + bytes > uvm_fault_isolation_max_table_bytes();
}

// Gives the oldest sinks up until a new one fits. Who comes back to one of those faults once more. False: all that are left are for faults of
// this very batch, and the replay has to come first, or they are too many for one fault, as where the bound has just been lowered.
static bool make_room(uvm_fault_isolation_book_t *book,
                      uvm_fault_isolation_space_t *space,
                      const uvm_fault_buffer_entry_t *fault_entry,
                      NvU32 num_absorbed)
{
    NvU32 num_given_up = num_absorbed;

    while (uvm_fault_isolation_is_full(book, UVM_FAULT_ISOLATION_MAX_SINK_BYTES)) {
        uvm_fault_isolation_sink_t *oldest = list_first_entry_or_null(&space->sinks, uvm_fault_isolation_sink_t, list_node);

        book->is_excessive = true;
        if (!oldest || is_same_batch(oldest, space->gpu_va_space->gpu, fault_entry) ||
            num_given_up++ >= UVM_FAULT_ISOLATION_MAX_ABSORBED)
            return false;

        destroy_sink(book, space, oldest);
    }

    return true;
}

// Without memory for the list of them they are left alone.
static void add_siblings(uvm_fault_isolation_space_t *space, uvm_fault_isolation_sink_t *sink)
{
    sink->siblings = uvm_kvmalloc_zero(UVM_FAULT_ISOLATION_SIBLING_LEVELS * sizeof(*sink->siblings));
    if (sink->siblings)
        uvm_fault_isolation_siblings_add(space->gpu_va_space, sink->ptes.ranges[0].table, sink->node.start, sink->siblings);
}

static uvm_fault_isolation_outcome_t sink_region(uvm_fault_isolation_book_t *book,
                                                 uvm_fault_isolation_space_t *space,
                                                 NvU64 start,
                                                 NvU64 end,
                                                 NvU32 page_size,
                                                 const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_range_tree_node_t *node = uvm_range_tree_find(&space->tree, fault_entry->fault_address);
    uvm_gpu_t *gpu = space->gpu_va_space->gpu;
    uvm_fault_isolation_sink_t *sink;
    NvU32 num_absorbed = 0;

    if (node && sink_of(node)->num_repeats >= uvm_fault_isolation_max_repeats()) {
        book->is_excessive = true;
        return UVM_FAULT_ISOLATION_OUTCOME_HELD;
    }

    sink = uvm_kvmalloc_zero(sizeof(*sink));
    if (!sink)
        return UVM_FAULT_ISOLATION_OUTCOME_FAILED;

    sink->num_repeats = absorb(book, space, &start, &end, &num_absorbed) + (node ? 1 : 0);
    sink->last_batch = uvm_fault_isolation_batch(gpu, fault_entry);
    sink->last_is_replayable = fault_entry->is_replayable;
    sink->node.start = start;
    sink->node.end = end;

    if (!make_room(book, space, fault_entry, num_absorbed)) {
        uvm_kvfree(sink);
        return UVM_FAULT_ISOLATION_OUTCOME_HELD;
    }

    if (create_sink(book, space, sink, page_size) != NV_OK) {
        uvm_kvfree(sink);
        return UVM_FAULT_ISOLATION_OUTCOME_FAILED;
    }

    if (!book->is_foreseen && page_size == UVM_PAGE_SIZE_2M && book->num_sinks_made > UVM_FAULT_ISOLATION_SIBLINGS_AFTER)
        add_siblings(space, sink);

    return UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;
}

static bool is_cheap_to_absorb(uvm_fault_isolation_space_t *space, NvU64 start, NvU64 end)
{
    uvm_range_tree_node_t *node;
    NvU32 num_sinks = 0;

    uvm_range_tree_for_each_in(node, &space->tree, start, end) {
        if (++num_sinks > UVM_FAULT_ISOLATION_MAX_ABSORBED)
            return false;
    }

    return true;
}

static bool is_possible(uvm_fault_isolation_book_t *book,
                        uvm_fault_isolation_space_t *space,
                        const uvm_fault_isolation_level_t *level,
                        NvU64 start)
{
    NvU64 end = start + level->size - 1;

    return book->num_sinks_made >= level->sinks_before &&
           is_cheap_to_absorb(space, start, end) &&
           uvm_fault_isolation_is_free(space->gpu_va_space, start, end);
}

// The largest region that the client has come to and that is free of ranges; at least the 64 KiB around the address.
static const uvm_fault_isolation_level_t *choose_level(uvm_fault_isolation_book_t *book,
                                                       uvm_fault_isolation_space_t *space,
                                                       NvU64 address)
{
    size_t i;

    for (i = ARRAY_SIZE(levels) - 1; i > 0; --i) {
        if (is_possible(book, space, &levels[i], UVM_ALIGN_DOWN(address, levels[i].size)))
            break;
    }

    return &levels[i];
}

// Ranges that hold the context's own state must not share a 64 KiB PTE with a sink: that would hurt the whole group.
static bool has_context_range(uvm_va_space_t *va_space, NvU64 start, NvU64 end)
{
    uvm_range_tree_node_t *node;

    uvm_range_tree_for_each_in(node, &va_space->va_range_tree, start, end) {
        uvm_va_range_type_t type = container_of(node, uvm_va_range_t, node)->type;

        if (type != UVM_VA_RANGE_TYPE_MANAGED && type != UVM_VA_RANGE_TYPE_EXTERNAL)
            return true;
    }

    return false;
}

static uvm_fault_isolation_sink_t *find_sink(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space, NvU64 address)
{
    uvm_fault_isolation_space_t *space = find_space(book, gpu_va_space);
    uvm_range_tree_node_t *node = space ? uvm_range_tree_find(&space->tree, address) : NULL;

    return node ? sink_of(node) : NULL;
}

bool uvm_fault_isolation_has_sink(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space, NvU64 address)
{
    return find_sink(book, gpu_va_space, address) != NULL;
}

// True when the fault was read together with one that already has its sink. Of a sink that is only foreseen each is: with the sink it
// would not have come.
static bool is_already_sunk(uvm_fault_isolation_book_t *book,
                            uvm_gpu_va_space_t *gpu_va_space,
                            const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_fault_isolation_sink_t *sink = find_sink(book, gpu_va_space, fault_entry->fault_address);

    return sink && (book->is_foreseen || is_same_batch(sink, gpu_va_space->gpu, fault_entry));
}

// It belongs to its range, so it is not among those that go for room, and its bytes are not this file's to count.
NV_STATUS uvm_fault_isolation_foresee_external(uvm_fault_isolation_book_t *book,
                                               uvm_gpu_va_space_t *gpu_va_space,
                                               NvU64 start,
                                               NvU64 end)
{
    uvm_fault_isolation_space_t *space = find_or_create_space(book, gpu_va_space);
    uvm_fault_isolation_sink_t *sink = space ? uvm_kvmalloc_zero(sizeof(*sink)) : NULL;
    NvU32 num_absorbed = 0;
    NV_STATUS status;

    if (!sink)
        return NV_ERR_NO_MEMORY;

    INIT_LIST_HEAD(&sink->list_node);
    absorb(book, space, &start, &end, &num_absorbed);
    sink->node.start = start;
    sink->node.end = end;
    status = uvm_range_tree_add(&space->tree, &sink->node);
    UVM_ASSERT(status == NV_OK);
    count_sinks(book, 1);

    return status;
}

static uvm_fault_isolation_outcome_t sink_locked(uvm_fault_isolation_book_t *book,
                                                 uvm_gpu_va_space_t *gpu_va_space,
                                                 NvU64 start,
                                                 NvU64 end,
                                                 const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_fault_isolation_space_t *space = find_or_create_space(book, gpu_va_space);
    NvU32 page_size = UVM_PAGE_SIZE_64K;

    if (!space)
        return UVM_FAULT_ISOLATION_OUTCOME_FAILED;

    // No region given: the largest that is worth it
    if (start > end) {
        const uvm_fault_isolation_level_t *level = choose_level(book, space, fault_entry->fault_address);

        start = UVM_ALIGN_DOWN(fault_entry->fault_address, level->size);
        end = start + level->size - 1;
        page_size = level->page_size;
    }

    if (has_context_range(gpu_va_space->va_space, start, end) || !uvm_fault_isolation_is_in_uvm_tables(gpu_va_space, start))
        return UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED;

    return sink_region(book, space, start, end, page_size, fault_entry);
}

// The least that a fault's sink covers: the 64 KiB around the address, or the block.
static void smallest_region(const uvm_va_block_t *va_block, NvU64 address, NvU64 *start, NvU64 *end)
{
    *start = UVM_ALIGN_DOWN(va_block ? va_block->start : address, UVM_PAGE_SIZE_64K);
    *end = (va_block ? UVM_ALIGN_UP(va_block->end + 1, UVM_PAGE_SIZE_64K) : *start + UVM_PAGE_SIZE_64K) - 1;
}

uvm_fault_isolation_outcome_t uvm_fault_isolation_sink_no_range(uvm_fault_isolation_book_t *book,
                                                                uvm_gpu_va_space_t *gpu_va_space,
                                                                const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_fault_isolation_outcome_t outcome = UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;

    uvm_mutex_lock(&book->client->lock);
    if (!is_already_sunk(book, gpu_va_space, fault_entry))
        outcome = sink_locked(book, gpu_va_space, 1, 0, fault_entry);
    uvm_mutex_unlock(&book->client->lock);

    return outcome;
}

// Takes the block's mappings and page tables on this GPU away, so that the sink's tables are the only ones there.
static NV_STATUS unmap_block(uvm_va_block_t *va_block, uvm_gpu_va_space_t *gpu_va_space)
{
    uvm_va_block_context_t *block_context = uvm_va_block_context_alloc(NULL);

    if (!block_context)
        return NV_ERR_NO_MEMORY;

    uvm_mutex_lock(&va_block->lock);
    uvm_va_block_remove_gpu_va_space(va_block, gpu_va_space, block_context);
    uvm_mutex_unlock(&va_block->lock);

    uvm_va_block_context_free(block_context);

    return uvm_global_get_status();
}

// What the block's own service may map again later is memory of the condemned client, and nobody else's.
uvm_fault_isolation_outcome_t uvm_fault_isolation_sink_managed(uvm_fault_isolation_book_t *book,
                                                               uvm_gpu_va_space_t *gpu_va_space,
                                                               uvm_va_block_t *va_block,
                                                               const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_fault_isolation_outcome_t outcome = UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;
    NvU64 start, end;

    smallest_region(va_block, fault_entry->fault_address, &start, &end);

    uvm_mutex_lock(&book->client->lock);
    if (!is_already_sunk(book, gpu_va_space, fault_entry)) {
        if (va_block && !book->is_foreseen && unmap_block(va_block, gpu_va_space) != NV_OK)
            outcome = UVM_FAULT_ISOLATION_OUTCOME_FAILED;
        else
            outcome = sink_locked(book, gpu_va_space, start, end, fault_entry);
    }
    uvm_mutex_unlock(&book->client->lock);

    return outcome;
}

static bool space_overlaps(uvm_fault_isolation_space_t *space, NvU64 start, NvU64 end)
{
    uvm_fault_isolation_sink_t *sink;

    if (uvm_range_tree_iter_first(&space->tree, start, end))
        return true;

    list_for_each_entry(sink, &space->sinks, list_node) {
        if (sink->siblings && uvm_fault_isolation_siblings_overlap(sink->siblings, start, end))
            return true;
    }

    return false;
}

bool uvm_fault_isolation_sink_overlaps(uvm_fault_isolation_client_t *client, NvU64 start, NvU64 end)
{
    uvm_fault_isolation_space_t *space;
    bool overlaps = false;

    uvm_mutex_lock(&client->lock);
    list_for_each_entry(space, &client->made.spaces, list_node)
        overlaps = overlaps || space_overlaps(space, start, end);
    uvm_mutex_unlock(&client->lock);

    return overlaps;
}

void uvm_fault_isolation_forget_sinks(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space)
{
    uvm_fault_isolation_space_t *space;
    uvm_range_tree_node_t *node, *next;

    uvm_mutex_lock(&book->client->lock);

    space = find_space(book, gpu_va_space);
    if (space) {
        uvm_range_tree_for_each_safe(node, next, &space->tree)
            forget_sink(book, space, sink_of(node));

        list_del(&space->list_node);
        uvm_kvfree(space);
    }

    uvm_mutex_unlock(&book->client->lock);
}

// The GPU does not walk these tables any more, and all of them go.
void uvm_fault_isolation_remove_sinks(uvm_gpu_va_space_t *gpu_va_space)
{
    uvm_fault_isolation_client_t *client = gpu_va_space->va_space->fault_isolation;

    if (!client)
        return;

    uvm_fault_isolation_forget_sinks(&client->made, gpu_va_space);
    uvm_fault_isolation_forget_sinks(&client->foreseen, gpu_va_space);
}
