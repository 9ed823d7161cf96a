// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's physical memory allocator. It never calls UVM's eviction callbacks: nobody else allocates here. */
#include <linux/module.h>
#include <linux/sizes.h>
#include "model.h"

static u32 pages_of(NvU64 page_size)
{
	return max_t(u64, page_size / MODEL_BIG_PAGE, 1);
}

static void update_statistics(struct model_gpu *gpu)
{
	gpu->pma_statistics.numPages2m = gpu->pma.count / (SZ_2M / MODEL_BIG_PAGE);
	gpu->pma_statistics.numFreePages64k = gpu->pma.count - gpu->pma.used;
	gpu->pma_statistics.numFreePages2m = model_pages_free_runs(&gpu->pma, SZ_2M / MODEL_BIG_PAGE);
}

NV_STATUS nvUvmInterfaceGetPmaObject(uvmGpuDeviceHandle device, void **pma, const UvmPmaStatistics **statistics)
{
	struct model_gpu *gpu = (struct model_gpu *)device;

	update_statistics(gpu);
	*pma = gpu;
	*statistics = &gpu->pma_statistics;
	return model_injected("GetPmaObject");
}
EXPORT_SYMBOL(nvUvmInterfaceGetPmaObject);

NV_STATUS nvUvmInterfacePmaRegisterEvictionCallbacks(void *pma, uvmPmaEvictPagesCallback pages,
						     uvmPmaEvictRangeCallback range, void *data)
{
	return model_injected("PmaRegisterEvictionCallbacks");
}
EXPORT_SYMBOL(nvUvmInterfacePmaRegisterEvictionCallbacks);

void nvUvmInterfacePmaUnregisterEvictionCallbacks(void *pma)
{
}
EXPORT_SYMBOL(nvUvmInterfacePmaUnregisterEvictionCallbacks);

static NvLength allocate_scattered(struct model_gpu *gpu, NvLength count, u32 each, NvU64 *pages)
{
	NvLength i;

	for (i = 0; i < count; i++)
		if (!model_pages_alloc(&gpu->pma, each, each, &pages[i]))
			break;
	return i;
}

/* UVM asks for many at a time and takes what there is. */
static NvLength allocate(struct model_gpu *gpu, NvLength count, u32 each, u32 flags, NvU64 *pages)
{
	NvLength got;

	if (flags & UVM_PMA_ALLOCATE_CONTIGUOUS)
		return model_pages_alloc(&gpu->pma, count * each, each, pages) ? count : 0;
	got = allocate_scattered(gpu, count, each, pages);
	if (got == count || (flags & UVM_PMA_ALLOCATE_ALLOW_PARTIAL))
		return got;
	while (got)
		model_pages_free(&gpu->pma, pages[--got], each);
	return 0;
}

NV_STATUS nvUvmInterfacePmaAllocPages(void *pma, NvLength count, NvU64 page_size, UvmPmaAllocationOptions *options,
				      NvU64 *pages)
{
	struct model_gpu *gpu = pma;
	NV_STATUS status = model_injected("PmaAllocPages");

	if (status != NV_OK)
		return status;
	options->numPagesAllocated = allocate(gpu, count, pages_of(page_size), options->flags, pages);
	options->resultFlags = 0;
	update_statistics(gpu);
	return options->numPagesAllocated ? NV_OK : NV_ERR_NO_MEMORY;
}
EXPORT_SYMBOL(nvUvmInterfacePmaAllocPages);

NV_STATUS nvUvmInterfacePmaPinPages(void *pma, NvU64 *pages, NvLength count, NvU64 page_size, NvU32 flags)
{
	return model_injected("PmaPinPages");
}
EXPORT_SYMBOL(nvUvmInterfacePmaPinPages);

void nvUvmInterfacePmaFreePages(void *pma, NvU64 *pages, NvLength count, NvU64 page_size, NvU32 flags)
{
	struct model_gpu *gpu = pma;
	NvLength i;

	for (i = 0; i < count; i++)
		model_pages_free(&gpu->pma, pages[i], pages_of(page_size));
	update_statistics(gpu);
}
EXPORT_SYMBOL(nvUvmInterfacePmaFreePages);
