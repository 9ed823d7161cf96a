// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The replayable fault buffer: entries as class C369 lays them out, GET and PUT as plain words that UVM maps. */
#include <linux/ktime.h>
#include "model.h"
#include "nvmisc.h"
#if __has_include("hwref/volta/gv100/dev_fb.h") /* branch 595 has no Volta any more */
#include "hwref/volta/gv100/dev_fb.h"
#else
#include "hwref/turing/tu102/dev_fb.h"
#endif

#define SM_PER_GPC	4

static u32 get_index(struct model_gpu *gpu)
{
	return DRF_VAL(_PFB, _PRI_MMU_FAULT_BUFFER_GET, _PTR, READ_ONCE(gpu->faults.get));
}

/* The bits that clear a condition are seen and read back as 0. */
static void drop_clear_bits(struct model_gpu *gpu)
{
	u32 written = READ_ONCE(gpu->faults.get);
	u32 pointer = DRF_VAL(_PFB, _PRI_MMU_FAULT_BUFFER_GET, _PTR, written);

	if (written != pointer)
		cmpxchg(&gpu->faults.get, written, pointer);
}

bool model_shadow_pending(struct model_gpu *gpu)
{
	return READ_ONCE(gpu->shadow.get) != READ_ONCE(gpu->shadow.put);
}

bool model_faults_pending(struct model_gpu *gpu)
{
	return model_shadow_pending(gpu) || get_index(gpu) != READ_ONCE(gpu->faults.put);
}

/* Faults of a group carry the instance of whichever of its channels is resident; the engine id tells the subcontext. */
static u64 resident_instance(const struct model_channel *faulting)
{
	struct model_gpu *gpu = faulting->gpu;
	struct model_channel *channel;
	u32 live = 0;
	u32 pick;

	list_for_each_entry(channel, &gpu->channels, node)
		live += channel->group == faulting->group && channel->engine == GPU_MODEL_ENGINE_SM && channel->retained;
	if (live == 0)
		return faulting->instance;
	pick = model_random(gpu, live);
	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->group == faulting->group && channel->engine == GPU_MODEL_ENGINE_SM &&
		    channel->retained && pick-- == 0)
			return channel->instance;
	return faulting->instance;
}

struct entry {
	const struct model_channel *channel;
	u64 address;
	u32 subcontext;
	u32 lane;
	u32 fault;
	u32 access;
};

static bool put_entry(const struct entry *fault, bool late)
{
	struct model_gpu *gpu = fault->channel->gpu;
	struct model_fault_buffer *buffer = &gpu->faults;
	u32 next = (buffer->put + 1) % buffer->count;
	u64 instance = resident_instance(fault->channel);
	u64 now = ktime_get_real_ns();
	u32 *entry = buffer->entries + buffer->put * MODEL_FAULT_BYTES;
	u32 last;

	if (next == get_index(gpu))
		return false;
	entry[0] = lower_32_bits(instance);
	entry[1] = upper_32_bits(instance);
	entry[2] = lower_32_bits(fault->address);
	entry[3] = upper_32_bits(fault->address);
	entry[4] = lower_32_bits(now);
	entry[5] = upper_32_bits(now);
	entry[6] = gpu->arch->engine_graphics + fault->subcontext;
	last = fault->fault | 1U << 7 | gpu->arch->client_sm[fault->lane % SM_PER_GPC] << 8 | fault->access << 16 |
	       (fault->lane / SM_PER_GPC) << 24 | 1U << 30;
	smp_wmb();
	WRITE_ONCE(entry[7], late ? last : last | 1U << 31);
	if (late)
		buffer->late = buffer->put + 1;
	smp_wmb();
	WRITE_ONCE(buffer->put, next);
	gpu->status.faults++;
	return true;
}

/*
 * Each stands right before a fault of its group: whoever cancels the group for it finds that one outstanding. Each is the first
 * of a batch: what UVM reads and flushes in one go has no second one.
 */
static void put_due_duplicate(const struct model_channel *channel)
{
	struct model_group *group = channel->group;
	struct entry fault = { .channel = channel, .address = 0x1000, .subcontext = group->duplicates_subcontext,
			       .access = MODEL_ACCESS_READ };

	if (!group->duplicates_due || get_index(channel->gpu) != channel->gpu->faults.put || !put_entry(&fault, false))
		return;
	group->duplicates_due--;
	channel->gpu->status.duplicates++;
}

bool model_fault_duplicate(const struct gpu_model_duplicate *request)
{
	struct model_gpu *gpu = model_gpus[request->gpu];
	struct model_group *group;

	mutex_lock(&gpu->lock);
	group = model_group_find(gpu, request->group);
	if (group) {
		group->duplicates_due = request->count;
		group->duplicates_subcontext = request->subcontext;
	}
	mutex_unlock(&gpu->lock);
	return group != NULL;
}

/* False when the buffer is full: the fault stays in its uTLB until the next replay. */
bool model_fault_report(struct model_program *program, u32 lane)
{
	const struct model_channel *channel = program->channel;
	struct model_gpu *gpu = channel->gpu;
	struct entry fault = { channel, program->lane[lane].fault_address, channel->subcontext, lane,
			       program->lane[lane].fault, program->lane[lane].access };
	bool late = !gpu->faults.late && model_chance(gpu, model_settings.late_valid_percent);

	put_due_duplicate(channel);
	if (!put_entry(&fault, late)) {
		gpu->status.overflows++;
		return false;
	}
	if (model_chance(gpu, model_settings.duplicate_percent) && put_entry(&fault, false))
		gpu->status.duplicates++;
	model_interrupt(gpu);
	return true;
}

bool model_fault_buffer_run(struct model_gpu *gpu)
{
	struct model_fault_buffer *buffer = &gpu->faults;
	u32 *entry;

	drop_clear_bits(gpu);
	if (!buffer->late)
		return false;
	entry = buffer->entries + (buffer->late - 1) * MODEL_FAULT_BYTES;
	smp_wmb();
	WRITE_ONCE(entry[7], entry[7] | 1U << 31);
	buffer->late = 0;
	return true;
}
