// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's sessions, devices and what a GPU says about itself. */
#include <linux/module.h>
#include "model.h"
#include "version.h"

NV_STATUS nvUvmInterfaceRegisterGpu(const NvProcessorUuid *uuid, UvmGpuPlatformInfo *info)
{
	struct model_gpu *gpu = model_gpu_find(uuid);
	NV_STATUS status = model_injected("RegisterGpu");

	if (status != NV_OK)
		return status;
	if (!gpu)
		return NV_ERR_GPU_UUID_NOT_FOUND;
	info->pci_dev = gpu->pci;
	info->dma_addressable_start = 0;
	info->dma_addressable_limit = (1ULL << 47) - 1;
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceRegisterGpu);

void nvUvmInterfaceUnregisterGpu(const NvProcessorUuid *uuid)
{
}
EXPORT_SYMBOL(nvUvmInterfaceUnregisterGpu);

NV_STATUS nvUvmInterfaceSessionCreate(uvmGpuSessionHandle *session, UvmPlatformInfo *info)
{
	memset(info, 0, sizeof(*info));
	*session = (uvmGpuSessionHandle)&model_settings;
	return model_injected("SessionCreate");
}
EXPORT_SYMBOL(nvUvmInterfaceSessionCreate);

NV_STATUS nvUvmInterfaceSessionDestroy(uvmGpuSessionHandle session)
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceSessionDestroy);

NV_STATUS nvUvmInterfaceDeviceCreate(uvmGpuSessionHandle session, const UvmGpuInfo *info, const NvProcessorUuid *uuid,
				     uvmGpuDeviceHandle *device, NvBool partition)
{
	NV_STATUS status = model_injected("DeviceCreate");

	if (status != NV_OK)
		return status;
	*device = (uvmGpuDeviceHandle)model_gpu_find(uuid);
	return *device ? NV_OK : NV_ERR_GPU_UUID_NOT_FOUND;
}
EXPORT_SYMBOL(nvUvmInterfaceDeviceCreate);

void nvUvmInterfaceDeviceDestroy(uvmGpuDeviceHandle device)
{
}
EXPORT_SYMBOL(nvUvmInterfaceDeviceDestroy);

NV_STATUS nvUvmInterfaceQueryCaps(uvmGpuDeviceHandle device, UvmGpuCaps *caps)
{
	memset(caps, 0, sizeof(*caps));
	return model_injected("QueryCaps");
}
EXPORT_SYMBOL(nvUvmInterfaceQueryCaps);

NV_STATUS nvUvmInterfaceQueryCopyEnginesCaps(uvmGpuDeviceHandle device, UvmGpuCopyEnginesCaps *caps)
{
	int i;

	memset(caps, 0, sizeof(*caps));
	for (i = 1; i < 4; i++) {
		UvmGpuCopyEngineCaps *engine = &caps->copyEngineCaps[i];

		engine->supported = 1;
		engine->sysmem = 1;
		engine->sysmemRead = 1;
		engine->sysmemWrite = 1;
		engine->p2p = 1;
		engine->cePceMask = 1U << i;
	}
	return model_injected("QueryCopyEnginesCaps");
}
EXPORT_SYMBOL(nvUvmInterfaceQueryCopyEnginesCaps);

NV_STATUS nvUvmInterfaceGetGpuInfo(const NvProcessorUuid *uuid, const UvmGpuClientInfo *client, UvmGpuInfo *info)
{
	struct model_gpu *gpu = model_gpu_find(uuid);

	if (!gpu)
		return NV_ERR_GPU_UUID_NOT_FOUND;
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "GPU model (%s)", gpu->arch->name);
	info->uuid = *uuid;
	info->gpuArch = gpu->arch->architecture;
	info->gpuImplementation = gpu->arch->implementation;
	info->hostClass = gpu->arch->host_class;
	info->ceClass = gpu->arch->ce_class;
	info->computeClass = gpu->arch->compute_class;
	info->subdeviceCount = 1;
	info->virtMode = UVM_VIRT_MODE_NONE;
	info->gpcCount = 2;
	info->maxGpcCount = 2;
	info->tpcCount = 8;
	info->maxTpcPerGpcCount = 4;
	info->sysmemLink = UVM_LINK_TYPE_PCIE;
	info->sysmemLinkRateMBps = 16000;
	return model_injected("GetGpuInfo");
}
EXPORT_SYMBOL(nvUvmInterfaceGetGpuInfo);

NV_STATUS nvUvmInterfaceGetFbInfo(uvmGpuDeviceHandle device, UvmGpuFbInfo *info)
{
	struct model_gpu *gpu = (struct model_gpu *)device;

	memset(info, 0, sizeof(*info));
	info->maxAllocatableAddress = gpu->heap.base - 1;
	info->heapSize = (u32)(gpu->heap.base / 1024);
	model_version_fb_info(info);
	return model_injected("GetFbInfo");
}
EXPORT_SYMBOL(nvUvmInterfaceGetFbInfo);

NV_STATUS nvUvmInterfaceGetEccInfo(uvmGpuDeviceHandle device, UvmGpuEccInfo *info)
{
	memset(info, 0, sizeof(*info));
	return model_injected("GetEccInfo");
}
EXPORT_SYMBOL(nvUvmInterfaceGetEccInfo);

NV_STATUS nvUvmInterfaceServiceDeviceInterruptsRM(uvmGpuDeviceHandle device)
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceServiceDeviceInterruptsRM);

/* No link between any two: neither can reach the other's memory. */
NV_STATUS nvUvmInterfaceGetP2PCaps(uvmGpuDeviceHandle first, uvmGpuDeviceHandle second, UvmGpuP2PCapsParams *caps)
{
	memset(caps, 0, sizeof(*caps));
	caps->p2pLink = UVM_LINK_TYPE_NONE;
	return model_injected("GetP2PCaps");
}
EXPORT_SYMBOL(nvUvmInterfaceGetP2PCaps);
