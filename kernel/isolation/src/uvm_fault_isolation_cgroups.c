// SPDX-License-Identifier: MIT OR GPL-2.0-only
// Who has opted in: the control groups that root has named, and all below them. A process cannot leave one by itself, as a child
// begins in its parent's, and what counts is the group in which the process initialized its VA space.
#include <linux/cgroup.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include "uvm_fault_isolation_internal.h"

#define UVM_FAULT_ISOLATION_CGROUPS_PATH "driver/nvidia-uvm/fault_isolation_cgroups"
#define UVM_FAULT_ISOLATION_MAX_CGROUPS 64

#if defined(CONFIG_CGROUPS)

// Each with a reference
static struct cgroup *g_cgroups[UVM_FAULT_ISOLATION_MAX_CGROUPS];
static DEFINE_SPINLOCK(g_cgroups_lock);

struct cgroup *uvm_fault_isolation_cgroup_get(void)
{
    struct cgroup *cgroup;

    rcu_read_lock();
    do {
        cgroup = task_dfl_cgroup(current);
    } while (!cgroup_tryget(cgroup));
    rcu_read_unlock();

    return cgroup;
}

void uvm_fault_isolation_cgroup_put(struct cgroup *cgroup)
{
    cgroup_put(cgroup);
}

bool uvm_fault_isolation_is_named(struct cgroup *cgroup)
{
    bool found = false;
    size_t i;

    spin_lock(&g_cgroups_lock);
    for (i = 0; i < ARRAY_SIZE(g_cgroups); ++i)
        found = found || (g_cgroups[i] && cgroup_is_descendant(cgroup, g_cgroups[i]));
    spin_unlock(&g_cgroups_lock);

    return found;
}

// Without a reference of its own for the list. A place that a removed group has is free.
static void forget(struct cgroup *cgroup)
{
    size_t i;

    spin_lock(&g_cgroups_lock);
    for (i = 0; i < ARRAY_SIZE(g_cgroups); ++i) {
        if (g_cgroups[i] && (g_cgroups[i] == cgroup || !(g_cgroups[i]->self.flags & CSS_ONLINE))) {
            cgroup_put(g_cgroups[i]);
            g_cgroups[i] = NULL;
        }
    }
    spin_unlock(&g_cgroups_lock);
}

static int name(struct cgroup *cgroup)
{
    int ret = -ENOSPC;
    size_t i;

    forget(cgroup);

    spin_lock(&g_cgroups_lock);
    for (i = 0; i < ARRAY_SIZE(g_cgroups) && ret; ++i) {
        if (!g_cgroups[i]) {
            cgroup_get(cgroup);
            g_cgroups[i] = cgroup;
            ret = 0;
        }
    }
    spin_unlock(&g_cgroups_lock);

    return ret;
}

// "/path" names a group, "-/path" forgets it; as the writer's own namespace of control groups shows it.
static int take_line(char *line)
{
    char *path = strim(line);
    bool forgets = *path == '-';
    struct cgroup *cgroup;
    int ret = 0;

    if (forgets)
        ++path;

    cgroup = cgroup_get_from_path(path);
    if (IS_ERR(cgroup))
        return PTR_ERR(cgroup);

    if (forgets)
        forget(cgroup);
    else
        ret = name(cgroup);

    cgroup_put(cgroup);

    return ret;
}

static ssize_t cgroups_write(struct file *file, const char __user *buffer, size_t size, loff_t *position)
{
    char *line;
    int ret;

    // Somebody else may have opened it
    ret = uvm_fault_isolation_may_use();
    if (ret)
        return ret;

    if (size >= PATH_MAX)
        return -ENAMETOOLONG;

    line = memdup_user_nul(buffer, size);
    if (IS_ERR(line))
        return PTR_ERR(line);

    ret = take_line(line);
    kfree(line);

    return ret ? ret : size;
}

static int cgroups_show(struct seq_file *file, void *data)
{
    char *path = kmalloc(PATH_MAX, GFP_KERNEL);
    size_t i;

    if (!path)
        return -ENOMEM;

    for (i = 0; i < ARRAY_SIZE(g_cgroups); ++i) {
        bool has_path;

        spin_lock(&g_cgroups_lock);
        has_path = g_cgroups[i] && cgroup_path(g_cgroups[i], path, PATH_MAX) > 0;
        spin_unlock(&g_cgroups_lock);

        if (has_path) {
            seq_escape(file, path, "\n\r\t\\");
            seq_putc(file, '\n');
        }
    }

    kfree(path);

    return 0;
}

static int cgroups_open(struct inode *inode, struct file *file)
{
    return uvm_fault_isolation_open(file, cgroups_show);
}

static const struct proc_ops cgroups_ops = {
    .proc_open = cgroups_open,
    .proc_read = seq_read,
    .proc_lseek = seq_lseek,
    .proc_write = cgroups_write,
    .proc_release = single_release,
};

NV_STATUS uvm_fault_isolation_cgroups_init(void)
{
    return proc_create(UVM_FAULT_ISOLATION_CGROUPS_PATH, 0600, NULL, &cgroups_ops) ? NV_OK : NV_ERR_OPERATING_SYSTEM;
}

void uvm_fault_isolation_cgroups_exit(void)
{
    size_t i;

    remove_proc_subtree(UVM_FAULT_ISOLATION_CGROUPS_PATH, NULL);

    for (i = 0; i < ARRAY_SIZE(g_cgroups); ++i) {
        if (g_cgroups[i])
            cgroup_put(g_cgroups[i]);

        g_cgroups[i] = NULL;
    }
}

#else

// A kernel without control groups: nobody can opt in.
struct cgroup *uvm_fault_isolation_cgroup_get(void)
{
    return NULL;
}

void uvm_fault_isolation_cgroup_put(struct cgroup *cgroup)
{
}

bool uvm_fault_isolation_is_named(struct cgroup *cgroup)
{
    return false;
}

NV_STATUS uvm_fault_isolation_cgroups_init(void)
{
    return NV_OK;
}

void uvm_fault_isolation_cgroups_exit(void)
{
}

#endif
