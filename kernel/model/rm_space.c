// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's address spaces, and the allocations that RM maps into them by itself. */
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "model.h"
#include "version.h"

/* RM's own mappings begin here, above what a user would place at a fixed address. */
#define RM_FIRST_ADDRESS	(4ULL << 30)

static NV_STATUS space_create(struct model_gpu *gpu, bool user, uvmGpuAddressSpaceHandle *handle,
			      UvmGpuAddressSpaceInfo *info)
{
	struct model_space *space = kzalloc(sizeof(*space), GFP_KERNEL);

	if (!space)
		return NV_ERR_NO_MEMORY;
	INIT_LIST_HEAD(&space->allocations);
	space->gpu = gpu;
	space->user = user;
	space->next_address = RM_FIRST_ADDRESS;
	memset(info, 0, sizeof(*info));
	info->bigPageSize = MODEL_BIG_PAGE;
	info->time0Offset = &gpu->time_low;
	info->time1Offset = &gpu->time_high;
	info->maxSubctxCount = MODEL_SUBCONTEXTS;
	mutex_lock(&gpu->lock);
	list_add(&space->node, &gpu->spaces);
	gpu->status.spaces++;
	mutex_unlock(&gpu->lock);
	*handle = (uvmGpuAddressSpaceHandle)space;
	return NV_OK;
}

NV_STATUS nvUvmInterfaceAddressSpaceCreate(uvmGpuDeviceHandle device, unsigned long long base, unsigned long long size,
#ifdef MODEL_HAS_SPACE_ATS
					   NvBool ats,
#endif
					   uvmGpuAddressSpaceHandle *space, UvmGpuAddressSpaceInfo *info)
{
	NV_STATUS status = model_injected("AddressSpaceCreate");

	return status != NV_OK ? status : space_create((struct model_gpu *)device, false, space, info);
}
EXPORT_SYMBOL(nvUvmInterfaceAddressSpaceCreate);

NV_STATUS nvUvmInterfaceDupAddressSpace(uvmGpuDeviceHandle device, NvHandle client, NvHandle handle,
					uvmGpuAddressSpaceHandle *space, UvmGpuAddressSpaceInfo *info)
{
	NV_STATUS status = model_injected("DupAddressSpace");

	return status != NV_OK ? status : space_create((struct model_gpu *)device, true, space, info);
}
EXPORT_SYMBOL(nvUvmInterfaceDupAddressSpace);

/* Channels may outlive their space by a little: their accesses then find no page directory. */
void nvUvmInterfaceAddressSpaceDestroy(uvmGpuAddressSpaceHandle handle)
{
	struct model_space *space = (struct model_space *)handle;
	struct model_channel *channel;
	struct model_gpu *gpu;

	if (!space)
		return;
	gpu = space->gpu;
	mutex_lock(&gpu->lock);
	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->space == space)
			channel->space = NULL;
	list_del(&space->node);
	gpu->status.spaces--;
	mutex_unlock(&gpu->lock);
	WARN_ON(!list_empty(&space->allocations));
	kfree(space);
}
EXPORT_SYMBOL(nvUvmInterfaceAddressSpaceDestroy);

static NV_STATUS set_directory(uvmGpuAddressSpaceHandle handle, u64 address, bool vidmem)
{
	struct model_space *space = (struct model_space *)handle;
	NV_STATUS status = model_injected("SetPageDirectory");

	if (status != NV_OK)
		return status;
	mutex_lock(&space->gpu->lock);
	space->directory.address = address;
	space->directory.vidmem = vidmem;
	space->has_directory = true;
	/* RM invalidates when it binds a directory. */
	model_tlb_invalidate(space->gpu, model_directory_key(space->directory), true, 0, 0, MODEL_LEVELS_MAX);
	mutex_unlock(&space->gpu->lock);
	return NV_OK;
}

#ifdef MODEL_HAS_DIRECTORY_DMA
NV_STATUS nvUvmInterfaceSetPageDirectory(uvmGpuAddressSpaceHandle space, NvU64 address, unsigned int entries,
					 NvBool vidmem, NvU32 pasid, NvU64 *dma)
{
	if (dma)
		*dma = address;
	return set_directory(space, address, vidmem);
}
#else
NV_STATUS nvUvmInterfaceSetPageDirectory(uvmGpuAddressSpaceHandle space, NvU64 address, unsigned int entries,
					 NvBool vidmem, NvU32 pasid)
{
	return set_directory(space, address, vidmem);
}
#endif
EXPORT_SYMBOL(nvUvmInterfaceSetPageDirectory);

NV_STATUS nvUvmInterfaceUnsetPageDirectory(uvmGpuAddressSpaceHandle handle)
{
	struct model_space *space = (struct model_space *)handle;

	mutex_lock(&space->gpu->lock);
	space->has_directory = false;
	model_log(space->gpu, "page directory gone", space->directory.address, space->user, 0);
	mutex_unlock(&space->gpu->lock);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceUnsetPageDirectory);

static u64 allocation_map(struct model_space *space, struct model_allocation *allocation, u64 align)
{
	struct model_gpu *gpu = space->gpu;

	mutex_lock(&gpu->lock);
	allocation->address = ALIGN(space->next_address, max_t(u64, align, SZ_2M));
	allocation->size = allocation->memory->size;
	space->next_address = allocation->address + allocation->size;
	list_add(&allocation->node, &space->allocations);
	gpu->status.rm_allocations++;
	mutex_unlock(&gpu->lock);
	return allocation->address;
}

static NV_STATUS allocate(uvmGpuAddressSpaceHandle handle, NvLength size, UvmGpuPointer *pointer, UvmGpuAllocInfo *info,
			  bool vidmem)
{
	struct model_space *space = (struct model_space *)handle;
	struct model_allocation *allocation = kzalloc(sizeof(*allocation), GFP_KERNEL);

	if (!allocation)
		return NV_ERR_NO_MEMORY;
	allocation->memory = model_memory_create(space->gpu, size, vidmem);
	if (!allocation->memory) {
		kfree(allocation);
		return NV_ERR_NO_MEMORY;
	}
	*pointer = allocation_map(space, allocation, info ? info->alignment : 0);
	if (info)
		info->gpuPhysOffset = allocation->memory->phys.address;
	return NV_OK;
}

NV_STATUS nvUvmInterfaceMemoryAllocFB(uvmGpuAddressSpaceHandle space, NvLength size, UvmGpuPointer *pointer,
				      UvmGpuAllocInfo *info)
{
	NV_STATUS status = model_injected("MemoryAllocFB");

	return status != NV_OK ? status : allocate(space, size, pointer, info, true);
}
EXPORT_SYMBOL(nvUvmInterfaceMemoryAllocFB);

NV_STATUS nvUvmInterfaceMemoryAllocSys(uvmGpuAddressSpaceHandle space, NvLength size, UvmGpuPointer *pointer,
				       UvmGpuAllocInfo *info)
{
	NV_STATUS status = model_injected("MemoryAllocSys");

	return status != NV_OK ? status : allocate(space, size, pointer, info, false);
}
EXPORT_SYMBOL(nvUvmInterfaceMemoryAllocSys);

static struct model_allocation *find(struct model_space *space, u64 address)
{
	struct model_allocation *allocation;

	list_for_each_entry(allocation, &space->allocations, node)
		if (allocation->address == address)
			return allocation;
	return NULL;
}

void nvUvmInterfaceMemoryFree(uvmGpuAddressSpaceHandle handle, UvmGpuPointer pointer)
{
	struct model_space *space = (struct model_space *)handle;
	struct model_allocation *allocation;

	mutex_lock(&space->gpu->lock);
	allocation = find(space, pointer);
	if (allocation) {
		list_del(&allocation->node);
		space->gpu->status.rm_allocations--;
	}
	mutex_unlock(&space->gpu->lock);
	if (WARN_ON(!allocation))
		return;
	model_memory_put(allocation->memory);
	kfree(allocation);
}
EXPORT_SYMBOL(nvUvmInterfaceMemoryFree);

#ifdef MODEL_HAS_CPU_MAP_U64
NV_STATUS nvUvmInterfaceMemoryCpuMap(uvmGpuAddressSpaceHandle handle, UvmGpuPointer pointer, NvLength size, void **cpu,
				     NvU64 page_size)
#else
NV_STATUS nvUvmInterfaceMemoryCpuMap(uvmGpuAddressSpaceHandle handle, UvmGpuPointer pointer, NvLength size, void **cpu,
				     NvU32 page_size)
#endif
{
	struct model_space *space = (struct model_space *)handle;
	NV_STATUS status = model_injected("MemoryCpuMap");
	struct model_allocation *allocation;

	if (status != NV_OK)
		return status;
	mutex_lock(&space->gpu->lock);
	allocation = find(space, pointer);
	mutex_unlock(&space->gpu->lock);
	if (!allocation)
		return NV_ERR_INVALID_ADDRESS;
	*cpu = allocation->memory->cpu;
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceMemoryCpuMap);

void nvUvmInterfaceMemoryCpuUnMap(uvmGpuAddressSpaceHandle space, void *cpu)
{
}
EXPORT_SYMBOL(nvUvmInterfaceMemoryCpuUnMap);

NV_STATUS nvUvmInterfaceDupAllocation(uvmGpuAddressSpaceHandle from, NvU64 address, uvmGpuAddressSpaceHandle to,
				      NvU64 align, NvU64 *result)
{
	struct model_space *space = (struct model_space *)from;
	struct model_allocation *copy = kzalloc(sizeof(*copy), GFP_KERNEL);
	NV_STATUS status = model_injected("DupAllocation");
	struct model_allocation *original;

	if (!copy)
		return NV_ERR_NO_MEMORY;
	mutex_lock(&space->gpu->lock);
	original = find(space, address);
	if (original && status == NV_OK) {
		copy->memory = original->memory;
		kref_get(&copy->memory->references);
	}
	mutex_unlock(&space->gpu->lock);
	if (!copy->memory) {
		kfree(copy);
		return status != NV_OK ? status : NV_ERR_INVALID_ADDRESS;
	}
	*result = allocation_map((struct model_space *)to, copy, align);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceDupAllocation);
