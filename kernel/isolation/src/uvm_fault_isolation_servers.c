// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The MPS servers, as root has named them. Nothing that a process says of itself counts: its command, its executable (a process in a user
// namespace of its own may put another one in its place) and the flags of its VA space are all its own choice.
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include "uvm_fault_isolation_internal.h"

#define UVM_FAULT_ISOLATION_SERVERS_PATH "driver/nvidia-uvm/fault_isolation_servers"
#define UVM_FAULT_ISOLATION_MAX_SERVERS 64

// Each with a reference, so that its number does not come to mean another process
static struct pid *g_servers[UVM_FAULT_ISOLATION_MAX_SERVERS];
static DEFINE_SPINLOCK(g_servers_lock);

static bool is_alive(struct pid *process)
{
    bool alive;

    rcu_read_lock();
    alive = pid_task(process, PIDTYPE_TGID) != NULL;
    rcu_read_unlock();

    return alive;
}

bool uvm_fault_isolation_is_server(const struct pid *process)
{
    bool found = false;
    size_t i;

    spin_lock(&g_servers_lock);
    for (i = 0; i < ARRAY_SIZE(g_servers); ++i)
        found = found || g_servers[i] == process;
    spin_unlock(&g_servers_lock);

    return found;
}

static void forget(size_t i)
{
    put_pid(g_servers[i]);
    g_servers[i] = NULL;
}

// Takes the reference over. A place that a dead process has is free.
static int add_server(struct pid *process)
{
    int ret = -ENOSPC;
    size_t i;

    spin_lock(&g_servers_lock);
    for (i = 0; i < ARRAY_SIZE(g_servers); ++i) {
        if (g_servers[i] && (g_servers[i] == process || !is_alive(g_servers[i])))
            forget(i);

        if (!g_servers[i] && ret) {
            g_servers[i] = get_pid(process);
            ret = 0;
        }
    }
    spin_unlock(&g_servers_lock);

    put_pid(process);

    return ret;
}

static ssize_t servers_write(struct file *file, const char __user *buffer, size_t size, loff_t *position)
{
    struct pid *process;
    int number;
    int ret;

    // Somebody else may have opened it
    ret = uvm_fault_isolation_may_use();
    if (ret)
        return ret;

    ret = kstrtoint_from_user(buffer, size, 10, &number);
    if (ret)
        return ret;

    process = find_get_pid(number);
    if (!process)
        return -ESRCH;

    if (!is_alive(process)) {
        put_pid(process);
        return -ESRCH;
    }

    ret = add_server(process);

    return ret ? ret : size;
}

static int servers_show(struct seq_file *file, void *data)
{
    size_t i;

    spin_lock(&g_servers_lock);
    for (i = 0; i < ARRAY_SIZE(g_servers); ++i) {
        if (g_servers[i] && is_alive(g_servers[i]))
            seq_printf(file, "%d\n", pid_vnr(g_servers[i]));
    }
    spin_unlock(&g_servers_lock);

    return 0;
}

static int servers_open(struct inode *inode, struct file *file)
{
    return uvm_fault_isolation_open(file, servers_show);
}

static const struct proc_ops servers_ops = {
    .proc_open = servers_open,
    .proc_read = seq_read,
    .proc_lseek = seq_lseek,
    .proc_write = servers_write,
    .proc_release = single_release,
};

NV_STATUS uvm_fault_isolation_servers_init(void)
{
    return proc_create(UVM_FAULT_ISOLATION_SERVERS_PATH, 0600, NULL, &servers_ops) ? NV_OK : NV_ERR_OPERATING_SYSTEM;
}

void uvm_fault_isolation_servers_exit(void)
{
    size_t i;

    remove_proc_subtree(UVM_FAULT_ISOLATION_SERVERS_PATH, NULL);

    for (i = 0; i < ARRAY_SIZE(g_servers); ++i)
        forget(i);
}
