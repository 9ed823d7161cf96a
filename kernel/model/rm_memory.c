// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's user memory: a user's allocation duplicated for UVM, and page-table entries for it. */
#include <linux/module.h>
#include "model.h"
#include "version.h"

static struct model_memory *find(struct model_gpu *gpu, u32 client, u32 handle)
{
	struct model_memory *memory;

	list_for_each_entry(memory, &gpu->memories, node)
		if (memory->client == client && memory->handle == handle)
			return memory;
	return NULL;
}

struct duplicate {
	struct model_memory *memory;
	bool used;
};

#define DUPLICATES_MAX	1024
static struct duplicate duplicates[DUPLICATES_MAX];
static DEFINE_MUTEX(duplicates_lock);

static NvHandle duplicate_add(struct model_memory *memory)
{
	NvHandle handle = 0;
	int i;

	mutex_lock(&duplicates_lock);
	for (i = 0; i < DUPLICATES_MAX && !handle; i++) {
		if (!duplicates[i].used) {
			duplicates[i].used = true;
			duplicates[i].memory = memory;
			handle = i + 1;
		}
	}
	mutex_unlock(&duplicates_lock);
	return handle;
}

static struct model_memory *duplicate_take(NvHandle handle, bool remove)
{
	struct model_memory *memory = NULL;

	mutex_lock(&duplicates_lock);
	if (handle > 0 && handle <= DUPLICATES_MAX && duplicates[handle - 1].used) {
		memory = duplicates[handle - 1].memory;
		duplicates[handle - 1].used = !remove;
	}
	mutex_unlock(&duplicates_lock);
	return memory;
}

static void describe(const struct model_memory *memory, UvmGpuMemoryInfo *info)
{
	memset(info, 0, sizeof(*info));
	info->kind = 6;		/* NV_MMU_PTE_KIND_GENERIC_MEMORY */
	info->sysmem = !memory->phys.vidmem;
	info->deviceDescendant = NV_TRUE;
	info->pageSize = MODEL_BIG_PAGE;
	info->contig = NV_TRUE;
	info->physAddr = memory->phys.address;
	info->size = memory->size;
	info->uuid = memory->gpu->uuid;
}

NV_STATUS nvUvmInterfaceDupMemory(uvmGpuDeviceHandle device, NvHandle client, NvHandle handle, NvHandle *duplicate,
				  UvmGpuMemoryInfo *info)
{
	struct model_gpu *gpu = (struct model_gpu *)device;
	NV_STATUS status = model_injected("DupMemory");
	struct model_memory *memory;

	if (status != NV_OK)
		return status;
	mutex_lock(&gpu->lock);
	memory = find(gpu, client, handle);
	if (memory)
		kref_get(&memory->references);
	mutex_unlock(&gpu->lock);
	if (!memory)
		return NV_ERR_OBJECT_NOT_FOUND;
	*duplicate = duplicate_add(memory);
	if (!*duplicate) {
		model_memory_put(memory);
		return NV_ERR_INSUFFICIENT_RESOURCES;
	}
	if (info)
		describe(memory, info);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceDupMemory);

NV_STATUS nvUvmInterfaceFreeDupedHandle(uvmGpuDeviceHandle device, NvHandle handle)
{
	struct model_memory *memory = duplicate_take(handle, true);
	struct model_gpu *gpu = (struct model_gpu *)device;

	if (READ_ONCE(gpu->asleep)) {
		mutex_lock(&gpu->lock);
		gpu->status.channel_errors++;
		mutex_unlock(&gpu->lock);
	}
	if (!memory)
		return NV_ERR_OBJECT_NOT_FOUND;
	model_memory_put(memory);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceFreeDupedHandle);

NV_STATUS nvUvmInterfaceGetExternalAllocPtes(uvmGpuAddressSpaceHandle handle, NvHandle memory_handle, NvU64 offset,
					     NvU64 size, UvmGpuExternalMappingInfo *info)
{
	struct model_space *space = (struct model_space *)handle;
	struct model_memory *memory = duplicate_take(memory_handle, false);
	NV_STATUS status = model_injected("GetExternalAllocPtes");
	bool read_only = info->mappingType == MODEL_MAPPING_READ_ONLY;
	bool no_atomics = read_only || info->mappingType == MODEL_MAPPING_NO_ATOMICS;
	u64 wanted = size / MODEL_BIG_PAGE;
	u64 fits = info->pteBufferSize / sizeof(u64);
	u64 i;

	if (status != NV_OK)
		return status;
	if (!memory || offset + size > memory->size)
		return NV_ERR_INVALID_ARGUMENT;
	info->numWrittenPtes = min(wanted, fits);
	info->numRemainingPtes = wanted - info->numWrittenPtes;
	info->pteSize = sizeof(u64);
	for (i = 0; i < info->numWrittenPtes; i++) {
		struct model_phys phys = memory->phys;

		phys.address += offset + i * MODEL_BIG_PAGE;
		info->pteBuffer[i] = space->gpu->arch->make_pte(phys, read_only, no_atomics);
	}
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceGetExternalAllocPtes);
