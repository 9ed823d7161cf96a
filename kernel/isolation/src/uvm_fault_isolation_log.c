// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What an operator and the agent see: counters, the last events, a tracepoint. docs/use/uvm-patch.md describes the two files.
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "uvm_fault_isolation_internal.h"

#define CREATE_TRACE_POINTS
#include "uvm_fault_isolation_trace.h"

#define UVM_FAULT_ISOLATION_COUNTERS_PATH "driver/nvidia-uvm/fault_isolation"
#define UVM_FAULT_ISOLATION_EVENTS_PATH "driver/nvidia-uvm/fault_isolation_events"
#define UVM_FAULT_ISOLATION_FORMAT 1
#define UVM_FAULT_ISOLATION_MAX_EVENTS 128

static atomic64_t g_counters[UVM_FAULT_ISOLATION_CLASS_COUNT][UVM_FAULT_ISOLATION_OUTCOME_COUNT];

// Of mode report: of the faults that it leaves as they are, what mode on would come to; ends; sinks now; grace times
static atomic64_t g_foreseen[UVM_FAULT_ISOLATION_CLASS_COUNT][UVM_FAULT_ISOLATION_OUTCOME_COUNT];
static atomic64_t g_num_foreseen_ends[UVM_FAULT_ISOLATION_END_COUNT];
static atomic64_t g_num_foreseen_sinks = ATOMIC64_INIT(0);
static atomic64_t g_foreseen_table_bytes = ATOMIC64_INIT(0);
static atomic64_t g_num_condemned = ATOMIC64_INIT(0);
static atomic64_t g_num_killed = ATOMIC64_INIT(0);
static atomic64_t g_num_not_killed = ATOMIC64_INIT(0);
static atomic64_t g_num_given_up = ATOMIC64_INIT(0);
static atomic64_t g_num_clients = ATOMIC64_INIT(0);
static atomic64_t g_num_graces = ATOMIC64_INIT(0);
static atomic64_t g_num_graces_cut = ATOMIC64_INIT(0);
static atomic64_t g_num_sinks = ATOMIC64_INIT(0);
static atomic64_t g_table_bytes = ATOMIC64_INIT(0);

// Of GPUs, failed and passed
static atomic64_t g_num_self_tests[2];

// How long the decision and the sink took: under 64 us, 128 us, ...; the last is what took longer
#define UVM_FAULT_ISOLATION_NUM_TIMES 12
#define UVM_FAULT_ISOLATION_SHORTEST_TIME_US 64
static atomic64_t g_times[UVM_FAULT_ISOLATION_NUM_TIMES];

// How long the GPU's other clients waited, hold by hold of its service lock: from where isolation begins with the hold's
// first fault to where it is done with its last
static atomic64_t g_stalls[UVM_FAULT_ISOLATION_NUM_TIMES];
static atomic64_t g_longest_stall_us = ATOMIC64_INIT(0);

// The newest hold of each GPU, under its service lock
static struct
{
    NvU64 hold;
    NvU64 start_ns;
    NvU32 us;
} g_holds[UVM_ID_MAX_GPUS];

// A ring; a leaf lock, since faults of several GPUs are logged at once.
static uvm_spinlock_t g_events_lock;
static uvm_fault_isolation_event_t g_events[UVM_FAULT_ISOLATION_MAX_EVENTS];
static NvU64 g_num_events;

static DECLARE_WAIT_QUEUE_HEAD(g_events_wait_queue);

const char *uvm_fault_isolation_class_string(uvm_fault_isolation_class_t fault_class)
{
    switch (fault_class) {
        case UVM_FAULT_ISOLATION_CLASS_NO_RANGE:
            return "no_range";
        case UVM_FAULT_ISOLATION_CLASS_EXTERNAL:
            return "external";
        case UVM_FAULT_ISOLATION_CLASS_MANAGED:
            return "managed";
        case UVM_FAULT_ISOLATION_CLASS_CONTEXT:
            return "context";
        case UVM_FAULT_ISOLATION_CLASS_HMM:
            return "hmm";
        case UVM_FAULT_ISOLATION_CLASS_GONE:
            return "gone";
        case UVM_FAULT_ISOLATION_CLASS_TERMINATION:
            return "termination";
        default:
            return "unknown";
    }
}

const char *uvm_fault_isolation_outcome_string(uvm_fault_isolation_outcome_t outcome)
{
    switch (outcome) {
        case UVM_FAULT_ISOLATION_OUTCOME_CONTAINED:
            return "contained";
        case UVM_FAULT_ISOLATION_OUTCOME_REPORTED:
            return "reported";
        case UVM_FAULT_ISOLATION_OUTCOME_SPARED:
            return "spared";
        case UVM_FAULT_ISOLATION_OUTCOME_ALONE:
            return "alone";
        case UVM_FAULT_ISOLATION_OUTCOME_DOUBT:
            return "doubt";
        case UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED:
            return "unsupported";
        case UVM_FAULT_ISOLATION_OUTCOME_HELD:
            return "held";
        case UVM_FAULT_ISOLATION_OUTCOME_FAILED:
            return "failed";
        case UVM_FAULT_ISOLATION_OUTCOME_DEFERRED:
            return "deferred";
        default:
            return "unknown";
    }
}

void uvm_fault_isolation_log(uvm_fault_isolation_event_t *event)
{
    event->timestamp_ns = ktime_get_ns();
    atomic64_inc(&g_counters[event->fault_class][event->outcome]);
    if (event->outcome == UVM_FAULT_ISOLATION_OUTCOME_REPORTED)
        atomic64_inc(&g_foreseen[event->fault_class][event->foreseen]);

    uvm_spin_lock(&g_events_lock);
    event->sequence = ++g_num_events;
    g_events[event->sequence % UVM_FAULT_ISOLATION_MAX_EVENTS] = *event;
    uvm_spin_unlock(&g_events_lock);

    trace_uvm_fault_isolation(event->process_id,
                              event->gpu_index,
                              event->address,
                              uvm_fault_isolation_class_string(event->fault_class),
                              uvm_fault_isolation_outcome_string(event->outcome),
                              event->duration_us);
    wake_up_interruptible(&g_events_wait_queue);
}

// The number of this time's bucket.
static size_t bucket_of(NvU32 duration_us)
{
    size_t i = 0;

    while (i < UVM_FAULT_ISOLATION_NUM_TIMES - 1 && duration_us >= UVM_FAULT_ISOLATION_SHORTEST_TIME_US << i)
        ++i;

    return i;
}

void uvm_fault_isolation_log_time(NvU32 duration_us)
{
    atomic64_inc(&g_times[bucket_of(duration_us)]);
}

static void log_longest_stall(NvU32 us)
{
    NvS64 longest = atomic64_read(&g_longest_stall_us);

    while (longest < us) {
        NvS64 found = atomic64_cmpxchg(&g_longest_stall_us, longest, us);

        if (found == longest)
            break;

        longest = found;
    }
}

void uvm_fault_isolation_log_stall(NvU32 gpu_index, NvU64 hold, NvU64 start_ns, NvU64 end_ns)
{
    bool goes_on = g_holds[gpu_index].start_ns && g_holds[gpu_index].hold == hold;
    size_t before = bucket_of(g_holds[gpu_index].us);

    if (!goes_on) {
        g_holds[gpu_index].hold = hold;
        g_holds[gpu_index].start_ns = start_ns;
    }

    g_holds[gpu_index].us = (NvU32)((end_ns - g_holds[gpu_index].start_ns) / 1000);
    atomic64_inc(&g_stalls[bucket_of(g_holds[gpu_index].us)]);
    if (goes_on)
        atomic64_dec(&g_stalls[before]);

    log_longest_stall(g_holds[gpu_index].us);
}

void uvm_fault_isolation_log_new_gpu(NvU32 gpu_index)
{
    g_holds[gpu_index].start_ns = 0;
}

void uvm_fault_isolation_log_condemned(void)
{
    atomic64_inc(&g_num_condemned);
}

void uvm_fault_isolation_log_killed(void)
{
    atomic64_inc(&g_num_killed);
}

void uvm_fault_isolation_log_not_killed(void)
{
    atomic64_inc(&g_num_not_killed);
}

void uvm_fault_isolation_log_given_up(void)
{
    atomic64_inc(&g_num_given_up);
}

void uvm_fault_isolation_log_clients(NvS64 change)
{
    atomic64_add(change, &g_num_clients);
}

void uvm_fault_isolation_log_graces(NvS64 change)
{
    atomic64_add(change, &g_num_graces);
}

void uvm_fault_isolation_log_grace_cut(void)
{
    atomic64_inc(&g_num_graces_cut);
}

void uvm_fault_isolation_log_sinks(NvS64 change)
{
    atomic64_add(change, &g_num_sinks);
}

void uvm_fault_isolation_log_table_bytes(NvS64 change)
{
    atomic64_add(change, &g_table_bytes);
}

void uvm_fault_isolation_log_foreseen_sinks(NvS64 change)
{
    atomic64_add(change, &g_num_foreseen_sinks);
}

void uvm_fault_isolation_log_foreseen_table_bytes(NvS64 change)
{
    atomic64_add(change, &g_foreseen_table_bytes);
}

void uvm_fault_isolation_log_foreseen_end(uvm_fault_isolation_end_t end)
{
    atomic64_inc(&g_num_foreseen_ends[end]);
}

void uvm_fault_isolation_log_foreseen_grace(void)
{
    atomic64_inc(&g_foreseen[UVM_FAULT_ISOLATION_CLASS_TERMINATION][UVM_FAULT_ISOLATION_OUTCOME_DEFERRED]);
}

void uvm_fault_isolation_log_self_test(bool passed)
{
    atomic64_inc(&g_num_self_tests[passed]);
}

static void show_times(struct seq_file *file, const char *name, atomic64_t *times)
{
    int i;

    for (i = 0; i < UVM_FAULT_ISOLATION_NUM_TIMES; ++i) {
        NvS64 count = atomic64_read(&times[i]);

        if (!count)
            continue;

        if (i == UVM_FAULT_ISOLATION_NUM_TIMES - 1)
            seq_printf(file, "%s longer %lld\n", name, (long long)count);
        else
            seq_printf(file, "%s under_%u %lld\n", name, UVM_FAULT_ISOLATION_SHORTEST_TIME_US << i, (long long)count);
    }
}

// One line for each that is not zero.
static void show_outcomes(struct seq_file *file, const char *name, atomic64_t counters[][UVM_FAULT_ISOLATION_OUTCOME_COUNT])
{
    int i, j;

    for (i = 0; i < UVM_FAULT_ISOLATION_CLASS_COUNT; ++i) {
        for (j = 0; j < UVM_FAULT_ISOLATION_OUTCOME_COUNT; ++j) {
            NvS64 count = atomic64_read(&counters[i][j]);

            if (count)
                seq_printf(file,
                           "%s %s %s %lld\n",
                           name,
                           uvm_fault_isolation_class_string(i),
                           uvm_fault_isolation_outcome_string(j),
                           (long long)count);
        }
    }
}

static void show_foreseen(struct seq_file *file)
{
    seq_printf(file,
               "foreseen condemned %lld\n",
               (long long)atomic64_read(&g_num_foreseen_ends[UVM_FAULT_ISOLATION_END_ASKED]));
    seq_printf(file,
               "foreseen killed_at_once %lld\n",
               (long long)atomic64_read(&g_num_foreseen_ends[UVM_FAULT_ISOLATION_END_AT_ONCE]));
    seq_printf(file, "foreseen sinks %lld\n", (long long)atomic64_read(&g_num_foreseen_sinks));
    seq_printf(file, "foreseen table_kib %lld\n", (long long)atomic64_read(&g_foreseen_table_bytes) / 1024);
    show_outcomes(file, "foreseen fault", g_foreseen);
}

static void show_counters(struct seq_file *file)
{
    static const char *const modes[] = {"off", "report", "on"};

    seq_printf(file, "format %u\n", UVM_FAULT_ISOLATION_FORMAT);
    seq_printf(file, "mode %s\n", modes[uvm_fault_isolation_mode()]);
    seq_printf(file, "clients %lld\n", (long long)atomic64_read(&g_num_clients));
    seq_printf(file, "condemned %lld\n", (long long)atomic64_read(&g_num_condemned));
    seq_printf(file, "killed %lld\n", (long long)atomic64_read(&g_num_killed));
    seq_printf(file, "not_killed %lld\n", (long long)atomic64_read(&g_num_not_killed));
    seq_printf(file, "given_up %lld\n", (long long)atomic64_read(&g_num_given_up));
    seq_printf(file, "graces %lld\n", (long long)atomic64_read(&g_num_graces));
    seq_printf(file, "graces_cut %lld\n", (long long)atomic64_read(&g_num_graces_cut));
    seq_printf(file, "sinks %lld\n", (long long)atomic64_read(&g_num_sinks));
    seq_printf(file, "table_kib %lld\n", (long long)atomic64_read(&g_table_bytes) / 1024);
    seq_printf(file,
               "self_tests passed %lld failed %lld\n",
               (long long)atomic64_read(&g_num_self_tests[true]),
               (long long)atomic64_read(&g_num_self_tests[false]));
    show_times(file, "took_us", g_times);
    show_times(file, "stall_us", g_stalls);
    seq_printf(file, "stall_us longest %lld\n", (long long)atomic64_read(&g_longest_stall_us));
    show_outcomes(file, "fault", g_counters);
    show_foreseen(file);
}

static int counters_show(struct seq_file *file, void *data)
{
    show_counters(file);

    return 0;
}

// The command comes last and may hold spaces; control characters are escaped.
static void show_event(struct seq_file *file, const uvm_fault_isolation_event_t *event)
{
    static const char *const ends[] = {"none", "asked", "at_once"};
    bool is_reported = event->outcome == UVM_FAULT_ISOLATION_OUTCOME_REPORTED;

    // These two are no faults that were read from a buffer
    bool has_fault = event->fault_class != UVM_FAULT_ISOLATION_CLASS_TERMINATION &&
                     event->fault_class != UVM_FAULT_ISOLATION_CLASS_GONE;

    seq_printf(file,
               "event %llu ns=%llu pid=%d gpu=%u address=0x%llx path=%s access=%s type=%s client=%u class=%s outcome=%s foreseen=%s end=%s us=%u "
               "command=",
               event->sequence,
               event->timestamp_ns,
               event->process_id,
               event->gpu_index,
               event->address,
               !has_fault ? "none" : event->is_replayable ? "replayable" : "non_replayable",
               has_fault ? uvm_fault_access_type_string(event->access_type) : "none",
               has_fault ? uvm_fault_type_string(event->fault_type) : "none",
               event->client_id,
               uvm_fault_isolation_class_string(event->fault_class),
               uvm_fault_isolation_outcome_string(event->outcome),
               is_reported ? uvm_fault_isolation_outcome_string(event->foreseen) : "none",
               is_reported ? ends[event->foreseen_end] : "none",
               event->duration_us);
    seq_escape(file, event->command, "\n\r\t\\");
    seq_putc(file, '\n');
}

static bool copy_event(NvU64 sequence, uvm_fault_isolation_event_t *event)
{
    uvm_spin_lock(&g_events_lock);
    *event = g_events[sequence % UVM_FAULT_ISOLATION_MAX_EVENTS];
    uvm_spin_unlock(&g_events_lock);

    return event->sequence == sequence;
}

static void show_events(struct seq_file *file)
{
    NvU64 last = READ_ONCE(g_num_events);
    NvU64 sequence = last > UVM_FAULT_ISOLATION_MAX_EVENTS ? last - UVM_FAULT_ISOLATION_MAX_EVENTS + 1 : 1;
    uvm_fault_isolation_event_t event;

    for (; sequence <= last; ++sequence) {
        if (copy_event(sequence, &event))
            show_event(file, &event);
    }
}

static int events_show(struct seq_file *file, void *data)
{
    UVM_ENTRY_VOID(show_events(file));

    return 0;
}

// A descriptor remembers what it has seen, so that poll() wakes for what is new.
typedef struct
{
    NvU64 num_seen;
} reader_t;

static int events_open(struct inode *inode, struct file *file)
{
    reader_t *reader;
    int ret = uvm_fault_isolation_may_use();

    if (ret)
        return ret;

    // Who waits with epoll hangs on the module's wait queue until it closes the file
    if (!try_module_get(THIS_MODULE))
        return -ENODEV;

    reader = kzalloc(sizeof(*reader), GFP_KERNEL);
    ret = reader ? single_open(file, events_show, reader) : -ENOMEM;
    if (ret) {
        kfree(reader);
        module_put(THIS_MODULE);
    }

    return ret;
}

static int events_release(struct inode *inode, struct file *file)
{
    int ret;

    kfree(((struct seq_file *)file->private_data)->private);
    ret = single_release(inode, file);
    module_put(THIS_MODULE);

    return ret;
}

static ssize_t events_read(struct file *file, char __user *buffer, size_t size, loff_t *position)
{
    reader_t *reader = ((struct seq_file *)file->private_data)->private;

    if (*position == 0)
        reader->num_seen = READ_ONCE(g_num_events);

    return seq_read(file, buffer, size, position);
}

static __poll_t events_poll(struct file *file, poll_table *table)
{
    reader_t *reader = ((struct seq_file *)file->private_data)->private;

    poll_wait(file, &g_events_wait_queue, table);

    return READ_ONCE(g_num_events) != reader->num_seen ? EPOLLIN | EPOLLRDNORM | EPOLLPRI : 0;
}

static const struct proc_ops events_ops = {
    .proc_open = events_open,
    .proc_read = events_read,
    .proc_lseek = seq_lseek,
    .proc_poll = events_poll,
    .proc_release = events_release,
};

// Everybody may see the counters.
NV_STATUS uvm_fault_isolation_log_init(void)
{
    uvm_spin_lock_init(&g_events_lock, UVM_LOCK_ORDER_LEAF);

    if (!proc_create_single(UVM_FAULT_ISOLATION_COUNTERS_PATH, 0444, NULL, counters_show) ||
        !proc_create(UVM_FAULT_ISOLATION_EVENTS_PATH, 0400, NULL, &events_ops))
        return NV_ERR_OPERATING_SYSTEM;

    return NV_OK;
}

void uvm_fault_isolation_log_exit(void)
{
    remove_proc_subtree(UVM_FAULT_ISOLATION_EVENTS_PATH, NULL);
    remove_proc_subtree(UVM_FAULT_ISOLATION_COUNTERS_PATH, NULL);
}
