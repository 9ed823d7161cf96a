// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The GPUs: making them, and the thread that is each one's hardware. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
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

/*
 * The enable registers are words that only the driver sets. Which of two stores between two looks was the last cannot be
 * told; an interrupt too many is then better than one that never comes.
 */
static bool replayable_enabled(struct model_gpu *gpu)
{
	struct model_fault_buffer *faults = &gpu->faults;

	if (xchg(&faults->enable_clear, 0))
		faults->masked = true;
	if (xchg(&faults->enable_set, 0))
		faults->masked = false;
	return !faults->masked;
}

static void interrupt_handler(struct irq_work *work)
{
	struct model_gpu *gpu = container_of(work, struct model_gpu, interrupt);

	if (!replayable_enabled(gpu) && !model_shadow_pending(gpu))
		return;
	gpu->status.interrupts++;
	model_top_half(&gpu->uuid);
}

void model_interrupt(struct model_gpu *gpu)
{
	irq_work_queue(&gpu->interrupt);
}

static bool turn(struct model_gpu *gpu)
{
	u64 now = ktime_get_real_ns();
	bool busy;

	WRITE_ONCE(gpu->time_low, lower_32_bits(now));
	WRITE_ONCE(gpu->time_high, upper_32_bits(now));
	busy = model_host_run(gpu);
	busy |= model_fault_buffer_run(gpu);
	busy |= model_channels_poll(gpu);
	busy |= model_gsp_run(gpu);
	busy |= model_programs_run(gpu);
	return busy;
}

/* The interrupt is a level: as long as a fault waits it comes again. */
static int engine(void *data)
{
	struct model_gpu *gpu = data;
	unsigned int idle = 0;

	while (!kthread_should_stop()) {
		bool busy;

		mutex_lock(&gpu->lock);
		busy = turn(gpu);
		mutex_unlock(&gpu->lock);
		if (busy) {
			idle = 0;
			cond_resched();
			continue;
		}
		if (++idle % 8 == 0 && model_faults_pending(gpu))
			model_interrupt(gpu);
		usleep_range(20, 60);
	}
	return 0;
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

static void gpu_destroy(struct model_gpu *gpu)
{
	if (!gpu)
		return;
	if (gpu->engine)
		kthread_stop(gpu->engine);
	irq_work_sync(&gpu->interrupt);
	model_pages_destroy(&gpu->pma);
	model_pages_destroy(&gpu->heap);
	vfree(gpu->vidmem);
	kvfree(gpu->tlb);
	vfree(gpu->faults.entries);
	pci_dev_put(gpu->pci);
	kfree(gpu);
}

static int gpu_create(u32 index, struct pci_dev *after)
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
	init_irq_work(&gpu->interrupt, interrupt_handler);
	lists_init(gpu);
	gpu->pci = pci_get_device(EDU_VENDOR, EDU_DEVICE, after);
	if (!gpu->pci)
		return -ENODEV;
	dma_set_mask_and_coherent(&gpu->pci->dev, DMA_BIT_MASK(47));
	return memory_init(gpu);
}

static int gpu_start(struct model_gpu *gpu)
{
	struct task_struct *thread = kthread_run(engine, gpu, "gpu-model-%u", gpu->index);

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	gpu->engine = thread;
	return 0;
}

static void gpus_destroy(void)
{
	int i;

	for (i = 0; i < MODEL_GPUS_MAX; i++) {
		gpu_destroy(model_gpus[i]);
		model_gpus[i] = NULL;
	}
}

static int __init model_init(void)
{
	struct pci_dev *after = NULL;
	int error = 0;
	int i;

	for (i = 0; i < clamp(model_settings.gpus, 1, MODEL_GPUS_MAX) && !error; i++) {
		/* pci_get_device() drops the reference of its last argument. */
		error = gpu_create(i, after ? pci_dev_get(after) : NULL);
		if (!error)
			error = gpu_start(model_gpus[i]);
		if (!error)
			after = model_gpus[i]->pci;
	}
	if (!error)
		error = model_control_init();
	if (error)
		gpus_destroy();
	return error;
}

static void __exit model_exit(void)
{
	model_control_exit();
	gpus_destroy();
}

module_init(model_init);
module_exit(model_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("A GPU and its resource manager in software, for nvidia-uvm");
