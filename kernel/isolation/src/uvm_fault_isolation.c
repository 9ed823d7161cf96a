// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The interception: what lies at the address, may it be contained, then the sink, the log and the condemnation.
#include "uvm_fault_isolation_internal.h"

// How often in a row a batch may fail without a culprit, before whoever it is in is taken for one. A pause means that the work went on.
#define UVM_FAULT_ISOLATION_MAX_SPARED_BATCHES 8
#define UVM_FAULT_ISOLATION_SPARED_PAUSE_NS NSEC_PER_SEC

// How often in a row a fault of a subcontext without a VA space may be a stale one: real work comes back with the next batch, however long
// that takes. A row ends with some batches that have none, or with a pause.
#define UVM_FAULT_ISOLATION_MAX_STALE_FAULTS 16
#define UVM_FAULT_ISOLATION_STALE_PAUSE_BATCHES 4
#define UVM_FAULT_ISOLATION_STALE_PAUSE_NS NSEC_PER_SEC

// Sinks of one client that could not be made count for this long after the last of them.
#define UVM_FAULT_ISOLATION_FAILURES_NS (60 * NSEC_PER_SEC)

// What comes again and again, without a pause
typedef struct
{
    NvU64 last_ns;
    NvU32 in_a_row;
} uvm_fault_isolation_streak_t;

// Each under its GPU's service lock
static struct
{
    uvm_fault_isolation_streak_t stale_faults;
    NvU32 stale_batch_id;

    // Mode report lets a cancel happen instead of which mode on would flush
    bool is_stale_foreseen;
    uvm_fault_isolation_streak_t spared_batches;
    NvU32 spared_batch_id;
} g_streaks[UVM_ID_MAX_GPUS];

static uvm_fault_isolation_event_t event_for(uvm_gpu_t *gpu,
                                             const uvm_fault_isolation_client_t *client,
                                             const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_fault_isolation_event_t event = {
        .address = fault_entry->fault_address,
        .gpu_index = uvm_id_gpu_index(gpu->id),
        .is_replayable = fault_entry->is_replayable,
        .fault_type = fault_entry->fault_type,
        .access_type = fault_entry->fault_access_type,
        .client_id = fault_entry->fault_source.client_id,
    };

    if (client) {
        event.process_id = pid_nr(client->process);
        memcpy(event.command, client->command, sizeof(event.command));
    }

    return event;
}

// Names the class, and the block where it is a managed one that exists.
static uvm_fault_isolation_class_t classify(uvm_va_space_t *va_space,
                                            NvU64 address,
                                            uvm_va_range_t **va_range,
                                            uvm_va_block_t **va_block)
{
    *va_block = NULL;
    *va_range = uvm_va_range_find(va_space, address);

    if (!*va_range) {
        if (uvm_hmm_is_enabled(va_space) && uvm_hmm_va_block_find(va_space, address, va_block) == NV_OK)
            return UVM_FAULT_ISOLATION_CLASS_HMM;

        return UVM_FAULT_ISOLATION_CLASS_NO_RANGE;
    }

    switch ((*va_range)->type) {
        case UVM_VA_RANGE_TYPE_EXTERNAL:
            return UVM_FAULT_ISOLATION_CLASS_EXTERNAL;

        case UVM_VA_RANGE_TYPE_MANAGED:
            if (uvm_va_block_find(va_space, address, va_block) != NV_OK)
                *va_block = NULL;

            return UVM_FAULT_ISOLATION_CLASS_MANAGED;

        default:
            return UVM_FAULT_ISOLATION_CLASS_CONTEXT;
    }
}

static uvm_fault_isolation_outcome_t sink_in(uvm_fault_isolation_book_t *book,
                                             uvm_gpu_va_space_t *gpu_va_space,
                                             const uvm_fault_buffer_entry_t *fault_entry,
                                             uvm_fault_isolation_class_t fault_class,
                                             uvm_va_range_t *va_range,
                                             uvm_va_block_t *va_block)
{
    switch (fault_class) {
        case UVM_FAULT_ISOLATION_CLASS_NO_RANGE:
            return uvm_fault_isolation_sink_no_range(book, gpu_va_space, fault_entry);

        case UVM_FAULT_ISOLATION_CLASS_EXTERNAL:
            return uvm_fault_isolation_sink_external(book, gpu_va_space, va_range, fault_entry);

        case UVM_FAULT_ISOLATION_CLASS_MANAGED:
            return uvm_fault_isolation_sink_managed(book, gpu_va_space, va_block, fault_entry);

        default:
            return UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED;
    }
}

static bool is_ours(uvm_fault_isolation_outcome_t outcome)
{
    return outcome == UVM_FAULT_ISOLATION_OUTCOME_CONTAINED || outcome == UVM_FAULT_ISOLATION_OUTCOME_HELD;
}

// The failures that still count. Under the client's lock.
static NvU32 recent_failures(const uvm_fault_isolation_client_t *client)
{
    return NV_GETTIME() - client->last_failure_ns > UVM_FAULT_ISOLATION_FAILURES_NS ? 0 : client->num_failures;
}

// Where sinks of one client fail again and again, none is tried for it until it has been quiet for a while. Others have theirs.
static bool is_given_up(uvm_fault_isolation_client_t *client)
{
    NvU32 most = uvm_fault_isolation_max_failures();
    bool given_up;

    uvm_mutex_lock(&client->lock);
    given_up = most > 0 && recent_failures(client) >= most;
    uvm_mutex_unlock(&client->lock);

    return given_up;
}

static void note_failure(uvm_fault_isolation_client_t *client)
{
    NvU32 most = uvm_fault_isolation_max_failures();
    NvU32 count;

    uvm_mutex_lock(&client->lock);
    count = client->num_failures = recent_failures(client) + 1;
    client->last_failure_ns = NV_GETTIME();
    uvm_mutex_unlock(&client->lock);

    if (count != most)
        return;

    uvm_fault_isolation_log_given_up();
    pr_warn_ratelimited("Fault isolation makes no more sinks for process %d: %u could not be made\n", pid_nr(client->process), most);
}

// Its end is decided. To hold it until then takes no memory, and a sink is tried again with its next fault.
static bool hold_condemned(uvm_fault_isolation_client_t *client)
{
    if (!READ_ONCE(client->is_condemned) || uvm_global_get_status() != NV_OK)
        return false;

    uvm_mutex_lock(&client->lock);
    client->made.is_excessive = true;
    uvm_mutex_unlock(&client->lock);

    return true;
}

// Where the sink fails the fault is cancelled as ever, unless its client is condemned.
static uvm_fault_isolation_outcome_t outcome_of_failure(uvm_fault_isolation_client_t *client)
{
    if (hold_condemned(client))
        return UVM_FAULT_ISOLATION_OUTCOME_HELD;

    note_failure(client);

    return UVM_FAULT_ISOLATION_OUTCOME_FAILED;
}

// Mode report takes the same way, with the book of what is only foreseen.
static void sink(uvm_gpu_va_space_t *gpu_va_space,
                 const uvm_fault_buffer_entry_t *fault_entry,
                 uvm_fault_isolation_event_t *event)
{
    uvm_fault_isolation_client_t *client = gpu_va_space->va_space->fault_isolation;
    uvm_va_range_t *va_range;
    uvm_va_block_t *va_block;
    bool is_foreseen;

    event->fault_class = classify(gpu_va_space->va_space, fault_entry->fault_address, &va_range, &va_block);
    event->outcome = uvm_fault_isolation_decide(gpu_va_space, fault_entry);
    is_foreseen = event->outcome == UVM_FAULT_ISOLATION_OUTCOME_REPORTED;
    if (!is_foreseen && event->outcome != UVM_FAULT_ISOLATION_OUTCOME_CONTAINED)
        return;

    if (is_given_up(client))
        event->outcome = UVM_FAULT_ISOLATION_OUTCOME_FAILED;
    else
        event->outcome = sink_in(is_foreseen ? &client->foreseen : &client->made,
                                 gpu_va_space,
                                 fault_entry,
                                 event->fault_class,
                                 va_range,
                                 va_block);

    if (event->outcome == UVM_FAULT_ISOLATION_OUTCOME_FAILED)
        event->outcome = outcome_of_failure(client);

    if (is_foreseen && is_ours(event->outcome)) {
        event->foreseen = event->outcome;
        event->foreseen_end = uvm_fault_isolation_foresee_end(client);
        event->outcome = UVM_FAULT_ISOLATION_OUTCOME_REPORTED;
    }
}

bool uvm_fault_isolation_contain(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_va_space_t *va_space = fault_entry->va_space;
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;
    uvm_gpu_va_space_t *gpu_va_space = uvm_gpu_va_space_get(va_space, gpu);
    uvm_fault_isolation_event_t event = event_for(gpu, client, fault_entry);
    NvU64 start_ns = NV_GETTIME();
    NvU64 end_ns;

    UVM_ASSERT(gpu_va_space);
    uvm_assert_rwsem_locked(&va_space->lock);

    sink(gpu_va_space, fault_entry, &event);
    end_ns = NV_GETTIME();
    event.duration_us = (NvU32)((end_ns - start_ns) / 1000);
    uvm_fault_isolation_log_time(event.duration_us);
    if (fault_entry->is_replayable)
        uvm_fault_isolation_log_stall(event.gpu_index, uvm_fault_isolation_hold(gpu), start_ns, end_ns);

    // First the condemnation: who reads the event finds it true
    if (is_ours(event.outcome))
        uvm_fault_isolation_condemn(client);

    if (is_ours(event.outcome) && READ_ONCE(client->made.is_excessive))
        uvm_fault_isolation_hurry(client);

    uvm_fault_isolation_log(&event);

    return is_ours(event.outcome);
}

// Whether the GPU may now do what it faulted on: the error came later in the batch.
static bool is_served(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_va_block_t *va_block;
    bool served;

    if (uvm_va_block_find(fault_entry->va_space, fault_entry->fault_address, &va_block) != NV_OK)
        return false;

    uvm_mutex_lock(&va_block->lock);
    served = uvm_va_block_page_is_gpu_authorized(va_block,
                                                 uvm_va_block_cpu_page_index(va_block, fault_entry->fault_address),
                                                 gpu->id,
                                                 uvm_fault_access_type_to_prot(fault_entry->fault_access_type));
    uvm_mutex_unlock(&va_block->lock);

    return served;
}

// The error cancels the entries in their order. Each has its reason by the time that it comes to us; who is spared loses it again, so
// that an entry with a reason before this one is the culprit.
static bool has_culprit_before(const uvm_fault_service_batch_context_t *batch_context,
                               const uvm_fault_buffer_entry_t *fault_entry)
{
    NvU32 i;

    for (i = 0; i < batch_context->num_coalesced_faults; ++i) {
        const uvm_fault_buffer_entry_t *entry = batch_context->ordered_fault_cache[i];

        if (entry == fault_entry)
            return false;

        if (!entry->is_fatal && entry->fatal_reason != UvmEventFatalReasonInvalid)
            return true;
    }

    return false;
}

static void streak_begin(uvm_fault_isolation_streak_t *streak, NvU64 pause_ns)
{
    NvU64 now_ns = NV_GETTIME();

    if (now_ns - streak->last_ns > pause_ns)
        streak->in_a_row = 0;

    streak->last_ns = now_ns;
}

// The batches in a row that have failed without a culprit, this one included, which comes with each of its entries.
static NvU32 *spared_batches(uvm_gpu_t *gpu, const uvm_fault_service_batch_context_t *batch_context)
{
    uvm_fault_isolation_streak_t *streak = &g_streaks[uvm_id_gpu_index(gpu->id)].spared_batches;
    NvU32 *batch_id = &g_streaks[uvm_id_gpu_index(gpu->id)].spared_batch_id;

    streak_begin(streak, UVM_FAULT_ISOLATION_SPARED_PAUSE_NS);

    if (*batch_id != batch_context->batch_id || streak->in_a_row == 0) {
        *batch_id = batch_context->batch_id;
        ++streak->in_a_row;
    }

    return &streak->in_a_row;
}

static bool is_innocent(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    const uvm_replayable_fault_buffer_t *faults = &UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu)->replayable;
    NvU32 *in_a_row = spared_batches(gpu, &faults->batch_service_context);
    bool is_culprit;

    if (has_culprit_before(&faults->batch_service_context, fault_entry))
        return true;

    // The service stopped in the VA space whose mm it still has
    if (fault_entry->va_space->va_space_mm.mm != uvm_fault_isolation_service_mm(gpu))
        return true;

    if (*in_a_row > UVM_FAULT_ISOLATION_MAX_SPARED_BATCHES)
        is_culprit = true;
    else if (fault_entry->fault_access_type == UVM_FAULT_ACCESS_TYPE_PREFETCH || fault_entry->is_throttled)
        is_culprit = false;
    else
        is_culprit = !is_served(gpu, fault_entry);

    if (is_culprit)
        *in_a_row = 0;

    return !is_culprit;
}

static void log_spared(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry, uvm_fault_isolation_outcome_t outcome)
{
    uvm_fault_isolation_event_t event = event_for(gpu, fault_entry->va_space->fault_isolation, fault_entry);
    uvm_va_range_t *va_range;
    uvm_va_block_t *va_block;

    event.fault_class = classify(fault_entry->va_space, fault_entry->fault_address, &va_range, &va_block);
    event.outcome = outcome;
    event.foreseen = UVM_FAULT_ISOLATION_OUTCOME_SPARED;
    uvm_fault_isolation_log(&event);
}

// A cancel for the fatal faults of one VA space has fetched them anew, under that space's locks. In a batch that failed in another VA space
// an entry is as it was: its client may have mapped the page since.
static bool may_be_out_of_date(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    const struct mm_struct *service_mm = uvm_fault_isolation_service_mm(gpu);

    return service_mm && fault_entry->va_space->va_space_mm.mm != service_mm;
}

// Takes the entry's reason with it, as the look at those behind it asks for.
static bool is_to_spare(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry)
{
    if (fault_entry->is_fatal && !may_be_out_of_date(gpu, fault_entry))
        return false;

    if (uvm_fault_isolation_test_delay_ms() > 0)
        msleep(uvm_fault_isolation_test_delay_ms());

    // After an error of the whole driver no replay helps
    if (uvm_global_get_status() != NV_OK || uvm_fault_isolation_is_anybodys(gpu, fault_entry) || !is_innocent(gpu, fault_entry))
        return false;

    fault_entry->fatal_reason = UvmEventFatalReasonInvalid;

    return true;
}

bool uvm_fault_isolation_spare(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry)
{
    if (uvm_fault_isolation_mode() != UVM_FAULT_ISOLATION_MODE_ON || !is_to_spare(gpu, fault_entry))
        return false;

    log_spared(gpu, fault_entry, UVM_FAULT_ISOLATION_OUTCOME_SPARED);

    return true;
}

// Behind the tools' event, which needs the reason. The cancel that follows does not.
static bool is_foreseen_spared(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry)
{
    const uvm_fault_isolation_client_t *client = fault_entry->va_space->fault_isolation;

    if (uvm_fault_isolation_mode() != UVM_FAULT_ISOLATION_MODE_REPORT || (client && READ_ONCE(client->is_condemned)) ||
        !is_to_spare(gpu, fault_entry))
        return false;

    log_spared(gpu, fault_entry, UVM_FAULT_ISOLATION_OUTCOME_REPORTED);

    return true;
}

bool uvm_fault_isolation_contain_replayable(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry)
{
    return uvm_fault_isolation_looks_at(fault_entry->va_space) && !is_foreseen_spared(gpu, fault_entry) &&
           uvm_fault_isolation_contain(gpu, fault_entry);
}

static void log_gone(uvm_gpu_t *gpu, uvm_fault_isolation_outcome_t outcome)
{
    uvm_fault_isolation_event_t event = {
        .gpu_index = uvm_id_gpu_index(gpu->id),
        .is_replayable = true,
        .fault_class = UVM_FAULT_ISOLATION_CLASS_GONE,
        .outcome = outcome,
        .foreseen = UVM_FAULT_ISOLATION_OUTCOME_SPARED,
    };

    uvm_fault_isolation_log(&event);
}

// Counts the row.
static bool may_be_stale(uvm_gpu_t *gpu)
{
    uvm_fault_isolation_streak_t *streak = &g_streaks[uvm_id_gpu_index(gpu->id)].stale_faults;
    NvU32 *last_batch_id = &g_streaks[uvm_id_gpu_index(gpu->id)].stale_batch_id;
    NvU32 batch_id = UVM_FAULT_ISOLATION_FAULT_BUFFER(gpu)->replayable.batch_service_context.batch_id;

    if (uvm_fault_isolation_test_delay_ms() > 0)
        msleep(uvm_fault_isolation_test_delay_ms());

    streak_begin(streak, UVM_FAULT_ISOLATION_STALE_PAUSE_NS);
    if (batch_id - *last_batch_id > UVM_FAULT_ISOLATION_STALE_PAUSE_BATCHES)
        streak->in_a_row = 0;

    *last_batch_id = batch_id;

    return ++streak->in_a_row <= UVM_FAULT_ISOLATION_MAX_STALE_FAULTS;
}

bool uvm_fault_isolation_flush_stale(uvm_gpu_t *gpu)
{
    bool *is_foreseen = &g_streaks[uvm_id_gpu_index(gpu->id)].is_stale_foreseen;
    uvm_fault_isolation_mode_t mode = uvm_fault_isolation_mode();

    *is_foreseen = false;

    // Pascal has no subcontexts: its global cancel means a fault that was looked at
    if (mode == UVM_FAULT_ISOLATION_MODE_OFF || gpu->max_subcontexts == 0 || !may_be_stale(gpu))
        return false;

    if (mode == UVM_FAULT_ISOLATION_MODE_REPORT) {
        *is_foreseen = true;
        return false;
    }

    log_gone(gpu, UVM_FAULT_ISOLATION_OUTCOME_SPARED);

    return true;
}

void uvm_fault_isolation_group_cancel(uvm_gpu_t *gpu)
{
    bool is_foreseen = g_streaks[uvm_id_gpu_index(gpu->id)].is_stale_foreseen;

    g_streaks[uvm_id_gpu_index(gpu->id)].is_stale_foreseen = false;

    if (uvm_fault_isolation_mode() != UVM_FAULT_ISOLATION_MODE_OFF)
        log_gone(gpu, is_foreseen ? UVM_FAULT_ISOLATION_OUTCOME_REPORTED : UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED);
}

NV_STATUS uvm_fault_isolation_range_add(uvm_va_space_t *va_space, uvm_range_tree_node_t *node)
{
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (client && client->is_condemned && uvm_fault_isolation_sink_overlaps(client, node->start, node->end))
        return NV_ERR_UVM_ADDRESS_IN_USE;

    return uvm_range_tree_add(&va_space->va_range_tree, node);
}

// A failure leaves isolation off: the module works as it does without us.
void uvm_fault_isolation_init(void)
{
    NV_STATUS status = uvm_fault_isolation_log_init();

    if (status == NV_OK)
        status = uvm_fault_isolation_end_init();

    if (status == NV_OK)
        status = uvm_fault_isolation_servers_init();

    if (status == NV_OK)
        status = uvm_fault_isolation_cgroups_init();

    uvm_fault_isolation_set_up(status == NV_OK);
    if (status != NV_OK)
        pr_err("Fault isolation stays off: %s\n", nvstatusToString(status));
}

void uvm_fault_isolation_exit(void)
{
    uvm_fault_isolation_set_up(false);
    uvm_fault_isolation_cgroups_exit();
    uvm_fault_isolation_servers_exit();
    uvm_fault_isolation_end_exit();
    uvm_fault_isolation_log_exit();
}
