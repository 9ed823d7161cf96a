// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What UVM registered to be called for: interrupts, suspend and resume. */
#include <linux/module.h>
#include "model.h"
#include "version.h"

static model_events_t *events;

#ifdef MODEL_HAS_EVENTS_LINUX
NV_STATUS nvUvmInterfaceRegisterUvmEvents(struct UvmEventsLinux *registered)
#else
NV_STATUS nvUvmInterfaceRegisterUvmCallbacks(struct UvmOpsUvmEvents *registered)
#endif
{
	WRITE_ONCE(events, registered);
	return model_injected("RegisterUvmCallbacks");
}

#ifdef MODEL_HAS_EVENTS_LINUX
EXPORT_SYMBOL(nvUvmInterfaceRegisterUvmEvents);

void nvUvmInterfaceDeRegisterUvmEvents(void)
{
	WRITE_ONCE(events, NULL);
}
EXPORT_SYMBOL(nvUvmInterfaceDeRegisterUvmEvents);
#else
EXPORT_SYMBOL(nvUvmInterfaceRegisterUvmCallbacks);

void nvUvmInterfaceDeRegisterUvmOps(void)
{
	WRITE_ONCE(events, NULL);
}
EXPORT_SYMBOL(nvUvmInterfaceDeRegisterUvmOps);
#endif

void model_top_half(const NvProcessorUuid *uuid)
{
	model_events_t *callbacks = READ_ONCE(events);

	if (callbacks && callbacks->isrTopHalf)
		callbacks->isrTopHalf(uuid);
}

static void freeze(bool suspended)
{
	struct model_program *program;
	u32 gpu_index, i;

	for (gpu_index = 0; gpu_index < MODEL_GPUS_MAX; gpu_index++) {
		struct model_gpu *gpu = model_gpus[gpu_index];

		if (!gpu)
			continue;
		mutex_lock(&gpu->lock);
		gpu->suspended = suspended;
		/* Preempted work forgets its faults and meets them again. */
		list_for_each_entry(program, &gpu->programs, node)
			for (i = 0; suspended && i < program->lanes && program->channel->engine == GPU_MODEL_ENGINE_SM; i++)
				if (program->lane[i].state == MODEL_LANE_FAULTED)
					program->lane[i].state = MODEL_LANE_READY;
		mutex_unlock(&gpu->lock);
	}
}

static void set_asleep(bool asleep)
{
	u32 gpu_index;

	for (gpu_index = 0; gpu_index < MODEL_GPUS_MAX; gpu_index++)
		if (model_gpus[gpu_index])
			WRITE_ONCE(model_gpus[gpu_index]->asleep, asleep);
}

int model_power(bool suspend)
{
	model_events_t *callbacks = READ_ONCE(events);
	NV_STATUS status;

	if (!callbacks)
		return -ENODEV;
	if (suspend)
		freeze(true);
	else
		set_asleep(false);
	status = suspend ? callbacks->suspend() : callbacks->resume();
	if (suspend && status == NV_OK)
		set_asleep(true);
	if (!suspend)
		freeze(false);
	return status == NV_OK ? 0 : -EIO;
}
