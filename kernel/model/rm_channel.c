// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's channels of UVM's own. */
#include <linux/module.h>
#include <linux/slab.h>
#include "model.h"

NV_STATUS nvUvmInterfaceTsgAllocate(uvmGpuAddressSpaceHandle space, const UvmGpuTsgAllocParams *params,
				    uvmGpuTsgHandle *tsg)
{
	NV_STATUS status = model_injected("TsgAllocate");

	*tsg = (uvmGpuTsgHandle)space;
	return status;
}
EXPORT_SYMBOL(nvUvmInterfaceTsgAllocate);

void nvUvmInterfaceTsgDestroy(uvmGpuTsgHandle tsg)
{
}
EXPORT_SYMBOL(nvUvmInterfaceTsgDestroy);

static void channel_free(struct model_channel *channel)
{
	kvfree(channel->ring);
	kvfree(channel->copy);
	kvfree(channel);
}

static void channel_describe(struct model_channel *channel, UvmGpuChannelInfo *info)
{
	memset(info, 0, sizeof(*info));
	info->gpGet = &channel->get;
	info->gpPut = &channel->ring_put;
	info->gpFifoEntries = (UvmGpuPointer *)channel->ring;
	info->numGpFifoEntries = channel->entries;
	info->channelClassNum = channel->gpu->arch->host_class;
	info->errorNotifier = &channel->error;
	info->hwChannelId = channel->id;
	info->dummyBar1Mapping = &channel->dummy;
	info->workSubmissionOffset = &channel->doorbell;
	info->workSubmissionToken = channel->id;
	info->pWorkSubmissionToken = &channel->id;
}

static bool id_is_taken(struct model_gpu *gpu, u32 id)
{
	struct model_channel *channel;

	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->id == id)
			return true;
	return false;
}

/*
 * Under the GPU's lock. Ids come again, as a runlist's do: registers and
 * doorbells have 12 bits for them. Nobody has all of them at once.
 */
u32 model_channel_new_id(struct model_gpu *gpu)
{
	u32 tries;

	for (tries = 0; tries < MODEL_CHANNEL_ID_MAX; tries++) {
		gpu->last_channel = gpu->last_channel % MODEL_CHANNEL_ID_MAX + 1;
		if (!id_is_taken(gpu, gpu->last_channel))
			break;
	}
	return gpu->last_channel;
}

NV_STATUS nvUvmInterfaceChannelAllocate(const uvmGpuTsgHandle tsg, const UvmGpuChannelAllocParams *params,
					uvmGpuChannelHandle *handle, UvmGpuChannelInfo *info)
{
	struct model_space *space = (struct model_space *)tsg;
	struct model_gpu *gpu = space->gpu;
	NV_STATUS status = model_injected("ChannelAllocate");
	struct model_channel *channel;

	if (status != NV_OK)
		return status;
	channel = kvzalloc(sizeof(*channel), GFP_KERNEL);
	if (!channel)
		return NV_ERR_NO_MEMORY;
	channel->gpu = gpu;
	channel->space = space;
	channel->engine = GPU_MODEL_ENGINE_COPY;
	channel->entries = params->numGpFifoEntries;
	channel->ring = kvcalloc(channel->entries, sizeof(u64), GFP_KERNEL);
	channel->copy = kvcalloc(0x1000 / 4, sizeof(u32), GFP_KERNEL);
	if (!channel->ring || !channel->copy) {
		channel_free(channel);
		return NV_ERR_NO_MEMORY;
	}
	mutex_lock(&gpu->lock);
	channel->id = model_channel_new_id(gpu);
	channel_describe(channel, info);
	list_add_tail(&channel->node, &gpu->channels);
	mutex_unlock(&gpu->lock);
	*handle = (uvmGpuChannelHandle)channel;
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceChannelAllocate);

void nvUvmInterfaceChannelDestroy(uvmGpuChannelHandle handle)
{
	struct model_channel *channel = (struct model_channel *)handle;

	mutex_lock(&channel->gpu->lock);
	list_del(&channel->node);
	mutex_unlock(&channel->gpu->lock);
	channel_free(channel);
}
EXPORT_SYMBOL(nvUvmInterfaceChannelDestroy);
