// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The GPUs that there are: made, found, taken away; each one's random choices and its interrupt line. */
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "model.h"

/* QEMU's edu device: a PCI function with nothing behind it, for DMA mappings. */
#define EDU_VENDOR	0x1234
#define EDU_DEVICE	0x11e8

struct model_gpu *model_gpus[MODEL_GPUS_MAX];

struct model_gpu *model_gpu_find(const NvProcessorUuid *uuid)
{
	int i;

	for (i = 0; i < MODEL_GPUS_MAX; i++)
		if (model_gpus[i] && memcmp(&model_gpus[i]->uuid, uuid, sizeof(*uuid)) == 0)
			return model_gpus[i];
	return NULL;
}

/* xorshift64*: the same seed gives the same choices. */
u32 model_random(struct model_gpu *gpu, u32 below)
{
	gpu->random ^= gpu->random >> 12;
	gpu->random ^= gpu->random << 25;
	gpu->random ^= gpu->random >> 27;
	return (u32)((gpu->random * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

bool model_chance(struct model_gpu *gpu, int percent)
{
	return model_random(gpu, 100) < percent;
}

void model_interrupt(struct model_gpu *gpu)
{
	irq_work_queue(&gpu->interrupt);
}

static void lists_init(struct model_gpu *gpu)
{
	INIT_LIST_HEAD(&gpu->spaces);
	INIT_LIST_HEAD(&gpu->channels);
	INIT_LIST_HEAD(&gpu->groups);
	INIT_LIST_HEAD(&gpu->programs);
	INIT_LIST_HEAD(&gpu->memories);
}

/* Three quarters of video memory are PMA's, the rest is RM's own. */
static int memory_init(struct model_gpu *gpu)
{
	u64 pma = gpu->vidmem_bytes / 4 * 3;
	int error;

	gpu->vidmem = vzalloc(gpu->vidmem_bytes);
	gpu->tlb = kvzalloc(sizeof(*gpu->tlb), GFP_KERNEL);
	gpu->faults.count = clamp_t(u32, model_settings.fault_entries, 32, MODEL_FAULT_BUFFER / MODEL_FAULT_BYTES);
	gpu->faults.entries = vzalloc(MODEL_FAULT_BUFFER);
	if (!gpu->vidmem || !gpu->tlb || !gpu->faults.entries)
		return -ENOMEM;
	error = model_pages_init(&gpu->pma, 0, pma);
	return error ? error : model_pages_init(&gpu->heap, pma, gpu->vidmem_bytes - pma);
}

void model_gpu_destroy(u32 index)
{
	struct model_gpu *gpu = model_gpus[index];

	if (!gpu)
		return;
	irq_work_sync(&gpu->interrupt);
	model_pages_destroy(&gpu->pma);
	model_pages_destroy(&gpu->heap);
	vfree(gpu->vidmem);
	kvfree(gpu->tlb);
	vfree(gpu->faults.entries);
	pci_dev_put(gpu->pci);
	kfree(gpu);
	model_gpus[index] = NULL;
}

int model_gpu_create(u32 index, struct pci_dev *after, void (*interrupt)(struct irq_work *work))
{
	struct model_gpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);

	if (!gpu)
		return -ENOMEM;
	model_gpus[index] = gpu;
	gpu->index = index;
	memcpy(gpu->uuid.uuid, "GPU-MODEL-NO-000", sizeof(gpu->uuid.uuid));
	gpu->uuid.uuid[15] = '0' + index;
	gpu->arch = model_settings.arch ? &model_hopper : &model_turing;
	gpu->vidmem_bytes = (u64)model_settings.vidmem_mib << 20;
	gpu->random = 0x9e3779b97f4a7c15ULL * (model_settings.seed * 2 + index + 1);
	mutex_init(&gpu->lock);
	spin_lock_init(&gpu->shadow.lock);
	init_waitqueue_head(&gpu->changed);
	init_irq_work(&gpu->interrupt, interrupt);
	lists_init(gpu);
	gpu->pci = pci_get_device(EDU_VENDOR, EDU_DEVICE, after);
	if (!gpu->pci)
		return -ENODEV;
	dma_set_mask_and_coherent(&gpu->pci->dev, DMA_BIT_MASK(47));
	return memory_init(gpu);
}
