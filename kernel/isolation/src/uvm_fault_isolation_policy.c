// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The settings, and who may be contained.
#include <linux/moduleparam.h>
#include "uvm_fault_isolation_internal.h"

typedef struct
{
    unsigned int value;
    unsigned int min;
    unsigned int max;
} setting_t;

static int setting_set(const char *text, const struct kernel_param *parameter)
{
    setting_t *setting = parameter->arg;
    unsigned int value;
    int ret = kstrtouint(text, 0, &value);

    if (ret)
        return ret;

    if (value < setting->min || value > setting->max)
        return -ERANGE;

    WRITE_ONCE(setting->value, value);

    return 0;
}

static int setting_get(char *text, const struct kernel_param *parameter)
{
    const setting_t *setting = parameter->arg;

    return scnprintf(text, PAGE_SIZE, "%u\n", READ_ONCE(setting->value));
}

static const struct kernel_param_ops setting_ops = {
    .set = setting_set,
    .get = setting_get,
};

static setting_t mode = {UVM_FAULT_ISOLATION_MODE_OFF, UVM_FAULT_ISOLATION_MODE_OFF, UVM_FAULT_ISOLATION_MODE_COUNT - 1};
module_param_cb(uvm_fault_isolation_mode, &setting_ops, &mode, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_mode, "Fatal MMU faults: 0 as ever (default), 1 report what would be contained, 2 contain");

static setting_t alone = {0, 0, 1};
module_param_cb(uvm_fault_isolation_alone, &setting_ops, &alone, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_alone, "Contain also where nobody shares the channel group: 0 no (default), 1 yes");

static setting_t kill_delay_ms = {2000, 0, 60000};
module_param_cb(uvm_fault_isolation_kill_delay_ms, &setting_ops, &kill_delay_ms, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_kill_delay_ms, "From the event that asks for a client's end to SIGKILL, milliseconds (0-60000)");

static setting_t grace_ms = {5000, 0, 60000};
module_param_cb(uvm_fault_isolation_grace_ms, &setting_ops, &grace_ms, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_grace_ms, "How long the VA space of a dead client stays, milliseconds (0-60000)");

static setting_t max_sinks = {1024, 1, 65536};
module_param_cb(uvm_fault_isolation_max_sinks, &setting_ops, &max_sinks, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_max_sinks, "Sinks of one client, beyond which its faults are cancelled (1-65536)");

static setting_t max_repeats = {16, 1, 1000};
module_param_cb(uvm_fault_isolation_max_repeats, &setting_ops, &max_repeats, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_max_repeats, "Faults at one sink, beyond which they are cancelled (1-1000)");

static setting_t test_delay_ms = {0, 0, 1000};
module_param_cb(uvm_fault_isolation_test_delay_ms, &setting_ops, &test_delay_ms, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_test_delay_ms, "Tests: between an error and the look for its culprit, milliseconds (0-1000)");

uvm_fault_isolation_mode_t uvm_fault_isolation_mode(void)
{
    return uvm_fault_isolation_is_up() ? READ_ONCE(mode.value) : UVM_FAULT_ISOLATION_MODE_OFF;
}

NvU32 uvm_fault_isolation_kill_delay_ms(void)
{
    return READ_ONCE(kill_delay_ms.value);
}

NvU32 uvm_fault_isolation_grace_ms(void)
{
    return READ_ONCE(grace_ms.value);
}

NvU32 uvm_fault_isolation_test_delay_ms(void)
{
    return uvm_enable_builtin_tests ? READ_ONCE(test_delay_ms.value) : 0;
}

NvU32 uvm_fault_isolation_max_sinks(void)
{
    return READ_ONCE(max_sinks.value);
}

NvU32 uvm_fault_isolation_max_repeats(void)
{
    return READ_ONCE(max_repeats.value);
}

// The kernel cuts a command off after 15 characters; the MPS server and its control daemon look the same then.
static bool is_mps_server(const uvm_fault_isolation_client_t *client)
{
    return strncmp(client->command, "nvidia-cuda-mps", 15) == 0;
}

static bool channel_shares_group(uvm_user_channel_t *user_channel, uvm_va_space_t *va_space)
{
    NvU32 i;

    uvm_assert_spinlock_locked(&user_channel->gpu->parent->instance_ptr_table_lock);

    if (!user_channel->in_subctx || !user_channel->subctx_info)
        return false;

    for (i = 0; i < user_channel->tsg.max_subctx_count; ++i) {
        uvm_va_space_t *other = uvm_fault_isolation_subcontext_va_space(user_channel, i);

        if (other && other != va_space)
            return true;
    }

    return false;
}

// A client's copy engines may have groups of their own, so any channel of the VA space counts, not the faulting one.
bool uvm_fault_isolation_shares_group(uvm_va_space_t *va_space)
{
    uvm_gpu_va_space_t *gpu_va_space;
    uvm_user_channel_t *user_channel;
    bool shares = false;

    uvm_assert_rwsem_locked(&va_space->lock);

    for_each_gpu_va_space(gpu_va_space, va_space) {
        uvm_parent_gpu_t *parent_gpu = gpu_va_space->gpu->parent;

        uvm_spin_lock(&parent_gpu->instance_ptr_table_lock);

        list_for_each_entry(user_channel, &gpu_va_space->registered_channels, list_node)
            shares = shares || channel_shares_group(user_channel, va_space);

        uvm_spin_unlock(&parent_gpu->instance_ptr_table_lock);
    }

    return shares;
}

// Only where a sparse PTE takes the place of what the fault missed.
static bool is_curable(uvm_gpu_va_space_t *gpu_va_space, const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_gpu_t *gpu = gpu_va_space->gpu;

    return fault_entry->is_virtual &&
           fault_entry->fault_type < UVM_FAULT_TYPE_FATAL &&
           uvm_fault_isolation_sparse_supported(gpu) &&
           !g_uvm_global.conf_computing_enabled &&
           !gpu_va_space->ats.enabled &&
           uvm_gpu_can_address(gpu, UVM_ALIGN_DOWN(fault_entry->fault_address, UVM_PAGE_SIZE_64K), UVM_PAGE_SIZE_64K);
}

bool uvm_fault_isolation_is_anybodys(uvm_gpu_t *gpu, const uvm_fault_buffer_entry_t *fault_entry)
{
    return fault_entry->is_replayable && !fault_entry->is_fatal && !uvm_fault_isolation_service_mm(gpu);
}

uvm_fault_isolation_outcome_t uvm_fault_isolation_decide(uvm_gpu_va_space_t *gpu_va_space,
                                                         const uvm_fault_buffer_entry_t *fault_entry)
{
    uvm_va_space_t *va_space = gpu_va_space->va_space;
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (!is_curable(gpu_va_space, fault_entry))
        return UVM_FAULT_ISOLATION_OUTCOME_UNSUPPORTED;

    if (!client || client->is_doubtful || is_mps_server(client))
        return UVM_FAULT_ISOLATION_OUTCOME_DOUBT;

    if (uvm_fault_isolation_is_anybodys(gpu_va_space->gpu, fault_entry))
        return UVM_FAULT_ISOLATION_OUTCOME_DOUBT;

    if (!client->is_condemned && !READ_ONCE(alone.value) && !uvm_fault_isolation_shares_group(va_space))
        return UVM_FAULT_ISOLATION_OUTCOME_ALONE;

    if (uvm_fault_isolation_mode() == UVM_FAULT_ISOLATION_MODE_REPORT)
        return UVM_FAULT_ISOLATION_OUTCOME_REPORTED;

    return UVM_FAULT_ISOLATION_OUTCOME_CONTAINED;
}

void uvm_fault_isolation_client_create(uvm_va_space_t *va_space)
{
    uvm_fault_isolation_client_t *client = uvm_kvmalloc_zero(sizeof(*client));

    if (!client)
        return;

    client->va_space = va_space;
    client->process = get_pid(task_tgid(current));
    get_task_comm(client->command, current->group_leader);
    uvm_mutex_init(&client->lock, UVM_LOCK_ORDER_FAULT_ISOLATION);
    INIT_LIST_HEAD(&client->spaces);
    uvm_fault_isolation_end_client_init(client);

    va_space->fault_isolation = client;
}

void uvm_fault_isolation_client_mmap(uvm_va_space_t *va_space)
{
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (client && client->process != task_tgid(current))
        WRITE_ONCE(client->is_doubtful, true);
}

void uvm_fault_isolation_client_destroy(uvm_va_space_t *va_space)
{
    uvm_fault_isolation_client_t *client = va_space->fault_isolation;

    if (!client)
        return;

    uvm_fault_isolation_end_client_deinit(client);
    UVM_ASSERT(list_empty(&client->spaces));
    put_pid(client->process);
    uvm_kvfree(client);
    va_space->fault_isolation = NULL;
}
