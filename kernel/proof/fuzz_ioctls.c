// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What the fuzzer knows of UVM's requests: their fields, and what a field may sensibly hold. */
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include "branch.h"
#include "fuzz_ioctls.h"
#include "random.h"
#include "uvm_ioctl.h"
#include "uvm_linux_ioctl.h"
#include "uvm_test_ioctl.h"

#define FIELDS_MAX	8
#define ARGUMENT_BYTES	(256 * 1024)	/* more than any request has */
#define MAPPING_TYPES	6
#define HANDLES		24
#define RANGE_GROUPS	4

enum kind {
	NONE,
	ADDRESS,
	LENGTH,
	PROCESSOR,
	CLIENT,
	HANDLE,
	MODEL_FD,
	UVM_FD,
	GROUP,
	SMALL,
	ANY,
	MAPPING,	/* of the first GPU in an array of mapping attributes */
};

struct field {
	uint32_t offset;
	uint8_t size;
	uint8_t kind;
};

struct request {
	unsigned long number;
	struct field fields[FIELDS_MAX];
};

#define F(request, name, what)	{ offsetof(UVM_##request##_PARAMS, name), sizeof(((UVM_##request##_PARAMS *)0)->name) & 0xff, what }
#define ATTRIBUTES(request)	{ offsetof(UVM_##request##_PARAMS, perGpuAttributes), 0, MAPPING }, \
				F(request, gpuAttributesCount, SMALL)
#define SPAN(request)		F(request, base, ADDRESS), F(request, length, LENGTH)
#define REQUESTED(request)	F(request, requestedBase, ADDRESS), F(request, length, LENGTH)

static const struct request requests[] = {
	{ UVM_REGISTER_GPU, { F(REGISTER_GPU, gpu_uuid, PROCESSOR), F(REGISTER_GPU, rmCtrlFd, MODEL_FD) } },
	{ UVM_UNREGISTER_GPU, { F(UNREGISTER_GPU, gpu_uuid, PROCESSOR) } },
	{ UVM_REGISTER_GPU_VASPACE, { F(REGISTER_GPU_VASPACE, gpuUuid, PROCESSOR),
	  F(REGISTER_GPU_VASPACE, rmCtrlFd, MODEL_FD), F(REGISTER_GPU_VASPACE, hClient, CLIENT),
	  F(REGISTER_GPU_VASPACE, hVaSpace, SMALL) } },
	{ UVM_UNREGISTER_GPU_VASPACE, { F(UNREGISTER_GPU_VASPACE, gpuUuid, PROCESSOR) } },
	{ UVM_REGISTER_CHANNEL, { F(REGISTER_CHANNEL, gpuUuid, PROCESSOR), F(REGISTER_CHANNEL, rmCtrlFd, MODEL_FD),
	  F(REGISTER_CHANNEL, hClient, CLIENT), F(REGISTER_CHANNEL, hChannel, SMALL), SPAN(REGISTER_CHANNEL) } },
	{ UVM_UNREGISTER_CHANNEL, { F(UNREGISTER_CHANNEL, hClient, CLIENT), F(UNREGISTER_CHANNEL, hChannel, SMALL),
#if PROOF_BRANCH < 580
	  F(UNREGISTER_CHANNEL, gpuUuid, PROCESSOR),
#endif
	} },
	{ UVM_ENABLE_PEER_ACCESS, { F(ENABLE_PEER_ACCESS, gpuUuidA, PROCESSOR),
	  F(ENABLE_PEER_ACCESS, gpuUuidB, PROCESSOR) } },
	{ UVM_CREATE_RANGE_GROUP, { { 0 } } },
	{ UVM_DESTROY_RANGE_GROUP, { F(DESTROY_RANGE_GROUP, rangeGroupId, GROUP) } },
	{ UVM_SET_RANGE_GROUP, { F(SET_RANGE_GROUP, rangeGroupId, GROUP), REQUESTED(SET_RANGE_GROUP) } },
	{ UVM_PREVENT_MIGRATION_RANGE_GROUPS, { F(PREVENT_MIGRATION_RANGE_GROUPS, rangeGroupIds[0], GROUP),
	  F(PREVENT_MIGRATION_RANGE_GROUPS, numGroupIds, SMALL) } },
	{ UVM_ALLOW_MIGRATION_RANGE_GROUPS, { F(ALLOW_MIGRATION_RANGE_GROUPS, rangeGroupIds[0], GROUP),
	  F(ALLOW_MIGRATION_RANGE_GROUPS, numGroupIds, SMALL) } },
	{ UVM_MIGRATE_RANGE_GROUP, { F(MIGRATE_RANGE_GROUP, rangeGroupId, GROUP),
	  F(MIGRATE_RANGE_GROUP, destinationUuid, PROCESSOR) } },
	{ UVM_SET_PREFERRED_LOCATION, { REQUESTED(SET_PREFERRED_LOCATION),
	  F(SET_PREFERRED_LOCATION, preferredLocation, PROCESSOR) } },
	{ UVM_UNSET_PREFERRED_LOCATION, { REQUESTED(UNSET_PREFERRED_LOCATION) } },
	{ UVM_ENABLE_READ_DUPLICATION, { REQUESTED(ENABLE_READ_DUPLICATION) } },
	{ UVM_DISABLE_READ_DUPLICATION, { REQUESTED(DISABLE_READ_DUPLICATION) } },
	{ UVM_SET_ACCESSED_BY, { REQUESTED(SET_ACCESSED_BY), F(SET_ACCESSED_BY, accessedByUuid, PROCESSOR) } },
	{ UVM_UNSET_ACCESSED_BY, { REQUESTED(UNSET_ACCESSED_BY), F(UNSET_ACCESSED_BY, accessedByUuid, PROCESSOR) } },
	{ UVM_MIGRATE, { SPAN(MIGRATE), F(MIGRATE, destinationUuid, PROCESSOR), F(MIGRATE, flags, SMALL) } },
	{ UVM_MAP_EXTERNAL_ALLOCATION, { SPAN(MAP_EXTERNAL_ALLOCATION), ATTRIBUTES(MAP_EXTERNAL_ALLOCATION),
	  F(MAP_EXTERNAL_ALLOCATION, rmCtrlFd, MODEL_FD), F(MAP_EXTERNAL_ALLOCATION, hClient, CLIENT),
	  F(MAP_EXTERNAL_ALLOCATION, hMemory, HANDLE) } },
	{ UVM_UNMAP_EXTERNAL, { SPAN(UNMAP_EXTERNAL), F(UNMAP_EXTERNAL, gpuUuid, PROCESSOR) } },
	{ UVM_CREATE_EXTERNAL_RANGE, { SPAN(CREATE_EXTERNAL_RANGE) } },
	{ UVM_MAP_EXTERNAL_SPARSE, { SPAN(MAP_EXTERNAL_SPARSE), F(MAP_EXTERNAL_SPARSE, gpuUuid, PROCESSOR) } },
#if PROOF_BRANCH < 580
	{ UVM_FREE, { SPAN(FREE) } },
	{ UVM_ENABLE_SYSTEM_WIDE_ATOMICS, { F(ENABLE_SYSTEM_WIDE_ATOMICS, gpu_uuid, PROCESSOR) } },
	{ UVM_DISABLE_SYSTEM_WIDE_ATOMICS, { F(DISABLE_SYSTEM_WIDE_ATOMICS, gpu_uuid, PROCESSOR) } },
#else
	{ UVM_FREE, { F(FREE, base, ADDRESS) } },
#endif
	{ UVM_ALLOC_SEMAPHORE_POOL, { SPAN(ALLOC_SEMAPHORE_POOL), ATTRIBUTES(ALLOC_SEMAPHORE_POOL) } },
	{ UVM_MAP_DYNAMIC_PARALLELISM_REGION, { SPAN(MAP_DYNAMIC_PARALLELISM_REGION),
	  F(MAP_DYNAMIC_PARALLELISM_REGION, gpuUuid, PROCESSOR) } },
	{ UVM_VALIDATE_VA_RANGE, { SPAN(VALIDATE_VA_RANGE) } },
	{ UVM_CLEAN_UP_ZOMBIE_RESOURCES, { { 0 } } },
	{ UVM_PAGEABLE_MEM_ACCESS, { { 0 } } },
	{ UVM_POPULATE_PAGEABLE, { SPAN(POPULATE_PAGEABLE) } },
	{ UVM_MM_INITIALIZE, { F(MM_INITIALIZE, uvmFd, UVM_FD) } },
	{ UVM_TOOLS_READ_PROCESS_MEMORY, { F(TOOLS_READ_PROCESS_MEMORY, buffer, ADDRESS),
	  F(TOOLS_READ_PROCESS_MEMORY, size, LENGTH), F(TOOLS_READ_PROCESS_MEMORY, targetVa, ADDRESS) } },
	{ UVM_TOOLS_WRITE_PROCESS_MEMORY, { F(TOOLS_WRITE_PROCESS_MEMORY, buffer, ADDRESS),
	  F(TOOLS_WRITE_PROCESS_MEMORY, size, LENGTH), F(TOOLS_WRITE_PROCESS_MEMORY, targetVa, ADDRESS) } },
	{ UVM_TOOLS_INIT_EVENT_TRACKER, { F(TOOLS_INIT_EVENT_TRACKER, queueBuffer, ADDRESS),
	  F(TOOLS_INIT_EVENT_TRACKER, queueBufferSize, SMALL), F(TOOLS_INIT_EVENT_TRACKER, controlBuffer, ADDRESS),
	  F(TOOLS_INIT_EVENT_TRACKER, processor, PROCESSOR), F(TOOLS_INIT_EVENT_TRACKER, uvmFd, UVM_FD) } },
	{ UVM_TOOLS_FLUSH_EVENTS, { { 0 } } },
	{ UVM_TEST_VA_BLOCK_INJECT_ERROR, { F(TEST_VA_BLOCK_INJECT_ERROR, lookup_address, ADDRESS),
	  F(TEST_VA_BLOCK_INJECT_ERROR, page_table_allocation_retry_force_count, SMALL),
	  F(TEST_VA_BLOCK_INJECT_ERROR, user_pages_allocation_retry_force_count, SMALL),
	  F(TEST_VA_BLOCK_INJECT_ERROR, populate_error, SMALL) } },
	{ UVM_TEST_FLUSH_DEFERRED_WORK, { { 0 } } },
};
#define REQUESTS	(sizeof(requests) / sizeof(requests[0]))

uint64_t fuzz_address(uint64_t *state)
{
	static const uint64_t bases[] = { 0x300000000, 0x304000000, 0x308000000, 0x400000000, 0x401000000, 0x500000000000 };
	static const uint64_t units[] = { 1, 4096, 0x10000, 0x200000 };
	uint64_t base = bases[random_next(state, sizeof(bases) / sizeof(bases[0]))];
	uint64_t unit = units[random_next(state, random_next(state, 10) ? 4 : 1) | (random_next(state, 20) ? 1 : 0)];

	return base + unit * random_next(state, 8);
}

static uint64_t length(uint64_t *state)
{
	static const uint64_t units[] = { 4096, 0x10000, 0x200000, 0x200000 };

	return units[random_next(state, 4)] * (1 + random_next(state, 4));
}

static NvProcessorUuid processor(uint64_t *state)
{
	if (random_next(state, 4) == 0)
		return NV_PROCESSOR_UUID_CPU_DEFAULT;
	return gpu_uuid(random_next(state, 16) == 0);
}

static void fill_mapping(uint8_t *argument, uint64_t *state)
{
	UvmGpuMappingAttributes attributes = {
		.gpuUuid = processor(state),
		.gpuMappingType = random_next(state, MAPPING_TYPES),
	};

	memcpy(argument, &attributes, sizeof(attributes));
}

static uint64_t number(struct client *client, enum kind kind, uint64_t *state)
{
	switch (kind) {
	case ADDRESS:
		return fuzz_address(state);
	case LENGTH:
		return length(state);
	case CLIENT:
		return random_next(state, 16) ? client->number : random_next(state, 8);
	case HANDLE:
		return 1 + random_next(state, HANDLES);
	case MODEL_FD:
		return (uint32_t)(random_next(state, 16) ? client->model : (int)random_next(state, 12) - 1);
	case UVM_FD:
		return (uint32_t)(random_next(state, 4) ? client->uvm : (int)random_next(state, 12) - 1);
	case GROUP:
		return 1 + random_next(state, RANGE_GROUPS);
	case SMALL:
		return random_next(state, 4);
	default:
		return (uint64_t)random_next(state, UINT32_MAX) << 32 | random_next(state, UINT32_MAX);
	}
}

static void fill(struct client *client, const struct field *field, uint8_t *argument, uint64_t *state)
{
	NvProcessorUuid uuid;
	uint64_t value;

	if (field->kind == MAPPING) {
		fill_mapping(argument + field->offset, state);
	} else if (field->kind == PROCESSOR) {
		uuid = processor(state);
		memcpy(argument + field->offset, &uuid, sizeof(uuid));
	} else if (field->kind != NONE) {
		value = number(client, random_next(state, 40) ? field->kind : ANY, state);
		memcpy(argument + field->offset, &value, field->size <= sizeof(value) ? field->size : sizeof(value));
	}
}

void fuzz_ioctl(struct client *client, int tools, bool may_unregister, uint64_t *state)
{
	static uint8_t argument[ARGUMENT_BYTES];
	const struct request *request = &requests[random_next(state, REQUESTS)];
	int descriptors[] = { client->uvm, client->uvm, client->uvm, client->uvm, client->uvm, client->mm, tools };
	unsigned long number;
	uint32_t i;

	memset(argument, 0, sizeof(argument));
	for (i = 0; i < FIELDS_MAX; i++)
		fill(client, &request->fields[i], argument, state);
	i = request->number >= UVM_TOOLS_INIT_EVENT_TRACKER && request->number <= UVM_TOOLS_WRITE_PROCESS_MEMORY ?
	    6 : random_next(state, 7);
	number = random_next(state, 60) ? request->number : random_next(state, 80);
	if (number != UVM_UNREGISTER_GPU || may_unregister)
		ioctl(descriptors[i], number, argument);
}
