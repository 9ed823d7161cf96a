// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The settings: module parameters, which count once isolation is up.
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

static setting_t max_graces = {16, 0, 4096};
module_param_cb(uvm_fault_isolation_max_graces, &setting_ops, &max_graces, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_max_graces, "Grace times of one user's at once; beyond it the oldest ends; 0: no bound (0-4096)");

static setting_t max_table_kib = {32768, 64, 1048576};
module_param_cb(uvm_fault_isolation_max_table_kib, &setting_ops, &max_table_kib, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_max_table_kib, "Page tables for one client's sinks, KiB; beyond it old sinks go (64-1048576)");

static setting_t max_repeats = {16, 1, 1000};
module_param_cb(uvm_fault_isolation_max_repeats, &setting_ops, &max_repeats, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_max_repeats, "Faults at one sink, beyond which they are held (1-1000)");

static setting_t max_failures = {16, 0, 1000};
module_param_cb(uvm_fault_isolation_max_failures, &setting_ops, &max_failures, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_max_failures, "Sinks of one client that could not be made, after which it gets none for a minute; 0: no bound (0-1000)");

static setting_t opt_in = {0, 0, 1};
module_param_cb(uvm_fault_isolation_opt_in, &setting_ops, &opt_in, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_opt_in, "Whom it is for: 0 everybody (default), 1 who is in a control group that root has named");

static setting_t test_delay_ms = {0, 0, 1000};
module_param_cb(uvm_fault_isolation_test_delay_ms, &setting_ops, &test_delay_ms, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_test_delay_ms, "Tests: between an error and the look for its culprit, milliseconds (0-1000)");

static setting_t test_fails = {0, 0, 3};
module_param_cb(uvm_fault_isolation_test_fails, &setting_ops, &test_fails, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_test_fails, "Tests: 1 no sink can be made, 2 each fails once its entries are written, 3 no channel can be cleared");

static setting_t test_self_fails = {0, 0, 1};
module_param_cb(uvm_fault_isolation_test_self_fails, &setting_ops, &test_self_fails, 0644);
MODULE_PARM_DESC(uvm_fault_isolation_test_self_fails, "Tests: a GPU's self-test finds another entry: 0 no (default), 1 yes");

static bool g_is_up;

void uvm_fault_isolation_set_up(bool is_up)
{
    WRITE_ONCE(g_is_up, is_up);
}

uvm_fault_isolation_mode_t uvm_fault_isolation_mode(void)
{
    return READ_ONCE(g_is_up) ? READ_ONCE(mode.value) : UVM_FAULT_ISOLATION_MODE_OFF;
}

bool uvm_fault_isolation_alone(void)
{
    return READ_ONCE(alone.value);
}

bool uvm_fault_isolation_opt_in(void)
{
    return READ_ONCE(opt_in.value);
}

NvU32 uvm_fault_isolation_kill_delay_ms(void)
{
    return READ_ONCE(kill_delay_ms.value);
}

NvU32 uvm_fault_isolation_grace_ms(void)
{
    return READ_ONCE(grace_ms.value);
}

NvU32 uvm_fault_isolation_max_graces(void)
{
    return READ_ONCE(max_graces.value);
}

NvU32 uvm_fault_isolation_test_delay_ms(void)
{
    return uvm_enable_builtin_tests ? READ_ONCE(test_delay_ms.value) : 0;
}

NvU32 uvm_fault_isolation_test_fails(void)
{
    return uvm_enable_builtin_tests ? READ_ONCE(test_fails.value) : 0;
}

bool uvm_fault_isolation_test_self_fails(void)
{
    return uvm_enable_builtin_tests && READ_ONCE(test_self_fails.value);
}

NvU32 uvm_fault_isolation_max_failures(void)
{
    return READ_ONCE(max_failures.value);
}

NvU64 uvm_fault_isolation_max_table_bytes(void)
{
    return (NvU64)READ_ONCE(max_table_kib.value) * 1024;
}

NvU32 uvm_fault_isolation_max_repeats(void)
{
    return READ_ONCE(max_repeats.value);
}
