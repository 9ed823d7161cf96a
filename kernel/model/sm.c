// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Programs: lists of accesses that model SMs, a copy engine or the host run
 * against a client's address space. Every lane stands on an SM (and a uTLB) of
 * its own, stalls on a fault and goes on when a replay lets it.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "model.h"

#define STEPS_PER_TURN	32

void model_program_release(struct kref *references)
{
	struct model_program *program = container_of(references, struct model_program, references);

	kvfree(program->accesses);
	kvfree(program->values);
	kfree(program);
}

static enum model_access_type access_type(u32 op)
{
	switch (op) {
	case GPU_MODEL_LOAD:
		return MODEL_ACCESS_READ;
	case GPU_MODEL_ATOMIC_ADD:
		return MODEL_ACCESS_ATOMIC;
	case GPU_MODEL_PREFETCH:
		return MODEL_ACCESS_PREFETCH;
	default:
		return MODEL_ACCESS_WRITE;
	}
}

static void apply(const struct gpu_model_access *access, u64 *place, u64 *value)
{
	switch (access->op) {
	case GPU_MODEL_LOAD:
		*value = place ? READ_ONCE(*place) : 0;
		break;
	case GPU_MODEL_STORE:
	case GPU_MODEL_RELEASE:
		if (place)
			WRITE_ONCE(*place, access->value);
		break;
	case GPU_MODEL_ATOMIC_ADD:
		*value = place ? *place : 0;
		if (place)
			WRITE_ONCE(*place, *place + access->value);
		break;
	}
}

/* Where a copy faults it is begun again from the start. */
static enum model_fault run_copy(struct model_space *space, const struct gpu_model_access *access, u64 *fault_at,
				 enum model_access_type *type)
{
	u64 done = 0;

	while (done < access->length) {
		u64 to_left, from_left, part;
		enum model_fault fault;
		u8 *from, *to;

		*type = MODEL_ACCESS_READ;
		*fault_at = access->value + done;
		from = model_translate(space, *fault_at, *type, false, &from_left, &fault);
		if (fault != MODEL_FAULT_NONE)
			return fault;
		*type = MODEL_ACCESS_WRITE;
		*fault_at = access->address + done;
		to = model_translate(space, *fault_at, *type, false, &to_left, &fault);
		if (fault != MODEL_FAULT_NONE)
			return fault;
		part = min3(from_left, to_left, (u64)access->length - done);
		if (to && from)
			memmove(to, from, part);
		else if (to)
			memset(to, 0, part);
		done += part;
	}
	return MODEL_FAULT_NONE;
}

static void lane_advance(struct model_program *program, struct model_lane *lane)
{
	u64 now = ktime_get_ns();

	if (lane->fault_at_ns) {
		if (program->time_count < GPU_MODEL_TIMES_MAX)
			program->times[program->time_count++] = now - lane->fault_at_ns;
		lane->fault_at_ns = 0;
	}
	lane->step++;
	program->done++;
}

static void lane_fault(struct model_program *program, u32 index)
{
	struct model_lane *lane = &program->lane[index];

	if (!lane->fault_at_ns)
		lane->fault_at_ns = ktime_get_ns();
	program->faults++;
	lane->state = MODEL_LANE_FAULTED;
	model_log(program->channel->gpu, "fault", lane->fault_address,
		  ((u64)program->channel->id << 32) | program->id, lane->fault | lane->access << 8);
	if (program->channel->engine != GPU_MODEL_ENGINE_SM) {
		model_non_replayable(program, index);
		return;
	}
	model_fault_report(program, index);
	/* Nobody waits for a prefetch. */
	if (lane->access == MODEL_ACCESS_PREFETCH) {
		lane->state = MODEL_LANE_READY;
		lane->fault_at_ns = 0;
		lane_advance(program, lane);
	}
}

static void lane_step(struct model_program *program, u32 index)
{
	struct model_lane *lane = &program->lane[index];
	u64 number = lane->step * program->lanes + index;
	const struct gpu_model_access *access;
	u64 *place, left, address;
	enum model_fault fault = MODEL_FAULT_NONE;

	if (number >= program->total) {
		lane->state = MODEL_LANE_DONE;
		return;
	}
	access = &program->accesses[number % program->count];
	address = access->address;
	lane->access = access_type(access->op);
	if (access->op == GPU_MODEL_COPY) {
		fault = run_copy(program->channel->space, access, &address, &lane->access);
	} else if (access->op != GPU_MODEL_PAUSE) {
		place = model_translate(program->channel->space, address, lane->access, false, &left, &fault);
		if (fault == MODEL_FAULT_NONE)
			apply(access, place, &program->values[number % program->count]);
	}
	if (fault == MODEL_FAULT_NONE) {
		lane_advance(program, lane);
		return;
	}
	if (program->channel->client == (u32)READ_ONCE(model_settings.fatal_client))
		fault = MODEL_FAULT_PRIVILEGE;
	lane->fault = fault;
	lane->fault_address = address & ~0xfffULL;
	lane_fault(program, index);
}

static void program_end(struct model_program *program, u32 state)
{
	struct model_channel *channel = program->channel;

	WRITE_ONCE(program->state, state);
	list_del(&program->node);
	channel->gpu->status.programs--;
	channel->programs--;
	wake_up_all(&channel->gpu->changed);
	model_log(channel->gpu, state == GPU_MODEL_DONE ? "program done" : "program killed", program->id, channel->client,
		  program->done);
	kref_put(&program->references, model_program_release);
	model_user_channel_reap(channel);
}

/* Stopping a channel does not end its work; stopping the last one of its group takes the group off its runlist. */
static bool on_runlist(const struct model_group *group, struct model_gpu *gpu)
{
	struct model_channel *channel;

	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->group == group && channel->retained && !channel->stopped)
			return true;
	return false;
}

/* What a copy engine or the host does for a channel it does in order. */
static bool waits_for_another(const struct model_program *program)
{
	const struct model_program *first;

	if (program->channel->engine == GPU_MODEL_ENGINE_SM)
		return false;
	list_for_each_entry(first, &program->channel->gpu->programs, node)
		if (first->channel == program->channel)
			return first != program;
	return false;
}

static bool program_turn(struct model_program *program)
{
	struct model_channel *channel = program->channel;
	struct model_gpu *gpu = channel->gpu;
	bool runs = on_runlist(channel->group, gpu);
	u32 done = 0;
	u32 steps;
	u32 i;

	/* What can never run again, because nobody is left to hold its channel, is dropped. */
	if (channel->dead || (!runs && channel->orphan && !channel->retained)) {
		program_end(program, GPU_MODEL_KILLED);
		return true;
	}
	if (!runs || channel->group->reset_pending || waits_for_another(program))
		return false;
	for (steps = 0; steps < STEPS_PER_TURN; steps++) {
		i = model_random(gpu, program->lanes);
		if (program->lane[i].state == MODEL_LANE_READY)
			lane_step(program, i);
	}
	for (i = 0; i < program->lanes; i++)
		done += program->lane[i].state == MODEL_LANE_DONE;
	if (done == program->lanes) {
		program_end(program, GPU_MODEL_DONE);
		return true;
	}
	for (i = 0; i < program->lanes; i++)
		if (program->lane[i].state == MODEL_LANE_READY)
			return true;
	return false;
}

bool model_programs_run(struct model_gpu *gpu)
{
	struct model_program *program, *next;
	bool busy = false;

	if (gpu->suspended)
		return false;
	list_for_each_entry_safe(program, next, &gpu->programs, node)
		busy |= program_turn(program);
	return busy;
}

void model_programs_replay(struct model_gpu *gpu)
{
	struct model_program *program;
	u32 i;

	gpu->status.replays++;
	if (READ_ONCE(model_settings.drop_replay))
		return;
	list_for_each_entry(program, &gpu->programs, node)
		for (i = 0; i < program->lanes && program->channel->engine == GPU_MODEL_ENGINE_SM; i++)
			if (program->lane[i].state == MODEL_LANE_FAULTED)
				program->lane[i].state = MODEL_LANE_READY;
}

/* The access types of NVC46F_MEM_OP_C_TLB_INVALIDATE_ACCESS_TYPE_*. */
static bool access_named(u32 named, enum model_access_type access)
{
	switch (named) {
	case 7:
		return true;
	case 6:
		return access == MODEL_ACCESS_WRITE || access == MODEL_ACCESS_ATOMIC;
	case 5:
		return access == MODEL_ACCESS_ATOMIC;
	default:
		return named == access;
	}
}

static void cancel_lane(struct model_program *program, struct model_lane *lane)
{
	lane->state = MODEL_LANE_CANCELLED;
	program->channel->gpu->status.cancelled++;
	model_gsp_fault(program->channel->group, program->channel->gpu, "cancelled fault");
}

void model_programs_cancel(struct model_gpu *gpu, u64 directory, u64 address, u32 access_type, u32 engine)
{
	struct model_program *program;
	u32 i;

	gpu->status.cancels++;
	model_log(gpu, "cancel", address, access_type, engine);
	list_for_each_entry(program, &gpu->programs, node) {
		struct model_channel *channel = program->channel;
		u32 own = (gpu->arch->engine_graphics + channel->subcontext) & gpu->arch->cancel_engine_mask;

		if (channel->engine != GPU_MODEL_ENGINE_SM || own != engine || !channel->space ||
		    model_directory_key(channel->space->directory) != directory)
			continue;
		for (i = 0; i < program->lanes; i++)
			if (program->lane[i].state == MODEL_LANE_FAULTED && program->lane[i].fault_address == address &&
			    access_named(access_type, program->lane[i].access))
				cancel_lane(program, &program->lane[i]);
	}
}

/* A global cancel takes every fault of the group that the instance belongs to. */
void model_programs_cancel_group(struct model_gpu *gpu, u64 instance)
{
	struct model_channel *named = model_instance_find(gpu, instance);
	struct model_program *program;
	u32 i;

	gpu->status.cancels++;
	model_log(gpu, "global cancel", instance, 0, 0);
	list_for_each_entry(program, &gpu->programs, node) {
		if (!named || program->channel->group != named->group)
			continue;
		for (i = 0; i < program->lanes && program->channel->engine == GPU_MODEL_ENGINE_SM; i++)
			if (program->lane[i].state == MODEL_LANE_FAULTED)
				cancel_lane(program, &program->lane[i]);
	}
}
