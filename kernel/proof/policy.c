// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Where managed pages are and may be: UVM's requests for it. */
#include <sys/ioctl.h>
#include "branch.h"
#include "check.h"
#include "client.h"
#include "uvm_ioctl.h"
#include "uvm_linux_ioctl.h"
#include "uvm_test_ioctl.h"

#define BLOCK	(2 * PROOF_MIB)

static NvProcessorUuid place(struct client *client, bool on_gpu)
{
	return on_gpu ? gpu_uuid(client->gpu) : NV_PROCESSOR_UUID_CPU_DEFAULT;
}

void migrate(struct client *client, void *address, size_t size, bool to_gpu)
{
	UVM_MIGRATE_PARAMS params = {
		.base = (uintptr_t)address,
		.length = size,
		.destinationUuid = place(client, to_gpu),
	};

	check("UVM_MIGRATE", ioctl(client->uvm, UVM_MIGRATE, &params), params.rmStatus);
}

void set_preferred_location(struct client *client, void *address, size_t size, bool on_gpu)
{
	UVM_SET_PREFERRED_LOCATION_PARAMS params = {
		.requestedBase = (uintptr_t)address,
		.length = size,
		.preferredLocation = place(client, on_gpu),
	};

	check("UVM_SET_PREFERRED_LOCATION", ioctl(client->uvm, UVM_SET_PREFERRED_LOCATION, &params), params.rmStatus);
}

void enable_read_duplication(struct client *client, void *address, size_t size)
{
	UVM_ENABLE_READ_DUPLICATION_PARAMS params = { .requestedBase = (uintptr_t)address, .length = size };

	check("UVM_ENABLE_READ_DUPLICATION", ioctl(client->uvm, UVM_ENABLE_READ_DUPLICATION, &params), params.rmStatus);
}

uint32_t try_keep_in_place(struct client *client, void *address, size_t size)
{
	UVM_CREATE_RANGE_GROUP_PARAMS group = { 0 };
	UVM_SET_RANGE_GROUP_PARAMS members = { .requestedBase = (uintptr_t)address, .length = size };
	UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS prevent = { .numGroupIds = 1 };
	int result;

	check("UVM_CREATE_RANGE_GROUP", ioctl(client->uvm, UVM_CREATE_RANGE_GROUP, &group), group.rmStatus);
	members.rangeGroupId = group.rangeGroupId;
	check("UVM_SET_RANGE_GROUP", ioctl(client->uvm, UVM_SET_RANGE_GROUP, &members), members.rmStatus);
	prevent.rangeGroupIds[0] = group.rangeGroupId;
	result = ioctl(client->uvm, UVM_PREVENT_MIGRATION_RANGE_GROUPS, &prevent);
	check("UVM_PREVENT_MIGRATION_RANGE_GROUPS", result, 0);
	return prevent.rmStatus;
}

void keep_in_place(struct client *client, void *address, size_t size)
{
	check("UVM_PREVENT_MIGRATION_RANGE_GROUPS", 0, try_keep_in_place(client, address, size));
}

void fail_cpu_pages(struct client *client, void *address, size_t size)
{
	uint64_t block;

	for (block = (uintptr_t)address; block < (uintptr_t)address + size; block += BLOCK) {
		UVM_TEST_VA_BLOCK_INJECT_ERROR_PARAMS params = {
			.lookup_address = block,
			.CPU_ERROR_COUNT = UINT32_MAX,
		};

		check("UVM_TEST_VA_BLOCK_INJECT_ERROR", ioctl(client->uvm, UVM_TEST_VA_BLOCK_INJECT_ERROR, &params),
		      params.rmStatus);
	}
}
