// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Video memory, the pages of it that are given out, and physical addresses. */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "model.h"

int model_pages_init(struct model_pages *pages, u64 base, u64 bytes)
{
	mutex_init(&pages->lock);
	pages->base = base;
	pages->count = bytes / MODEL_BIG_PAGE;
	pages->used = 0;
	pages->map = bitmap_zalloc(pages->count, GFP_KERNEL);
	return pages->map ? 0 : -ENOMEM;
}

void model_pages_destroy(struct model_pages *pages)
{
	bitmap_free(pages->map);
	pages->map = NULL;
}

bool model_pages_alloc(struct model_pages *pages, u32 count, u32 align, u64 *address)
{
	unsigned long start;

	mutex_lock(&pages->lock);
	start = bitmap_find_next_zero_area(pages->map, pages->count, 0, count, align - 1);
	if (start < pages->count) {
		bitmap_set(pages->map, start, count);
		pages->used += count;
	}
	mutex_unlock(&pages->lock);
	*address = pages->base + start * MODEL_BIG_PAGE;
	return start < pages->count;
}

void model_pages_free(struct model_pages *pages, u64 address, u32 count)
{
	mutex_lock(&pages->lock);
	bitmap_clear(pages->map, (address - pages->base) / MODEL_BIG_PAGE, count);
	pages->used -= count;
	mutex_unlock(&pages->lock);
}

/* How many aligned runs of that many pages are wholly free. */
u32 model_pages_free_runs(struct model_pages *pages, u32 run)
{
	u32 free = 0;
	u32 i;

	for (i = 0; i + run <= pages->count; i += run)
		if (find_next_bit(pages->map, pages->count, i) >= i + run)
			free++;
	return free;
}

/* System memory is what the PCI device's DMA mapping gave UVM, which without an IOMMU is the physical address. */
void *model_phys_to_cpu(struct model_gpu *gpu, struct model_phys phys, u64 size)
{
	if (phys.vidmem)
		return phys.address + size <= gpu->vidmem_bytes ? gpu->vidmem + phys.address : NULL;
	return pfn_valid(phys.address >> PAGE_SHIFT) ? phys_to_virt(phys.address) : NULL;
}

struct model_memory *model_memory_create(struct model_gpu *gpu, u64 size, bool vidmem)
{
	struct model_memory *memory = kzalloc(sizeof(*memory), GFP_KERNEL);
	bool ok;

	if (!memory)
		return NULL;
	kref_init(&memory->references);
	INIT_LIST_HEAD(&memory->node);
	memory->gpu = gpu;
	memory->size = ALIGN(size, MODEL_BIG_PAGE);
	memory->phys.vidmem = vidmem;
	if (vidmem) {
		ok = model_pages_alloc(&gpu->heap, memory->size / MODEL_BIG_PAGE, 1, &memory->phys.address);
		memory->cpu = ok ? gpu->vidmem + memory->phys.address : NULL;
	} else {
		/* Mapped by RM itself: nobody asks for its physical address. */
		memory->cpu = vzalloc(memory->size);
		ok = memory->cpu;
	}
	if (!ok) {
		kfree(memory);
		return NULL;
	}
	memset(memory->cpu, 0, memory->size);
	return memory;
}

static void memory_free(struct kref *references)
{
	struct model_memory *memory = container_of(references, struct model_memory, references);

	if (memory->phys.vidmem)
		model_pages_free(&memory->gpu->heap, memory->phys.address, memory->size / MODEL_BIG_PAGE);
	else
		vfree(memory->cpu);
	kfree(memory);
}

void model_memory_put(struct model_memory *memory)
{
	kref_put(&memory->references, memory_free);
}
