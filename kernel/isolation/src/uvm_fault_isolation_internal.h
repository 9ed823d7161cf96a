// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What the files of isolation share. The locks: client->lock has UVM_LOCK_ORDER_FAULT_ISOLATION, after the VA
// space's, before an external range tree's; the log's lock is a leaf.
#ifndef __UVM_FAULT_ISOLATION_INTERNAL_H__
#define __UVM_FAULT_ISOLATION_INTERNAL_H__

#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/workqueue.h>
#include "uvm_api.h"
#include "uvm_fault_isolation.h"
#include "uvm_fault_isolation_compat.h"
#include "uvm_kvmalloc.h"
#include "uvm_lock.h"

typedef enum
{
    UVM_FAULT_ISOLATION_MODE_OFF = 0,
    UVM_FAULT_ISOLATION_MODE_REPORT,
    UVM_FAULT_ISOLATION_MODE_ON,
    UVM_FAULT_ISOLATION_MODE_COUNT,
} uvm_fault_isolation_mode_t;

// What lies at the faulting address.
typedef enum
{
    UVM_FAULT_ISOLATION_CLASS_NO_RANGE = 0,
    UVM_FAULT_ISOLATION_CLASS_EXTERNAL,
    UVM_FAULT_ISOLATION_CLASS_MANAGED,

    // Channel, SKED and semaphore ranges, peer-to-peer registers
    UVM_FAULT_ISOLATION_CLASS_CONTEXT,
    UVM_FAULT_ISOLATION_CLASS_HMM,

    // The faulting subcontext has no VA space any more
    UVM_FAULT_ISOLATION_CLASS_GONE,

    // Not a fault: a process died that shares a channel group
    UVM_FAULT_ISOLATION_CLASS_TERMINATION,
    UVM_FAULT_ISOLATION_CLASS_COUNT,
} uvm_fault_isolation_class_t;

typedef enum
{
    UVM_FAULT_ISOLATION_OUTCOME_CONTAINED = 0,

    // Mode report: cancelled as ever; what mode on would have come to is in the event's foreseen
    UVM_FAULT_ISOLATION_OUTCOME_REPORTED,

    // A service error in somebody else's batch
    UVM_FAULT_ISOLATION_OUTCOME_SPARED,

    // Cancelled as ever, because nobody else is in the channel group
    UVM_FAULT_ISOLATION_OUTCOME_ALONE,

    // Cancelled as ever, because it is not clear whose VA space it is
    UVM_FAULT_ISOLATION_OUTCOME_DOUBT,

    // Cancelled as ever, because no PTE helps here
    UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED,

    // Replayed without a sink, because the client has used up its page tables or repetitions; it is killed at once
    UVM_FAULT_ISOLATION_OUTCOME_HELD,

    // Cancelled as ever, because an allocation or a push failed
    UVM_FAULT_ISOLATION_OUTCOME_FAILED,

    // Of terminations: put off for the grace time
    UVM_FAULT_ISOLATION_OUTCOME_DEFERRED,
    UVM_FAULT_ISOLATION_OUTCOME_COUNT,
} uvm_fault_isolation_outcome_t;

// What mode report foresees of a client's end.
typedef enum
{
    UVM_FAULT_ISOLATION_END_NONE = 0,

    // The client would be condemned with this fault
    UVM_FAULT_ISOLATION_END_ASKED,

    // It would be killed at once
    UVM_FAULT_ISOLATION_END_AT_ONCE,
    UVM_FAULT_ISOLATION_END_COUNT,
} uvm_fault_isolation_end_t;

// The sinks of a client, and what of its bounds they take. Under the client's lock.
typedef struct
{
    uvm_fault_isolation_client_t *client;

    // Mode report's: no page table and no range knows of these sinks, all else is as with those that are made
    bool is_foreseen;

    // Sinks in page tables, one uvm_fault_isolation_space_t a GPU VA space
    struct list_head spaces;
    NvU32 num_sinks_made;

    // Sinks made as sparse mappings of external ranges belong to those ranges; here they are only counted
    NvU32 num_external_sinks;
    NvU32 num_external_repeats;
    NvU32 external_batch;

    // At most what the page tables of both kinds of sinks take
    NvU64 table_bytes;

    // The client has used up its page tables or repetitions
    bool is_excessive;
} uvm_fault_isolation_book_t;

struct uvm_fault_isolation_client_struct
{
    uvm_va_space_t *va_space;

    // The process that initialized the VA space, with a reference
    struct pid *process;
    char command[TASK_COMM_LEN];

    // The memory that it had then, with a reference to its structure alone: another one means that it runs another program
    struct mm_struct *mm;

    // Of that process, when it initialized the VA space
    kuid_t user;

    // In which it was then, with a reference; NULL in a kernel without control groups
    struct cgroup *cgroup;

    // Another process mapped through the same descriptor: nobody can say who is to end
    bool is_doubtful;

    // Written under the lock; read without it where a stale answer does no harm
    bool is_condemned;

    // Among all that are condemned, from then on until the end; under the list's lock
    struct list_head condemned_node;

    // It does not have the time that others have until SIGKILL; under the lock
    bool is_hurried;

    // Mode report would have had it condemned, and killed at once; written under the lock
    bool is_foreseen_condemned;
    bool is_foreseen_hurried;

    // Protects what follows
    uvm_mutex_t lock;

    // Sinks that could not be made, lately
    NvU32 num_failures;
    NvU64 last_failure_ns;

    // What was made, and what mode report only foresees
    uvm_fault_isolation_book_t made;
    uvm_fault_isolation_book_t foreseen;

    // What RM still has to free of mappings that sinks took the place of, and the work that does so
    struct list_head deferred_frees;
    struct delayed_work free_work;

    // SIGKILL, when asking was in vain
    struct delayed_work kill_work;

    // Tear-down, when the grace is over
    struct delayed_work grace_work;
    NvU64 grace_start;
    struct file *grace_file;

    // Among all in their grace times, in the order in which they died; under the list's lock
    struct list_head grace_node;

    // Its user has too many of them, so it ends with the next look
    bool is_grace_cut;
};

#define UVM_FAULT_ISOLATION_MAX_ENTRIES 512
#define UVM_FAULT_ISOLATION_SIBLING_LEVELS 2

// The entries of one directory that are sparse because of a sink beside them
typedef struct
{
    uvm_page_directory_t *directory;
    NvU64 start;
    NvU32 entry_shift;
    NvU32 num_entries;
    DECLARE_BITMAP(entries, UVM_FAULT_ISOLATION_MAX_ENTRIES);
} uvm_fault_isolation_siblings_t;

// What the log says of one fault.
typedef struct
{
    NvU64 sequence;
    NvU64 timestamp_ns;
    NvU64 address;
    NvU32 duration_us;
    NvU32 gpu_index;
    pid_t process_id;
    char command[TASK_COMM_LEN];
    bool is_replayable;
    uvm_fault_type_t fault_type;
    uvm_fault_access_type_t access_type;
    NvU32 client_id;
    uvm_fault_isolation_class_t fault_class;
    uvm_fault_isolation_outcome_t outcome;

    // Of REPORTED
    uvm_fault_isolation_outcome_t foreseen;
    uvm_fault_isolation_end_t foreseen_end;
} uvm_fault_isolation_event_t;

// What the files offer one another, in the order of their layers (kernel/README.md): a file calls those above it.

// uvm_fault_isolation_settings.c: the mode is off until everything that isolation needs could be made.
void uvm_fault_isolation_set_up(bool is_up);
uvm_fault_isolation_mode_t uvm_fault_isolation_mode(void);
bool uvm_fault_isolation_alone(void);
bool uvm_fault_isolation_opt_in(void);
NvU32 uvm_fault_isolation_kill_delay_ms(void);
NvU32 uvm_fault_isolation_grace_ms(void);
NvU32 uvm_fault_isolation_max_graces(void);
NvU32 uvm_fault_isolation_test_delay_ms(void);

// What a test wants of the sinks to come: 1 that none can be made, 2 that each fails once its entries are written. 3: that no
// channel can be cleared.
NvU32 uvm_fault_isolation_test_fails(void);
bool uvm_fault_isolation_test_self_fails(void);

// Of one client's sinks: what their page tables may take, and how often one of them is made anew.
NvU64 uvm_fault_isolation_max_table_bytes(void);
NvU32 uvm_fault_isolation_max_repeats(void);

// Of one client's sinks that could not be made: beyond so many it gets no more of them. 0: no bound.
NvU32 uvm_fault_isolation_max_failures(void);

// uvm_fault_isolation_proc.c: 0, or -EPERM for who is not root of the whole machine.
int uvm_fault_isolation_may_use(void);

// As single_open(), for who may use the file.
int uvm_fault_isolation_open(struct file *file, int (*show)(struct seq_file *, void *));

// uvm_fault_isolation_log.c: the counters and events in /proc. Whoever may take a spinlock may log.
NV_STATUS uvm_fault_isolation_log_init(void);
void uvm_fault_isolation_log_exit(void);

// Gives the event its number and its time, counts it, and wakes who reads the events.
void uvm_fault_isolation_log(uvm_fault_isolation_event_t *event);

// How long the decision and the sink of one fault took.
void uvm_fault_isolation_log_time(NvU32 duration_us);

// A replayable fault was dealt with in this hold of its GPU's service lock, which is held.
void uvm_fault_isolation_log_stall(NvU32 gpu_index, NvU64 hold, NvU64 start_ns, NvU64 end_ns);

// A GPU that is added counts its holds from the beginning: none of them goes on with one of before.
void uvm_fault_isolation_log_new_gpu(NvU32 gpu_index);

// Each counts one more.
void uvm_fault_isolation_log_condemned(void);
void uvm_fault_isolation_log_killed(void);
void uvm_fault_isolation_log_not_killed(void);
void uvm_fault_isolation_log_given_up(void);
void uvm_fault_isolation_log_self_test(bool passed);
void uvm_fault_isolation_log_grace_cut(void);

// How many more, or less, there are now.
void uvm_fault_isolation_log_clients(NvS64 change);
void uvm_fault_isolation_log_graces(NvS64 change);
void uvm_fault_isolation_log_sinks(NvS64 change);
void uvm_fault_isolation_log_table_bytes(NvS64 change);

// Of mode report: sinks that would be there now and what they would take, ends that it foresaw, and grace times.
void uvm_fault_isolation_log_foreseen_sinks(NvS64 change);
void uvm_fault_isolation_log_foreseen_table_bytes(NvS64 change);
void uvm_fault_isolation_log_foreseen_end(uvm_fault_isolation_end_t end);
void uvm_fault_isolation_log_foreseen_grace(void);

// As the files in /proc and the tracepoint name them.
const char *uvm_fault_isolation_class_string(uvm_fault_isolation_class_t fault_class);
const char *uvm_fault_isolation_outcome_string(uvm_fault_isolation_outcome_t outcome);

// uvm_fault_isolation_gpu.c: what an entry of 8 bytes is now, by a copy engine, to the beginning of copy.
NV_STATUS uvm_fault_isolation_read_entry(uvm_gpu_t *gpu, const uvm_page_directory_t *table, NvU32 index, uvm_rm_mem_t *copy);

// Whether the GPU, which has to be added, gave a sparse entry back as it was written.
bool uvm_fault_isolation_self_test_passed(uvm_gpu_t *gpu);

// uvm_fault_isolation_servers.c: the file in /proc in which root names MPS servers.
NV_STATUS uvm_fault_isolation_servers_init(void);
void uvm_fault_isolation_servers_exit(void);

// Whether root has named the process as an MPS server.
bool uvm_fault_isolation_is_server(const struct pid *process);

// uvm_fault_isolation_cgroups.c: the file in /proc in which root names control groups.
NV_STATUS uvm_fault_isolation_cgroups_init(void);
void uvm_fault_isolation_cgroups_exit(void);

// That of the process that runs, with a reference; NULL in a kernel that has none. Put takes what get has given.
struct cgroup *uvm_fault_isolation_cgroup_get(void);
void uvm_fault_isolation_cgroup_put(struct cgroup *cgroup);

// Whether root has named it, or one above it.
bool uvm_fault_isolation_is_named(struct cgroup *cgroup);

// uvm_fault_isolation_policy.c

// Whether isolation is for this client: for everybody, or for whom root has named. Who is condemned stays so.
bool uvm_fault_isolation_is_for(uvm_fault_isolation_client_t *client);

// CONTAINED when the fault may be contained, REPORTED where the mode then only foresees it, or the outcome that says why not. Changes
// nothing.
uvm_fault_isolation_outcome_t uvm_fault_isolation_decide(uvm_gpu_va_space_t *gpu_va_space,
                                                         const uvm_fault_buffer_entry_t *fault_entry);

// Whether one of its channels is in a group in which another VA space has a subcontext.
// Locking: the VA space lock in read mode.
bool uvm_fault_isolation_shares_group(uvm_va_space_t *va_space);

// The mode is not off, or the VA space is condemned: who is on its way out stays contained, whatever the mode comes to be.
bool uvm_fault_isolation_looks_at(uvm_va_space_t *va_space);

// Whether the entry's error is its whole batch's, and no mm tells in whose VA space it was: a page that is
// not mapped proves nothing, since a CPU may have taken it back after it was served. Under the GPU's service
// lock.
bool uvm_fault_isolation_is_anybodys(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry);

// uvm_fault_isolation_directory.c: siblings has UVM_FAULT_ISOLATION_SIBLING_LEVELS elements, of the directories above
// the table of a sink. Add writes their free entries, remove takes these back; each takes the tree's lock. Under client->lock.
void uvm_fault_isolation_siblings_add(uvm_gpu_va_space_t *gpu_va_space,
                                      uvm_page_directory_t *table,
                                      NvU64 address,
                                      uvm_fault_isolation_siblings_t *siblings);
void uvm_fault_isolation_siblings_remove(uvm_page_tree_t *tree, uvm_fault_isolation_siblings_t *siblings);

// Whether one of the entries that were written covers an address from start to end.
bool uvm_fault_isolation_siblings_overlap(const uvm_fault_isolation_siblings_t *siblings, NvU64 start, NvU64 end);

// Whether a table that UVM makes for the address can only take the place of UVM's own. Takes the tree's lock.
bool uvm_fault_isolation_is_in_uvm_tables(uvm_gpu_va_space_t *gpu_va_space, NvU64 address);

// Whether the GPU can have these addresses, and nothing that UVM knows of lies there.
bool uvm_fault_isolation_is_free(uvm_gpu_va_space_t *gpu_va_space, NvU64 start, NvU64 end);

// uvm_fault_isolation_sink.c: an empty book, of zeroed memory.
void uvm_fault_isolation_book_init(uvm_fault_isolation_book_t *book, uvm_fault_isolation_client_t *client, bool is_foreseen);

// Each takes client->lock and answers CONTAINED, HELD, UNSUPPORTED or FAILED. Of a book that is foreseen nothing is done but that.
// Locking: the VA space lock in read mode.
uvm_fault_isolation_outcome_t uvm_fault_isolation_sink_no_range(uvm_fault_isolation_book_t *book,
                                                                uvm_gpu_va_space_t *gpu_va_space,
                                                                const uvm_fault_buffer_entry_t *fault_entry);
uvm_fault_isolation_outcome_t uvm_fault_isolation_sink_managed(uvm_fault_isolation_book_t *book,
                                                               uvm_gpu_va_space_t *gpu_va_space,
                                                               uvm_va_block_t *va_block,
                                                               const uvm_fault_buffer_entry_t *fault_entry);

// Whether that much more in page tables would be too much. Under client->lock.
bool uvm_fault_isolation_is_full(uvm_fault_isolation_book_t *book, NvU64 bytes);

// Whether there is one, and one more of an external range, which nobody gives up for room. Under client->lock.
bool uvm_fault_isolation_has_sink(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space, NvU64 address);
NV_STATUS uvm_fault_isolation_foresee_external(uvm_fault_isolation_book_t *book,
                                               uvm_gpu_va_space_t *gpu_va_space,
                                               NvU64 start,
                                               NvU64 end);

// Takes client->lock. Not for what is foreseen: nothing lies there.
bool uvm_fault_isolation_sink_overlaps(uvm_fault_isolation_client_t *client, NvU64 start, NvU64 end);

// Takes client->lock. The tables of what was made go with it; nobody may walk them, or all that they have is sparse.
void uvm_fault_isolation_forget_sinks(uvm_fault_isolation_book_t *book, uvm_gpu_va_space_t *gpu_va_space);

// uvm_fault_isolation_end.c: the work queues, and the files in /proc of who is condemned and whose VA space stays. Exit waits for the work.
NV_STATUS uvm_fault_isolation_end_init(void);
void uvm_fault_isolation_end_exit(void);

// Deinit waits for the client's kill.
void uvm_fault_isolation_end_client_init(uvm_fault_isolation_client_t *client);
void uvm_fault_isolation_end_client_deinit(uvm_fault_isolation_client_t *client);

// The first time: lists the client, and kills it once the delay is over. Takes client->lock.
void uvm_fault_isolation_condemn(uvm_fault_isolation_client_t *client);

// Condemned already; SIGKILL now.
void uvm_fault_isolation_hurry(uvm_fault_isolation_client_t *client);

// What condemn and hurry would do for the first time. Does not do it.
uvm_fault_isolation_end_t uvm_fault_isolation_foresee_end(uvm_fault_isolation_client_t *client);

// To the queue whose work does not wait for tear-down.
void uvm_fault_isolation_queue(struct delayed_work *work, NvU32 delay_ms);

// uvm_fault_isolation_external.c: as those of page tables above; also takes the external range tree's lock.
uvm_fault_isolation_outcome_t uvm_fault_isolation_sink_external(uvm_fault_isolation_book_t *book,
                                                                uvm_gpu_va_space_t *gpu_va_space,
                                                                uvm_va_range_t *va_range,
                                                                const uvm_fault_buffer_entry_t *fault_entry);
void uvm_fault_isolation_external_client_init(uvm_fault_isolation_client_t *client);

// Under g_uvm_global.pm.lock, as all that calls RM.
void uvm_fault_isolation_external_client_deinit(uvm_fault_isolation_client_t *client);

// uvm_fault_isolation.c

// Contains, condemns and logs. The mode is not off.
bool uvm_fault_isolation_contain(uvm_gpu_t *gpu, uvm_fault_buffer_entry_t *fault_entry);

#endif // __UVM_FAULT_ISOLATION_INTERNAL_H__
