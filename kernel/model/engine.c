// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The module: the thread that is each GPU's hardware, and what raises its interrupt. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/pci.h>
#include "model.h"

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

/* Who has had nothing to do for some 50 ms looks more seldom: an emulated processor that only looks costs a real one. */
#define RESTLESS_TURNS	500

static void nap(unsigned int idle_turns)
{
	if (idle_turns < RESTLESS_TURNS)
		usleep_range(20, 60);
	else
		usleep_range(500, 1000);
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
		if (++idle % 8 == 0 && model_faults_pending(gpu)) {
			model_interrupt(gpu);
			idle = 0;
		}
		nap(idle);
	}
	return 0;
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
		if (model_gpus[i] && model_gpus[i]->engine)
			kthread_stop(model_gpus[i]->engine);
		model_gpu_destroy(i);
	}
}

static int __init model_init(void)
{
	struct pci_dev *after = NULL;
	int error = 0;
	int i;

	for (i = 0; i < clamp(model_settings.gpus, 1, MODEL_GPUS_MAX) && !error; i++) {
		/* pci_get_device() drops the reference of its last argument. */
		error = model_gpu_create(i, after ? pci_dev_get(after) : NULL, interrupt_handler);
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
MODULE_VERSION(NV_VERSION_STRING); /* as nvidia.ko has it */
MODULE_DESCRIPTION("A GPU and its resource manager in software, for nvidia-uvm");
