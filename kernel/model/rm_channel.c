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
	channel->id = gpu->next_channel++;
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
