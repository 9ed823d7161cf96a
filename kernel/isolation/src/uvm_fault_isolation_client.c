// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What isolation knows of one VA space: made with it, told of its mappings, gone with it.
#include <linux/sched/mm.h>
#include "uvm_fault_isolation_internal.h"

void uvm_fault_isolation_client_create(uvm_va_space_t *va_space)
{
    uvm_fault_isolation_client_t *client = uvm_kvmalloc_zero(sizeof(*client));

    if (!client)
        return;

    client->va_space = va_space;
    client->process = get_pid(task_tgid(current));
    client->mm = current->mm;
    mmgrab(client->mm);
    client->user = current_uid();
    client->cgroup = uvm_fault_isolation_cgroup_get();
    get_task_comm(client->command, current->group_leader);
    uvm_mutex_init(&client->lock, UVM_LOCK_ORDER_FAULT_ISOLATION);
    uvm_fault_isolation_book_init(&client->made, client, false);
    uvm_fault_isolation_book_init(&client->foreseen, client, true);
    uvm_fault_isolation_end_client_init(client);
    uvm_fault_isolation_external_client_init(client);

    va_space->fault_isolation = client;
    uvm_fault_isolation_log_clients(1);
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
    uvm_fault_isolation_external_client_deinit(client);
    UVM_ASSERT(list_empty(&client->made.spaces) && list_empty(&client->foreseen.spaces));
    if (client->cgroup)
        uvm_fault_isolation_cgroup_put(client->cgroup);

    mmdrop(client->mm);
    put_pid(client->process);
    uvm_kvfree(client);
    uvm_fault_isolation_log_clients(-1);
    va_space->fault_isolation = NULL;
}
