// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The end of a client: its end is asked for, then forced; what its last kernels still use goes only after a grace time.
#include <linux/file.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include "uvm_fault_isolation_internal.h"

// Tear-down waits for frees and kills, so these have a queue of their own.
static struct workqueue_struct *g_work_queue;
static struct workqueue_struct *g_grace_queue;

// How soon a grace time ends that root has shortened meanwhile
#define UVM_FAULT_ISOLATION_GRACE_LOOK_MS 100

// Who is condemned and still here: no number of events makes anybody miss one.
#define UVM_FAULT_ISOLATION_CONDEMNED_PATH "driver/nvidia-uvm/fault_isolation_condemned"
static LIST_HEAD(g_condemned);
static DEFINE_SPINLOCK(g_condemned_lock);

// Whose VA space stays for a grace time, and since when
#define UVM_FAULT_ISOLATION_GRACES_PATH "driver/nvidia-uvm/fault_isolation_graces"
static LIST_HEAD(g_graces);
static DEFINE_SPINLOCK(g_graces_lock);

static int graces_show(struct seq_file *file, void *data)
{
    uvm_fault_isolation_client_t *client;

    spin_lock(&g_graces_lock);
    list_for_each_entry(client, &g_graces, grace_node) {
        seq_printf(file,
                   "kept uid=%u pid=%d ms=%llu command=",
                   from_kuid(&init_user_ns, client->user),
                   pid_nr(client->process),
                   (unsigned long long)jiffies64_to_msecs(get_jiffies_64() - client->grace_start));
        seq_escape(file, client->command, "\n\r\t\\");
        seq_putc(file, '\n');
    }
    spin_unlock(&g_graces_lock);

    return 0;
}

static int condemned_show(struct seq_file *file, void *data)
{
    uvm_fault_isolation_client_t *client;

    spin_lock(&g_condemned_lock);
    list_for_each_entry(client, &g_condemned, condemned_node) {
        seq_printf(file, "condemned pid=%d command=", pid_nr(client->process));
        seq_escape(file, client->command, "\n\r\t\\");
        seq_putc(file, '\n');
    }
    spin_unlock(&g_condemned_lock);

    return 0;
}

static int graces_open(struct inode *inode, struct file *file)
{
    return uvm_fault_isolation_open(file, graces_show);
}

static int condemned_open(struct inode *inode, struct file *file)
{
    return uvm_fault_isolation_open(file, condemned_show);
}

static const struct proc_ops graces_ops = {
    .proc_open = graces_open,
    .proc_read = seq_read,
    .proc_lseek = seq_lseek,
    .proc_release = single_release,
};

static const struct proc_ops condemned_ops = {
    .proc_open = condemned_open,
    .proc_read = seq_read,
    .proc_lseek = seq_lseek,
    .proc_release = single_release,
};

NV_STATUS uvm_fault_isolation_end_init(void)
{
    if (!proc_create(UVM_FAULT_ISOLATION_CONDEMNED_PATH, 0400, NULL, &condemned_ops) ||
        !proc_create(UVM_FAULT_ISOLATION_GRACES_PATH, 0400, NULL, &graces_ops))
        return NV_ERR_OPERATING_SYSTEM;

    g_work_queue = alloc_workqueue("uvm_isolation", WQ_UNBOUND, 0);
    g_grace_queue = alloc_workqueue("uvm_isolation_grace", WQ_UNBOUND, 0);

    return g_work_queue && g_grace_queue ? NV_OK : NV_ERR_NO_MEMORY;
}

// A VA space that was released while the machine slept is on UVM's own queue, and its client has work of ours that is still to come. With
// the module's last descriptor closed nothing more gets there.
void uvm_fault_isolation_end_exit(void)
{
    nv_kthread_q_flush(&g_uvm_global.deferred_release_q);

    remove_proc_subtree(UVM_FAULT_ISOLATION_GRACES_PATH, NULL);
    remove_proc_subtree(UVM_FAULT_ISOLATION_CONDEMNED_PATH, NULL);

    if (g_grace_queue)
        destroy_workqueue(g_grace_queue);

    if (g_work_queue)
        destroy_workqueue(g_work_queue);
}

void uvm_fault_isolation_queue(struct delayed_work *work, NvU32 delay_ms)
{
    queue_delayed_work(g_work_queue, work, msecs_to_jiffies(delay_ms));
}

// The process, not its main thread, which may end long before the others: each of its threads is past the point of no return, or all
// were told to go there.
static bool process_is_gone(uvm_fault_isolation_client_t *client)
{
    struct task_struct *task;
    bool is_gone;

    rcu_read_lock();
    task = pid_task(client->process, PIDTYPE_TGID);
    is_gone = !task || atomic_read(&task->signal->live) == 0 || (READ_ONCE(task->signal->flags) & SIGNAL_GROUP_EXIT);
    rcu_read_unlock();

    return is_gone;
}

// SIGKILL, where a thread of the process still runs the program that initialized the VA space. execve takes the thread's lock for the change
// of programs. The reference keeps the number from being given to another process.
static void kill_program(uvm_fault_isolation_client_t *client, bool *is_there, bool *is_killed)
{
    struct task_struct *process;
    struct task_struct *thread;

    *is_there = *is_killed = false;

    rcu_read_lock();
    process = pid_task(client->process, PIDTYPE_TGID);
    if (process) {
        for_each_thread(process, thread) {
            task_lock(thread);
            if (thread->mm == client->mm && !*is_there) {
                *is_there = true;
                *is_killed = kill_pid(client->process, SIGKILL, 1) == 0;
            }

            task_unlock(thread);
        }
    }

    rcu_read_unlock();
}

// Another program of the same process has done nothing, and may be root's. A process that is on its way out may still be writing a core.
static void kill_client(struct work_struct *work)
{
    uvm_fault_isolation_client_t *client = container_of(to_delayed_work(work), uvm_fault_isolation_client_t, kill_work);
    bool was_gone = process_is_gone(client);
    bool is_there, is_killed;

    kill_program(client, &is_there, &is_killed);

    if (is_killed && !was_gone)
        uvm_fault_isolation_log_killed();
    else if (!is_there && !was_gone)
        uvm_fault_isolation_log_not_killed();
}

void uvm_fault_isolation_condemn(uvm_fault_isolation_client_t *client)
{
    bool is_first;

    uvm_mutex_lock(&client->lock);
    is_first = !client->is_condemned;
    client->is_condemned = true;
    uvm_mutex_unlock(&client->lock);

    if (!is_first)
        return;

    spin_lock(&g_condemned_lock);
    list_add_tail(&client->condemned_node, &g_condemned);
    spin_unlock(&g_condemned_lock);

    uvm_fault_isolation_log_condemned();
    queue_delayed_work(g_work_queue, &client->kill_work, msecs_to_jiffies(uvm_fault_isolation_kill_delay_ms()));
}

void uvm_fault_isolation_hurry(uvm_fault_isolation_client_t *client)
{
    bool is_first;

    uvm_mutex_lock(&client->lock);
    is_first = !client->is_hurried;
    client->is_hurried = true;
    uvm_mutex_unlock(&client->lock);

    if (is_first)
        mod_delayed_work(g_work_queue, &client->kill_work, 0);
}

uvm_fault_isolation_end_t uvm_fault_isolation_foresee_end(uvm_fault_isolation_client_t *client)
{
    bool is_first, is_hurried;

    uvm_mutex_lock(&client->lock);
    is_first = !client->is_foreseen_condemned;
    is_hurried = client->foreseen.is_excessive && !client->is_foreseen_hurried;
    client->is_foreseen_condemned = true;
    client->is_foreseen_hurried = client->foreseen.is_excessive;
    uvm_mutex_unlock(&client->lock);

    if (is_first)
        uvm_fault_isolation_log_foreseen_end(UVM_FAULT_ISOLATION_END_ASKED);

    if (is_hurried)
        uvm_fault_isolation_log_foreseen_end(UVM_FAULT_ISOLATION_END_AT_ONCE);

    if (is_hurried)
        return UVM_FAULT_ISOLATION_END_AT_ONCE;

    return is_first ? UVM_FAULT_ISOLATION_END_ASKED : UVM_FAULT_ISOLATION_END_NONE;
}

static void log_termination(uvm_fault_isolation_client_t *client)
{
    uvm_fault_isolation_event_t event = {
        .process_id = pid_nr(client->process),
        .fault_class = UVM_FAULT_ISOLATION_CLASS_TERMINATION,
        .outcome = UVM_FAULT_ISOLATION_OUTCOME_DEFERRED,
    };

    memcpy(event.command, client->command, sizeof(event.command));
    uvm_fault_isolation_log(&event);
}

// While the machine sleeps all VA spaces are locked, and nobody may wait for that: a grace time without need does no harm then.
static bool may_share_group(uvm_va_space_t *va_space)
{
    bool shares;

    if (!uvm_down_read_trylock(&va_space->lock))
        return true;

    shares = uvm_fault_isolation_shares_group(va_space);
    uvm_up_read(&va_space->lock);

    return shares;
}

// A channel that is registered may have work. Whoever leaves in good order has unregistered its channels; execve, and the close of all
// descriptors by who becomes a daemon, leave as much behind as a death. After the grace time no channel is left that could share a
// group, so nobody has two.
static bool deserves_grace(uvm_fault_isolation_client_t *client)
{
    bool shares;

    if (!client || !g_grace_queue || uvm_fault_isolation_grace_ms() == 0 || !uvm_fault_isolation_is_for(client) ||
        !uvm_fault_isolation_looks_at(client->va_space))
        return false;

    shares = may_share_group(client->va_space);

    if (shares && uvm_fault_isolation_mode() != UVM_FAULT_ISOLATION_MODE_ON && !client->is_condemned) {
        uvm_fault_isolation_log_foreseen_grace();
        return false;
    }

    return shares;
}

static void continue_grace(uvm_fault_isolation_client_t *client)
{
    NvU32 delay_ms = min(uvm_fault_isolation_grace_ms(), (NvU32)UVM_FAULT_ISOLATION_GRACE_LOOK_MS);

    queue_delayed_work(g_grace_queue, &client->grace_work, msecs_to_jiffies(delay_ms));
}

// Memory stays with each of them, so no user has more than so many: the oldest, whose kernels are the likeliest to have
// ended, goes for the newest. Those of other users stay what they are.
static void keep_for_grace(uvm_fault_isolation_client_t *client)
{
    uvm_fault_isolation_client_t *other;
    uvm_fault_isolation_client_t *oldest = NULL;
    NvU32 most = uvm_fault_isolation_max_graces();
    NvU32 count = 0;

    spin_lock(&g_graces_lock);

    list_add_tail(&client->grace_node, &g_graces);
    list_for_each_entry(other, &g_graces, grace_node) {
        if (!uid_eq(other->user, client->user) || other->is_grace_cut)
            continue;

        ++count;
        oldest = oldest ? oldest : other;
    }

    if (most > 0 && count > most) {
        WRITE_ONCE(oldest->is_grace_cut, true);
        uvm_fault_isolation_log_grace_cut();
    }

    spin_unlock(&g_graces_lock);

    uvm_fault_isolation_log_graces(1);
}

static void keep_no_longer(uvm_fault_isolation_client_t *client)
{
    spin_lock(&g_graces_lock);
    list_del_init(&client->grace_node);
    spin_unlock(&g_graces_lock);

    uvm_fault_isolation_log_graces(-1);
}

// The module stays as long as the VA space; who unloads it afterwards waits for the queue
static void start_grace(uvm_fault_isolation_client_t *client)
{
    __module_get(THIS_MODULE);
    log_termination(client);
    client->grace_start = get_jiffies_64();
    keep_for_grace(client);
    continue_grace(client);
}

// What the release of the descriptor for the mm would have done. The last reference to the VA space's own descriptor may go here.
static void release_mm(uvm_va_space_t *va_space, struct file *uvm_file)
{
    struct mm_struct *mm = va_space->va_space_mm.mm;

    uvm_va_space_mm_unregister(va_space);

    if (uvm_va_space_mm_enabled(va_space))
        uvm_mmput(mm);

    va_space->va_space_mm.mm = NULL;
    fput(uvm_file);
}

// Nobody freezes this thread, so the lock alone keeps it from calling RM while the machine sleeps.
static void grace_over(uvm_fault_isolation_client_t *client)
{
    uvm_va_space_t *va_space = client->va_space;

    uvm_down_read(&g_uvm_global.pm.lock);

    if (client->grace_file)
        release_mm(va_space, client->grace_file);
    else
        uvm_va_space_destroy(va_space);

    uvm_up_read(&g_uvm_global.pm.lock);
}

static void grace_over_entry(struct work_struct *work)
{
    uvm_fault_isolation_client_t *client = container_of(to_delayed_work(work), uvm_fault_isolation_client_t, grace_work);

    if (!READ_ONCE(client->is_grace_cut) &&
        get_jiffies_64() - client->grace_start < msecs_to_jiffies(uvm_fault_isolation_grace_ms())) {
        continue_grace(client);
        return;
    }

    keep_no_longer(client);
    UVM_ENTRY_VOID(grace_over(client));
    module_put(THIS_MODULE);
}

bool uvm_fault_isolation_defer_mm_release(uvm_va_space_t *va_space, struct file *uvm_file)
{
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (!uvm_va_space_mm_enabled(va_space) || !deserves_grace(client))
        return false;

    client->grace_file = uvm_file;
    start_grace(client);

    return true;
}

bool uvm_fault_isolation_defer_va_space_destroy(uvm_va_space_t *va_space)
{
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (!deserves_grace(client))
        return false;

    // The VA space outlives its inode now
    address_space_init_once(va_space->mapping);
    start_grace(client);

    return true;
}

void uvm_fault_isolation_end_client_init(uvm_fault_isolation_client_t *client)
{
    INIT_LIST_HEAD(&client->condemned_node);
    INIT_LIST_HEAD(&client->grace_node);
    INIT_DELAYED_WORK(&client->kill_work, kill_client);
    INIT_DELAYED_WORK(&client->grace_work, grace_over_entry);
}

// The grace is over when this runs, as it is what destroys the VA space, if it was started at all.
void uvm_fault_isolation_end_client_deinit(uvm_fault_isolation_client_t *client)
{
    cancel_delayed_work_sync(&client->kill_work);

    spin_lock(&g_condemned_lock);
    list_del_init(&client->condemned_node);
    spin_unlock(&g_condemned_lock);
}
