// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's fault buffers. */
#include <linux/module.h>
#include "model.h"

NV_STATUS nvUvmInterfaceOwnPageFaultIntr(uvmGpuDeviceHandle device, NvBool own)
{
	return model_injected("OwnPageFaultIntr");
}
EXPORT_SYMBOL(nvUvmInterfaceOwnPageFaultIntr);

NV_STATUS nvUvmInterfaceInitFaultInfo(uvmGpuDeviceHandle device, UvmGpuFaultInfo *info)
{
	struct model_gpu *gpu = (struct model_gpu *)device;
	struct model_fault_buffer *faults = &gpu->faults;

	memset(info, 0, sizeof(*info));
	info->replayable.pFaultBufferGet = &faults->get;
	info->replayable.pFaultBufferPut = &faults->put;
	info->replayable.pFaultBufferInfo = &faults->info;
	info->replayable.pPmcIntr = &faults->interrupt;
	info->replayable.pPmcIntrEnSet = &faults->enable_set;
	info->replayable.pPmcIntrEnClear = &faults->enable_clear;
	info->replayable.pPrefetchCtrl = &faults->prefetch;
	info->replayable.replayableFaultMask = 1;
	info->replayable.bufferAddress = faults->entries;
	info->replayable.bufferSize = faults->count * MODEL_FAULT_BYTES;
#ifdef MODEL_HAS_UVM_OWNS_FAULT_BUFFER
	info->replayable.bUvmOwnsHwFaultBuffer = NV_TRUE;
#endif
	/* How UVM names the GPU when it asks for the other kind, in the top half too. */
	info->nonReplayable.shadowBufferAddress = gpu->shadow.packets;
	info->nonReplayable.shadowBufferContext = gpu;
	info->nonReplayable.bufferSize = MODEL_SHADOW_ENTRIES * MODEL_FAULT_BYTES;
	info->faultBufferHandle = 1;
	return model_injected("InitFaultInfo");
}
EXPORT_SYMBOL(nvUvmInterfaceInitFaultInfo);

NV_STATUS nvUvmInterfaceDestroyFaultInfo(uvmGpuDeviceHandle device, UvmGpuFaultInfo *info)
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceDestroyFaultInfo);

NV_STATUS nvUvmInterfaceHasPendingNonReplayableFaults(UvmGpuFaultInfo *info, NvBool *pending)
{
	struct model_gpu *gpu = info->nonReplayable.shadowBufferContext;

	*pending = READ_ONCE(gpu->shadow.get) != READ_ONCE(gpu->shadow.put);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceHasPendingNonReplayableFaults);

NV_STATUS nvUvmInterfaceGetNonReplayableFaults(UvmGpuFaultInfo *info, void *buffer, NvU32 *count)
{
	struct model_gpu *gpu = info->nonReplayable.shadowBufferContext;
	struct model_shadow *shadow = &gpu->shadow;
	unsigned long flags;

	*count = 0;
	spin_lock_irqsave(&shadow->lock, flags);
	while (shadow->get != shadow->put) {
		memcpy(buffer + *count * MODEL_FAULT_BYTES, shadow->packets[shadow->get % MODEL_SHADOW_ENTRIES],
		       MODEL_FAULT_BYTES);
		WRITE_ONCE(shadow->get, shadow->get + 1);
		(*count)++;
	}
	spin_unlock_irqrestore(&shadow->lock, flags);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceGetNonReplayableFaults);

/* The fault is RM's from here on. */
NV_STATUS nvUvmInterfaceReportNonReplayableFault(uvmGpuDeviceHandle device, const void *packet)
{
	struct model_gpu *gpu = (struct model_gpu *)device;
	const u32 *words = packet;
	struct model_channel *channel;

	mutex_lock(&gpu->lock);
	gpu->status.reported++;
	channel = model_instance_find(gpu, ((u64)words[1] << 32) | (words[0] & ~0xfffU));
	if (channel)
		model_gsp_fault(channel->group, gpu, "reported fault");
	mutex_unlock(&gpu->lock);
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceReportNonReplayableFault);

#ifdef MODEL_HAS_FLUSH_FAULT_INFO
NV_STATUS nvUvmInterfaceFlushReplayableFaultBuffer(UvmGpuFaultInfo *info, NvBool copy)
#else
NV_STATUS nvUvmInterfaceFlushReplayableFaultBuffer(uvmGpuDeviceHandle device)
#endif
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceFlushReplayableFaultBuffer);
