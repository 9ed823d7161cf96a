// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The copy engine as far as UVM uses it: pitch copies, memsets by remapping, Hopper's scrubber, semaphores. */
#include "model.h"
#include "nvmisc.h"
#include "clc5b5.h"
#include "clc8b5.h"

#define REGISTER(channel, method)	((channel)->copy[NVC5B5_##method / 4])
#define LAUNCH(field, data)		DRF_VAL(C5B5, _LAUNCH_DMA, field, data)

struct side {
	u64 address;
	u32 target;
	bool physical;
	bool write;
};

/* A virtual or physical address and how much follows it; *cpu is NULL behind a sparse page. */
static int reach(struct model_channel *channel, const struct side *side, u8 **cpu, u64 *left)
{
	struct model_phys phys = { .address = side->address };
	enum model_fault fault = MODEL_FAULT_NONE;

	if (!side->physical) {
		*cpu = model_translate(channel->space, side->address,
				       side->write ? MODEL_ACCESS_WRITE : MODEL_ACCESS_READ, true, left, &fault);
	} else {
		phys.vidmem = side->target == NVC5B5_SET_SRC_PHYS_MODE_TARGET_LOCAL_FB;
		*left = PAGE_SIZE - offset_in_page(side->address);
		*cpu = model_phys_to_cpu(channel->gpu, phys, *left);
		if (!*cpu)
			fault = MODEL_FAULT_REGION;
	}
	if (fault == MODEL_FAULT_NONE)
		return 0;
	model_channel_error(channel, side->write ? "copy destination fault" : "copy source fault", side->address);
	return -EFAULT;
}

static struct side destination(struct model_channel *channel, u32 launch)
{
	return (struct side){
		.address = ((u64)REGISTER(channel, OFFSET_OUT_UPPER) << 32) | REGISTER(channel, OFFSET_OUT_LOWER),
		.target = REGISTER(channel, SET_DST_PHYS_MODE) & 3,
		.physical = LAUNCH(_DST_TYPE, launch),
		.write = true,
	};
}

static struct side source(struct model_channel *channel, u32 launch)
{
	return (struct side){
		.address = ((u64)REGISTER(channel, OFFSET_IN_UPPER) << 32) | REGISTER(channel, OFFSET_IN_LOWER),
		.target = REGISTER(channel, SET_SRC_PHYS_MODE) & 3,
		.physical = LAUNCH(_SRC_TYPE, launch),
	};
}

static int copy(struct model_channel *channel, u32 launch)
{
	struct side to = destination(channel, launch);
	struct side from = source(channel, launch);
	u64 bytes = REGISTER(channel, LINE_LENGTH_IN);

	while (bytes) {
		u64 to_left, from_left, part;
		u8 *out, *in;

		if (reach(channel, &to, &out, &to_left) || reach(channel, &from, &in, &from_left))
			return -EFAULT;
		part = min3(to_left, from_left, bytes);
		if (out && in)
			memmove(out, in, part);
		else if (out)
			memset(out, 0, part);
		to.address += part;
		from.address += part;
		bytes -= part;
	}
	return 0;
}

/* skip: how much of the pattern the piece before has already used. */
static void fill_piece(u8 *out, u64 bytes, const u8 *pattern, u32 element, u64 skip)
{
	u64 i = 0;

	if (skip % element == 0)
		for (; i + element <= bytes; i += element)
			memcpy(out + i, pattern, element);
	for (; i < bytes; i++)
		out[i] = pattern[(skip + i) % element];
}

static int fill(struct model_channel *channel, u32 launch, const u8 *pattern, u32 element, u64 bytes)
{
	struct side to = destination(channel, launch);
	u64 done = 0;

	while (done < bytes) {
		u64 left, part;
		u8 *out;

		if (reach(channel, &to, &out, &left))
			return -EFAULT;
		part = min(left, bytes - done);
		if (out)
			fill_piece(out, part, pattern, element, done);
		to.address += part;
		done += part;
	}
	return 0;
}

static int component(struct model_channel *channel, u32 select, u8 *to, u32 size)
{
	u32 value;

	if (select == NVC5B5_SET_REMAP_COMPONENTS_DST_X_CONST_A)
		value = REGISTER(channel, SET_REMAP_CONST_A);
	else if (select == NVC5B5_SET_REMAP_COMPONENTS_DST_X_CONST_B)
		value = REGISTER(channel, SET_REMAP_CONST_B);
	else
		return -EINVAL;
	memcpy(to, &value, size);
	return 0;
}

static int remapped_fill(struct model_channel *channel, u32 launch)
{
	u32 remap = REGISTER(channel, SET_REMAP_COMPONENTS);
	u32 size = DRF_VAL(C5B5, _SET_REMAP_COMPONENTS, _COMPONENT_SIZE, remap) + 1;
	u32 count = DRF_VAL(C5B5, _SET_REMAP_COMPONENTS, _NUM_DST_COMPONENTS, remap) + 1;
	u8 pattern[8];

	if (count > 2 || component(channel, DRF_VAL(C5B5, _SET_REMAP_COMPONENTS, _DST_X, remap), pattern, size) ||
	    (count == 2 &&
	     component(channel, DRF_VAL(C5B5, _SET_REMAP_COMPONENTS, _DST_Y, remap), pattern + size, size))) {
		model_channel_error(channel, "remap", remap);
		return -EINVAL;
	}
	return fill(channel, launch, pattern, size * count, (u64)REGISTER(channel, LINE_LENGTH_IN) * size * count);
}

/* The scrubber takes only physical video memory and whole pages. */
static int scrub(struct model_channel *channel, u32 launch)
{
	u32 pattern[2] = { REGISTER(channel, SET_REMAP_CONST_A), REGISTER(channel, SET_REMAP_CONST_B) };
	struct side to = destination(channel, launch);
	u32 bytes = REGISTER(channel, LINE_LENGTH_IN);

	if (!to.physical || to.target != NVC5B5_SET_DST_PHYS_MODE_TARGET_LOCAL_FB || bytes % PAGE_SIZE ||
	    LAUNCH(_REMAP_ENABLE, launch)) {
		model_channel_error(channel, "scrub", to.address);
		return -EINVAL;
	}
	return fill(channel, launch, (u8 *)pattern, sizeof(pattern), bytes);
}

static int semaphore_reduction(struct model_channel *channel, u64 address, u32 launch)
{
	u32 limit = REGISTER(channel, SET_SEMAPHORE_PAYLOAD);
	enum model_fault fault;
	u64 left;
	u32 *place = model_translate(channel->space, address, MODEL_ACCESS_WRITE, true, &left, &fault);

	if (!place || LAUNCH(_SEMAPHORE_REDUCTION, launch) != NVC5B5_LAUNCH_DMA_SEMAPHORE_REDUCTION_INC) {
		model_channel_error(channel, "semaphore reduction", address);
		return -EFAULT;
	}
	*place = *place >= limit ? 0 : *place + 1;
	return 0;
}

static int semaphore(struct model_channel *channel, u32 launch)
{
	u64 address = ((u64)REGISTER(channel, SET_SEMAPHORE_A) << 32) | REGISTER(channel, SET_SEMAPHORE_B);
	u32 type = LAUNCH(_SEMAPHORE_TYPE, launch);

	if (type == NVC5B5_LAUNCH_DMA_SEMAPHORE_TYPE_NONE)
		return 0;
	if (LAUNCH(_SEMAPHORE_REDUCTION_ENABLE, launch))
		return semaphore_reduction(channel, address, launch);
	return model_semaphore_write(channel, address, REGISTER(channel, SET_SEMAPHORE_PAYLOAD),
				     type == NVC5B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE);
}

static int launch_dma(struct model_channel *channel, u32 launch)
{
	bool hopper = channel->gpu->arch->ce_class == HOPPER_DMA_COPY_A;
	int error = 0;

	if (LAUNCH(_DATA_TRANSFER_TYPE, launch) != NVC5B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NONE) {
		if (!LAUNCH(_DST_MEMORY_LAYOUT, launch) || LAUNCH(_MULTI_LINE_ENABLE, launch)) {
			model_channel_error(channel, "copy layout", launch);
			return -EINVAL;
		}
		if (hopper && DRF_VAL(C8B5, _LAUNCH_DMA, _MEMORY_SCRUB_ENABLE, launch))
			error = scrub(channel, launch);
		else if (LAUNCH(_REMAP_ENABLE, launch))
			error = remapped_fill(channel, launch);
		else
			error = copy(channel, launch);
	}
	return error ? error : semaphore(channel, launch);
}

int model_copy_method(struct model_channel *channel, u32 method, u32 data)
{
	channel->copy[(method / 4) & 0x3ff] = data;
	switch (method) {
	case NVC5B5_LAUNCH_DMA:
		return launch_dma(channel, data);
	case NVC5B5_NOP:
	case NVC5B5_SET_SEMAPHORE_A:
	case NVC5B5_SET_SEMAPHORE_B:
	case NVC5B5_SET_SEMAPHORE_PAYLOAD:
	case NVC5B5_SET_SRC_PHYS_MODE:
	case NVC5B5_SET_DST_PHYS_MODE:
	case NVC5B5_OFFSET_IN_UPPER:
	case NVC5B5_OFFSET_IN_LOWER:
	case NVC5B5_OFFSET_OUT_UPPER:
	case NVC5B5_OFFSET_OUT_LOWER:
	case NVC5B5_LINE_LENGTH_IN:
	case NVC5B5_SET_REMAP_CONST_A:
	case NVC5B5_SET_REMAP_CONST_B:
	case NVC5B5_SET_REMAP_COMPONENTS:
		return 0;
#ifdef NVC8B5_SET_SEMAPHORE_PAYLOAD_UPPER /* where UVM's header has it */
	case NVC8B5_SET_SEMAPHORE_PAYLOAD_UPPER:
#endif
	case NVC8B5_SET_MEMORY_SCRUB_PARAMETERS:
		if (channel->gpu->arch->ce_class == HOPPER_DMA_COPY_A)
			return 0;
		break;
	}
	model_channel_error(channel, "unknown copy method", method);
	return -EINVAL;
}
