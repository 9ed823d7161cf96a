// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The MEM_OP methods: membars, TLB invalidates, replays and cancels; and the methods that interrupt RM to do the like. */
#include "model.h"
#include "nvmisc.h"
#include "clc46f.h"
#include "clc076.h"

#define OP(channel, letter)	((channel)->host[NVC46F_MEM_OP_##letter / 4])
#define PAGE_BITS		12

static u64 target_address(struct model_channel *channel)
{
	u64 low = DRF_VAL(C46F, _MEM_OP_A, _TLB_INVALIDATE_TARGET_ADDR_LO, OP(channel, A));

	return (((u64)OP(channel, B) << 20) | low) << PAGE_BITS;
}

static u64 target_directory(struct model_channel *channel)
{
	u64 low = DRF_VAL(C46F, _MEM_OP_C, _TLB_INVALIDATE_PDB_ADDR_LO, OP(channel, C));
	u64 high = DRF_VAL(C46F, _MEM_OP_D, _TLB_INVALIDATE_PDB_ADDR_HI, OP(channel, D));
	struct model_phys directory = {
		.address = ((high << 20) | low) << PAGE_BITS,
		.vidmem = DRF_VAL(C46F, _MEM_OP_C, _TLB_INVALIDATE_PDB_APERTURE, OP(channel, C)) ==
			  NVC46F_MEM_OP_C_TLB_INVALIDATE_PDB_APERTURE_VID_MEM,
	};

	return model_directory_key(directory);
}

static void cancel_page(struct model_channel *channel)
{
	struct model_gpu *gpu = channel->gpu;
	u64 address = target_address(channel);

	if (READ_ONCE(model_settings.cancel_wrong_page))
		address += 1ULL << PAGE_BITS;
	model_programs_cancel(gpu, target_directory(channel), address,
			      DRF_VAL(C46F, _MEM_OP_C, _TLB_INVALIDATE_ACCESS_TYPE, OP(channel, C)),
			      OP(channel, A) & gpu->arch->cancel_engine_mask);
}

static void invalidate(struct model_channel *channel, bool targeted)
{
	u32 level = DRF_VAL(C46F, _MEM_OP_C, _TLB_INVALIDATE_PAGE_TABLE_LEVEL, OP(channel, C));
	u32 size_bits = DRF_VAL(C46F, _MEM_OP_A, _TLB_INVALIDATE_INVALIDATION_SIZE, OP(channel, A)) + PAGE_BITS;
	u32 levels = level == NVC46F_MEM_OP_C_TLB_INVALIDATE_PAGE_TABLE_LEVEL_ALL ? MODEL_LEVELS_MAX : level - 1;
	u64 size = size_bits < 64 ? 1ULL << size_bits : 0;

	model_tlb_invalidate(channel->gpu, target_directory(channel), !targeted || size == 0,
			     size ? target_address(channel) & ~(size - 1) : 0, size, levels);
}

static int tlb_operation(struct model_channel *channel, bool targeted)
{
	u32 c = OP(channel, C);
	u32 replay = DRF_VAL(C46F, _MEM_OP_C, _TLB_INVALIDATE_REPLAY, c);

	if (DRF_VAL(C46F, _MEM_OP_C, _TLB_INVALIDATE_PDB, c) != NVC46F_MEM_OP_C_TLB_INVALIDATE_PDB_ONE)
		goto malformed;
	switch (replay) {
	case NVC46F_MEM_OP_C_TLB_INVALIDATE_REPLAY_CANCEL_VA_GLOBAL:
		if (!targeted)
			goto malformed;
		cancel_page(channel);
		return 0;
	case NVC46F_MEM_OP_C_TLB_INVALIDATE_REPLAY_NONE:
		invalidate(channel, targeted);
		return 0;
	case NVC46F_MEM_OP_C_TLB_INVALIDATE_REPLAY_START:
	case NVC46F_MEM_OP_C_TLB_INVALIDATE_REPLAY_START_ACK_ALL:
		invalidate(channel, targeted);
		model_programs_replay(channel->gpu);
		return 0;
	}
malformed:
	model_channel_error(channel, "TLB operation", c);
	return -EINVAL;
}

int model_mem_op(struct model_channel *channel)
{
	u32 seen = channel->mem_ops_seen;

	channel->mem_ops_seen = 0;
	if (seen != 7) {
		model_channel_error(channel, "MEM_OP_D without A to C", seen);
		return -EINVAL;
	}
	switch (DRF_VAL(C46F, _MEM_OP_D, _OPERATION, OP(channel, D))) {
	case NVC46F_MEM_OP_D_OPERATION_MEMBAR:
	case NVC46F_MEM_OP_D_OPERATION_ACCESS_COUNTER_CLR:
	case NVC46F_MEM_OP_D_OPERATION_L2_SYSMEM_INVALIDATE:
		return 0;
	case NVC46F_MEM_OP_D_OPERATION_MMU_TLB_INVALIDATE:
		return tlb_operation(channel, false);
	case NVC46F_MEM_OP_D_OPERATION_MMU_TLB_INVALIDATE_TARGETED:
		return tlb_operation(channel, true);
	default:
		model_channel_error(channel, "MEM_OP", OP(channel, D));
		return -EINVAL;
	}
}

static u64 instance_of(u32 low, u32 high)
{
	return (((u64)high << 20) | (low >> PAGE_BITS)) << PAGE_BITS;
}

/* On hardware these raise an interrupt and RM does the rest. */
int model_software_method(struct model_channel *channel, u32 method, u32 data)
{
	struct model_channel *faulted;

	switch (method) {
	case NVC076_FAULT_CANCEL_A:
	case NVC076_CLEAR_FAULTED_A:
		channel->software[0] = data;
		return 0;
	case NVC076_FAULT_CANCEL_B:
		channel->software[1] = data;
		return 0;
	case NVC076_FAULT_CANCEL_C:
		model_programs_cancel_group(channel->gpu, instance_of(channel->software[0], channel->software[1]));
		return 0;
	case NVC076_CLEAR_FAULTED_B:
		faulted = model_instance_find(channel->gpu, instance_of(channel->software[0], data));
		if (!faulted)
			break;
		model_channel_clear_faulted(faulted, DRF_VAL(C076, _CLEAR_FAULTED_A, _TYPE, channel->software[0])
							     ? 1 << 5 : 1 << 4);
		return 0;
	case NVC076_NO_OPERATION:
		return 0;
	}
	model_channel_error(channel, "software method", method);
	return -EINVAL;
}
