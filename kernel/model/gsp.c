// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What RM's firmware does about a fault that was cancelled or that UVM handed
 * on: after a while it resets the channel group, and with it every client that
 * shares the group. Measured on an H100 (see docs/how/bench.md); the group stands
 * still in between, here as there.
 */
#include <linux/ktime.h>
#include "model.h"

void model_gsp_fault(struct model_group *group, struct model_gpu *gpu, const char *why)
{
	if (group->reset_pending || group->dead)
		return;
	model_log(gpu, why, group->id, 0, 0);
	group->reset_pending = true;
	group->reset_at_ns = ktime_get_ns() + (u64)model_settings.reset_delay_ms * NSEC_PER_MSEC;
}

static void reset(struct model_gpu *gpu, struct model_group *group)
{
	struct model_channel *channel;

	model_log(gpu, "group reset", group->id, group->channels, 0);
	gpu->status.resets++;
	group->reset_pending = false;
	group->dead = true;
	list_for_each_entry(channel, &gpu->channels, node) {
		if (channel->group == group) {
			channel->dead = true;
			channel->faulted = 0;
		}
	}
}

bool model_gsp_run(struct model_gpu *gpu)
{
	struct model_group *group;
	bool busy = false;

	list_for_each_entry(group, &gpu->groups, node) {
		if (group->reset_pending && ktime_get_ns() >= group->reset_at_ns) {
			reset(gpu, group);
			busy = true;
		}
	}
	return busy;
}
