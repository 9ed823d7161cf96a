// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What users own through an RM client of theirs: channels in groups, and memory.
 * The control device makes them; UVM finds them by client and handle. Work that
 * was launched goes on after its channel was stopped, as it does on hardware.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "model.h"
#include "version.h"
#include "hwref/ampere/ga100/dev_runlist.h"

#define FIRST_INSTANCE	0x10000000ULL

struct model_channel *model_user_channel_find(struct model_gpu *gpu, u32 client, u32 handle)
{
	struct model_channel *channel;

	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->group && channel->client == client && channel->handle == handle && !channel->orphan)
			return channel;
	return NULL;
}

struct model_channel *model_instance_find(struct model_gpu *gpu, u64 instance)
{
	struct model_channel *channel;

	list_for_each_entry(channel, &gpu->channels, node)
		if (channel->group && channel->instance == instance)
			return channel;
	return NULL;
}

struct model_group *model_group_find(struct model_gpu *gpu, u32 id)
{
	struct model_group *group;

	list_for_each_entry(group, &gpu->groups, node)
		if (group->id == id)
			return group;
	return NULL;
}

static struct model_group *group_get(struct model_gpu *gpu, u32 id)
{
	struct model_group *group = model_group_find(gpu, id);

	if (group)
		return group;
	group = kzalloc(sizeof(*group), GFP_KERNEL);
	if (!group)
		return NULL;
	group->id = id;
	list_add(&group->node, &gpu->groups);
	return group;
}

static void group_put(struct model_group *group)
{
	if (--group->channels)
		return;
	list_del(&group->node);
	kfree(group);
}

static int channel_join(struct model_gpu *gpu, struct model_channel *channel, u32 group_id)
{
	if (model_user_channel_find(gpu, channel->client, channel->handle))
		return -EEXIST;
	channel->group = group_get(gpu, group_id);
	if (!channel->group)
		return -ENOMEM;
	channel->group->channels++;
	if (channel->group->dead || channel->group->reset_pending) {
		group_put(channel->group);
		return -EIO;
	}
	channel->id = model_channel_new_id(gpu);
	channel->instance = FIRST_INSTANCE + (u64)gpu->next_instance++ * PAGE_SIZE;
	list_add_tail(&channel->node, &gpu->channels);
	gpu->status.user_channels++;
	return 0;
}

int model_user_channel_create(const struct gpu_model_channel *request)
{
	struct model_gpu *gpu = model_gpus[request->gpu];
	struct model_channel *channel;
	int error;

	if (request->engine < GPU_MODEL_ENGINE_SM || request->engine > GPU_MODEL_ENGINE_HOST ||
	    request->subcontext >= MODEL_SUBCONTEXTS)
		return -EINVAL;
	channel = kvzalloc(sizeof(*channel), GFP_KERNEL);
	if (!channel)
		return -ENOMEM;
	channel->gpu = gpu;
	channel->engine = request->engine;
	channel->client = request->client;
	channel->handle = request->channel;
	channel->subcontext = request->engine == GPU_MODEL_ENGINE_SM ? request->subcontext : 0;
	mutex_lock(&gpu->lock);
	error = channel_join(gpu, channel, request->group);
	mutex_unlock(&gpu->lock);
	if (error)
		kvfree(channel);
	return error;
}

/* Frees a channel that its client, UVM and its programs have let go of. */
void model_user_channel_reap(struct model_channel *channel)
{
	if (!channel->orphan || channel->retained || channel->programs)
		return;
	list_del(&channel->node);
	channel->gpu->status.user_channels--;
	group_put(channel->group);
	kvfree(channel);
}

int model_user_memory_create(const struct gpu_model_memory *request)
{
	struct model_gpu *gpu = model_gpus[request->gpu];
	struct model_memory *memory = model_memory_create(gpu, request->size, request->vidmem);

	if (!memory)
		return -ENOMEM;
	memory->client = request->client;
	memory->handle = request->memory;
	mutex_lock(&gpu->lock);
	list_add(&memory->node, &gpu->memories);
	gpu->status.memories++;
	mutex_unlock(&gpu->lock);
	return 0;
}

static void memories_gone(struct model_gpu *gpu, u32 client, struct list_head *gone)
{
	struct model_memory *memory, *next;

	list_for_each_entry_safe(memory, next, &gpu->memories, node) {
		if (memory->client == client) {
			list_move(&memory->node, gone);
			gpu->status.memories--;
		}
	}
}

/* The control descriptor of a client is closed: what UVM does not hold goes. */
void model_client_gone(u32 client)
{
	int i;

	for (i = 0; i < MODEL_GPUS_MAX; i++) {
		struct model_channel *channel, *next_channel;
		struct model_memory *memory, *next_memory;
		struct model_gpu *gpu = model_gpus[i];
		LIST_HEAD(gone);

		if (!gpu)
			continue;
		mutex_lock(&gpu->lock);
		list_for_each_entry_safe(channel, next_channel, &gpu->channels, node) {
			if (!channel->group || channel->client != client)
				continue;
			channel->orphan = true;
			model_user_channel_reap(channel);
		}
		memories_gone(gpu, client, &gone);
		mutex_unlock(&gpu->lock);
		list_for_each_entry_safe(memory, next_memory, &gone, node)
			model_memory_put(memory);
	}
}

static void channel_describe(struct model_channel *channel, UvmGpuChannelInstanceInfo *info)
{
	bool sm = channel->engine == GPU_MODEL_ENGINE_SM;

	memset(info, 0, sizeof(*info));
	info->base = channel->instance;
	info->sysmem = NV_FALSE;
	info->runlistId = sm ? 0 : 1;
	info->chId = channel->id;
	info->bInSubctx = sm;
	info->subctxId = channel->subcontext;
	info->bTsgChannel = sm;
	info->tsgId = channel->group->id;
	info->tsgMaxSubctxCount = MODEL_SUBCONTEXTS;
	info->channelEngineType = sm ? UVM_GPU_CHANNEL_ENGINE_TYPE_GR : UVM_GPU_CHANNEL_ENGINE_TYPE_CE;
	info->clearFaultedToken = channel->id;
	info->pChramChannelRegister = &channel->chram;
	model_version_doorbell(info, channel->runlist, NV_RUNLIST_INTERNAL_DOORBELL, channel->id);
}

NV_STATUS nvUvmInterfaceRetainChannel(uvmGpuAddressSpaceHandle handle, NvHandle client, NvHandle channel_handle,
				      void **retained, UvmGpuChannelInstanceInfo *info)
{
	struct model_space *space = (struct model_space *)handle;
	NV_STATUS status = model_injected("RetainChannel");
	struct model_channel *channel;

	if (status != NV_OK)
		return status;
	mutex_lock(&space->gpu->lock);
	channel = model_user_channel_find(space->gpu, client, channel_handle);
	if (channel && !channel->retained) {
		channel->retained = true;
		channel->space = space;
		channel_describe(channel, info);
	} else {
		channel = NULL;
	}
	mutex_unlock(&space->gpu->lock);
	model_log(space->gpu, "retain channel", client, channel_handle, channel ? channel->id : 0);
	*retained = channel;
	return channel ? NV_OK : NV_ERR_INVALID_CHANNEL;
}
EXPORT_SYMBOL(nvUvmInterfaceRetainChannel);

NV_STATUS nvUvmInterfaceBindChannelResources(void *retained, UvmGpuChannelResourceBindParams *params)
{
	return model_injected("BindChannelResources");
}
EXPORT_SYMBOL(nvUvmInterfaceBindChannelResources);

void nvUvmInterfaceReleaseChannel(void *retained)
{
	struct model_channel *channel = retained;
	struct model_gpu *gpu = channel->gpu;

	mutex_lock(&gpu->lock);
	channel->retained = false;
	model_user_channel_reap(channel);
	mutex_unlock(&gpu->lock);
}
EXPORT_SYMBOL(nvUvmInterfaceReleaseChannel);

/* Takes the channel off its runlist. A running kernel of a subcontext is not ended by that. */
void nvUvmInterfaceStopChannel(void *retained, NvBool immediate)
{
	struct model_channel *channel = retained;

	mutex_lock(&channel->gpu->lock);
	model_log(channel->gpu, "stop channel", channel->id, immediate, channel->programs);
	channel->stopped = true;
	mutex_unlock(&channel->gpu->lock);
}
EXPORT_SYMBOL(nvUvmInterfaceStopChannel);

NV_STATUS nvUvmInterfaceGetChannelResourcePtes(uvmGpuAddressSpaceHandle space, NvP64 descriptor, NvU64 offset,
					       NvU64 size, UvmGpuExternalMappingInfo *info)
{
	return NV_ERR_NOT_SUPPORTED;
}
EXPORT_SYMBOL(nvUvmInterfaceGetChannelResourcePtes);
