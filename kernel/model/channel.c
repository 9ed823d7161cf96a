// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What every method of a channel may do: fail, and write a semaphore. */
#include <linux/ktime.h>
#include "model.h"

/* info16 and status of a notifier are what RM writes; info32 holds the Xid. */
void model_channel_error(struct model_channel *channel, const char *why, u64 info)
{
	pr_err("gpu-model: channel %u error: %s 0x%llx\n", channel->id, why, info);
	model_log(channel->gpu, why, channel->id, info, 0);
	channel->gpu->status.channel_errors++;
	channel->error.info32 = 31;
	channel->error.status = 0xffff;
	channel->dead = true;
}

int model_semaphore_write(struct model_channel *channel, u64 address, u32 payload, bool timestamp)
{
	enum model_fault fault;
	u64 left;
	u32 *place = model_translate(channel->space, address, MODEL_ACCESS_WRITE, true, &left, &fault);

	if (fault != MODEL_FAULT_NONE || (address & 3)) {
		model_channel_error(channel, "semaphore fault", address);
		return -EFAULT;
	}
	if (!place)
		return 0;
	if (timestamp) {
		WRITE_ONCE(*(u64 *)(place + 2), ktime_get_real_ns());
		WRITE_ONCE(place[1], 0);
	}
	smp_wmb();
	WRITE_ONCE(*place, payload);
	return 0;
}
