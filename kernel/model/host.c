// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The host engine: takes entries off the rings of UVM's channels, decodes the
 * pushbuffer and executes host methods. Strict: what a class header does not
 * name, or what UVM has no business to send, is a channel error.
 */
#include "model.h"
#include "nvmisc.h"
#include "clc46f.h"
#include "clc86f.h"
#include "clc076.h"

#define SUBCHANNEL_COPY		4
#define SUBCHANNEL_SOFTWARE	5
#define ENTRIES_PER_TURN	64
#define HOST(channel, method)	((channel)->host[NVC46F_##method / 4])

static int semaphore_acquire(struct model_channel *channel, u64 address, u32 operation)
{
	enum model_fault fault;
	u64 left;
	u32 *place = model_translate(channel->space, address, MODEL_ACCESS_READ, true, &left, &fault);
	u32 wanted = HOST(channel, SEM_PAYLOAD_LO);
	bool met;

	if (!place) {
		model_channel_error(channel, "acquire fault", address);
		return -EFAULT;
	}
	if (operation == NVC46F_SEM_EXECUTE_OPERATION_ACQUIRE)
		met = READ_ONCE(*place) == wanted;
	else
		met = (s32)(READ_ONCE(*place) - wanted) >= 0;
	return met ? 0 : -EAGAIN;
}

static int semaphore(struct model_channel *channel, u32 data)
{
	u64 address = ((u64)HOST(channel, SEM_ADDR_HI) << 32) | HOST(channel, SEM_ADDR_LO);
	u32 operation = DRF_VAL(C46F, _SEM_EXECUTE, _OPERATION, data);

	switch (operation) {
	case NVC46F_SEM_EXECUTE_OPERATION_RELEASE:
		return model_semaphore_write(channel, address, HOST(channel, SEM_PAYLOAD_LO),
					     DRF_VAL(C46F, _SEM_EXECUTE, _RELEASE_TIMESTAMP, data));
	case NVC46F_SEM_EXECUTE_OPERATION_ACQUIRE:
	case NVC46F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ:
		return semaphore_acquire(channel, address, operation);
	default:
		model_channel_error(channel, "semaphore operation", operation);
		return -EINVAL;
	}
}

static int clear_faulted(struct model_channel *channel, u32 data)
{
	u32 id = DRF_VAL(C46F, _CLEAR_FAULTED, _HANDLE, data);
	struct model_channel *faulted;

	if (channel->gpu->arch->clear_by_register) {
		model_channel_error(channel, "clear by method", data);
		return -EINVAL;
	}
	list_for_each_entry(faulted, &channel->gpu->channels, node) {
		if (faulted->id == id && faulted->retained) {
			model_channel_clear_faulted(faulted, DRF_VAL(C46F, _CLEAR_FAULTED, _TYPE, data) ? 1 << 5 : 1 << 4);
			return 0;
		}
	}
	model_channel_error(channel, "clear of an unknown channel", id);
	return -EINVAL;
}

static int host_method(struct model_channel *channel, u32 method, u32 data)
{
	channel->host[method / 4] = data;
	switch (method) {
	case NVC46F_MEM_OP_A:
	case NVC46F_MEM_OP_B:
	case NVC46F_MEM_OP_C:
		channel->mem_ops_seen |= 1 << ((method - NVC46F_MEM_OP_A) / 4);
		return 0;
	case NVC46F_MEM_OP_D:
		return model_mem_op(channel);
	case NVC46F_SEM_EXECUTE:
		return semaphore(channel, data);
	case NVC46F_CLEAR_FAULTED:
		return clear_faulted(channel, data);
	case NVC46F_NOP:
	case NVC46F_WFI:
	case NVC46F_YIELD:
	case NVC46F_NON_STALL_INTERRUPT:
	case NVC46F_SEM_ADDR_LO:
	case NVC46F_SEM_ADDR_HI:
	case NVC46F_SEM_PAYLOAD_LO:
	case NVC46F_SEM_PAYLOAD_HI:
		return 0;
	default:
		model_channel_error(channel, "unknown host method", method);
		return -EINVAL;
	}
}

/* UVM binds the copy class on subchannel 0 and uses it on 4: a copy engine of its own has one object only. */
static int set_object(struct model_channel *channel, u32 subchannel, u32 data)
{
	u32 class = DRF_VAL(C46F, _SET_OBJECT, _NVCLASS, data);

	if (class == channel->gpu->arch->ce_class && (subchannel == 0 || subchannel == SUBCHANNEL_COPY)) {
		channel->objects[SUBCHANNEL_COPY] = class;
		return 0;
	}
	if (class == GP100_UVM_SW && subchannel == SUBCHANNEL_SOFTWARE) {
		channel->objects[SUBCHANNEL_SOFTWARE] = class;
		return 0;
	}
	model_channel_error(channel, "object on a subchannel", ((u64)subchannel << 32) | class);
	return -EINVAL;
}

static int method(struct model_channel *channel, u32 subchannel, u32 method, u32 data)
{
	channel->gpu->status.methods++;
	if (method == NVC46F_SET_OBJECT)
		return set_object(channel, subchannel, data);
	if (method < 0x100)
		return host_method(channel, method, data);
	if (channel->objects[subchannel] == 0) {
		model_channel_error(channel, "method without an object", ((u64)subchannel << 32) | method);
		return -EINVAL;
	}
	return subchannel == SUBCHANNEL_COPY ? model_copy_method(channel, method, data)
					      : model_software_method(channel, method, data);
}

static int fetch(struct model_channel *channel, u64 address, u32 *word)
{
	enum model_fault fault;
	u64 left;
	u32 *place = model_translate(channel->space, address, MODEL_ACCESS_READ, true, &left, &fault);

	if (!place) {
		model_channel_error(channel, "pushbuffer fault", address);
		return -EFAULT;
	}
	*word = READ_ONCE(*place);
	return 0;
}

/* One header and its data. What waits for a semaphore is begun again as a whole: the loads before it can be repeated. */
static int run_header(struct model_channel *channel, u64 address, u32 header, u32 words_left, u32 *used)
{
	u32 operation = DRF_VAL(C46F, _DMA, _SEC_OP, header);
	u32 count = DRF_VAL(C46F, _DMA, _METHOD_COUNT, header);
	u32 subchannel = DRF_VAL(C46F, _DMA, _METHOD_SUBCHANNEL, header);
	u32 first = DRF_VAL(C46F, _DMA, _METHOD_ADDRESS, header) << 2;
	u32 i;

	if (operation == NVC46F_DMA_SEC_OP_IMMD_DATA_METHOD) {
		*used = 1;
		return method(channel, subchannel, first, count);
	}
	if (operation != NVC46F_DMA_SEC_OP_INC_METHOD && operation != NVC46F_DMA_SEC_OP_NON_INC_METHOD &&
	    operation != NVC46F_DMA_SEC_OP_ONE_INC) {
		model_channel_error(channel, "pushbuffer header", header);
		return -EINVAL;
	}
	if (count >= words_left) {
		model_channel_error(channel, "method past its segment", header);
		return -EINVAL;
	}
	for (i = 0; i < count; i++) {
		u32 step = operation == NVC46F_DMA_SEC_OP_INC_METHOD ? i
			   : operation == NVC46F_DMA_SEC_OP_ONE_INC ? min(i, 1u) : 0;
		u32 data;
		int error = fetch(channel, address + 4 * (i + 1), &data);

		if (!error)
			error = method(channel, subchannel, first + 4 * step, data);
		if (error)
			return error;
	}
	*used = 1 + count;
	return 0;
}

static int run_segment(struct model_channel *channel, u64 address, u32 words)
{
	while (channel->word < words) {
		u64 at = address + 4ULL * channel->word;
		u32 header, used;
		int error = fetch(channel, at, &header);

		if (!error)
			error = run_header(channel, at, header, words - channel->word, &used);
		if (error)
			return error;
		channel->word += used;
	}
	channel->word = 0;
	return 0;
}

static int run_entry(struct model_channel *channel, u64 entry)
{
	u32 low = lower_32_bits(entry);
	u32 high = upper_32_bits(entry);
	u32 words = DRF_VAL(C46F, _GP_ENTRY1, _LENGTH, high);
	u64 address = ((u64)DRF_VAL(C46F, _GP_ENTRY1, _GET_HI, high) << 32) | (low & ~3U);

	if (words)
		return run_segment(channel, channel->segment_base | address, words);
	switch (DRF_VAL(C86F, _GP_ENTRY1, _OPCODE, high)) {
	case NVC86F_GP_ENTRY1_OPCODE_NOP:
		return 0;
	case NVC86F_GP_ENTRY1_OPCODE_SET_PB_SEGMENT_EXTENDED_BASE:
		if (!channel->gpu->arch->segment_base)
			break;
		channel->segment_base = (u64)DRF_VAL(C86F, _GP_ENTRY0, _PB_EXTENDED_BASE_OPERAND, low) << 40;
		return 0;
	}
	model_channel_error(channel, "ring entry", entry);
	return -EINVAL;
}

static void take_doorbell(struct model_channel *channel)
{
	u32 token = xchg(&channel->doorbell, 0);

	if (!token)
		return;
	if (token != channel->id)
		model_channel_error(channel, "doorbell token", token);
	channel->put = READ_ONCE(channel->ring_put);
	if (channel->put >= channel->entries)
		model_channel_error(channel, "ring put", channel->put);
}

static bool run_channel(struct model_channel *channel)
{
	int budget = ENTRIES_PER_TURN;
	bool busy = false;

	take_doorbell(channel);
	while (!channel->dead && channel->get != channel->put && budget--) {
		if (run_entry(channel, READ_ONCE(channel->ring[channel->get])))
			break;
		busy = true;
		smp_wmb();
		WRITE_ONCE(channel->get, (channel->get + 1) % channel->entries);
	}
	return busy;
}

bool model_host_run(struct model_gpu *gpu)
{
	struct model_channel *channel;
	bool busy = false;

	list_for_each_entry(channel, &gpu->channels, node)
		if (!channel->group)
			busy |= run_channel(channel);
	return busy;
}
