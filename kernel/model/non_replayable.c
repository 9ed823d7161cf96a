// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Faults of copy engines and of the host: RM copies them to a shadow queue for
 * UVM, and the channel waits until its faulted bit is cleared, on Turing by a
 * method, on Hopper by a store to the channel's register and a doorbell.
 */
#include <linux/ktime.h>
#include "model.h"
#include "hwref/ampere/ga100/dev_runlist.h"

#define PBDMA_FAULTED	(1U << 4)
#define ENGINE_FAULTED	(1U << 5)
#define CLIENT_HUB	(1U << 20)
#define FAULTS_ENABLED	(1U << 30)
#define VALID		(1U << 31)
#define HOST_DISTANCE	(1ULL << 30)

struct access_fault {
	u64 address;
	enum model_fault fault;
	enum model_access_type access;
	bool copy;
};

static void packet_fill(struct model_channel *channel, const struct access_fault *fault, u32 *packet)
{
	const struct model_arch *arch = channel->gpu->arch;
	u64 now = ktime_get_real_ns();

	packet[0] = lower_32_bits(channel->instance);
	packet[1] = upper_32_bits(channel->instance);
	packet[2] = lower_32_bits(fault->address);
	packet[3] = upper_32_bits(fault->address);
	packet[4] = lower_32_bits(now);
	packet[5] = upper_32_bits(now);
	packet[6] = fault->copy ? arch->engine_ce : arch->engine_host;
	packet[7] = fault->fault | (fault->copy ? arch->client_ce : arch->client_host) << 8 | fault->access << 16 |
		    CLIENT_HUB | FAULTS_ENABLED | VALID;
}

static void put_packet(struct model_channel *channel, const struct access_fault *fault)
{
	struct model_gpu *gpu = channel->gpu;
	struct model_shadow *shadow = &gpu->shadow;
	unsigned long flags;

	channel->faulted |= fault->copy ? ENGINE_FAULTED : PBDMA_FAULTED;
	WRITE_ONCE(channel->chram, channel->faulted);
	spin_lock_irqsave(&shadow->lock, flags);
	packet_fill(channel, fault, shadow->packets[shadow->put % MODEL_SHADOW_ENTRIES]);
	smp_wmb();
	WRITE_ONCE(shadow->put, shadow->put + 1);
	spin_unlock_irqrestore(&shadow->lock, flags);
	gpu->status.non_replayable++;
}

/* What the host wants to do for the channel besides, which goes through or faults. */
static void host_access(struct model_channel *channel)
{
	struct access_fault fault = { .address = channel->host_address, .access = MODEL_ACCESS_WRITE };
	u64 left;

	model_translate(channel->space, fault.address, fault.access, false, &left, &fault.fault);
	if (fault.fault == MODEL_FAULT_NONE)
		channel->host_address = 0;
	else
		put_packet(channel, &fault);
}

void model_non_replayable(struct model_program *program, u32 lane)
{
	struct model_channel *channel = program->channel;
	struct access_fault fault = {
		.address = program->lane[lane].fault_address,
		.fault = program->lane[lane].fault,
		.access = program->lane[lane].access,
		.copy = channel->engine == GPU_MODEL_ENGINE_COPY,
	};

	put_packet(channel, &fault);
	if (fault.copy && channel->client == (u32)READ_ONCE(model_settings.host_faults_too)) {
		WRITE_ONCE(model_settings.host_faults_too, 0);
		channel->host_address = fault.address + HOST_DISTANCE;
		host_access(channel);
	}
	model_interrupt(channel->gpu);
}

void model_channel_clear_faulted(struct model_channel *channel, u32 mask)
{
	struct model_program *program;

	model_log(channel->gpu, "clear faulted", channel->id, mask, channel->faulted);
	channel->gpu->status.clears++;
	channel->faulted &= ~mask;
	WRITE_ONCE(channel->chram, channel->faulted);
	if ((mask & PBDMA_FAULTED) && channel->host_address) {
		host_access(channel);
		model_interrupt(channel->gpu);
	}
	if (channel->faulted)
		return;
	list_for_each_entry(program, &channel->gpu->programs, node)
		if (program->channel == channel && program->lane[0].state == MODEL_LANE_FAULTED)
			program->lane[0].state = MODEL_LANE_READY;
}

/* A store to the register is seen here, once the doorbell after it has been rung. */
bool model_channels_poll(struct model_gpu *gpu)
{
	struct model_channel *channel;
	bool busy = false;

	list_for_each_entry(channel, &gpu->channels, node) {
		u32 *doorbell = &channel->runlist[NV_RUNLIST_INTERNAL_DOORBELL / 4];
		u32 update = READ_ONCE(channel->chram);

		if (!channel->faulted || READ_ONCE(*doorbell) != channel->id)
			continue;
		if (update != NV_CHRAM_CHANNEL_UPDATE_RESET_ENG_FAULTED &&
		    update != NV_CHRAM_CHANNEL_UPDATE_RESET_PBDMA_FAULTED)
			continue;
		WRITE_ONCE(*doorbell, 0);
		model_channel_clear_faulted(channel, update == NV_CHRAM_CHANNEL_UPDATE_RESET_ENG_FAULTED ? ENGINE_FAULTED
											    : PBDMA_FAULTED);
		busy = true;
	}
	return busy;
}
