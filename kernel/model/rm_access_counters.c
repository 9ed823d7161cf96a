// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface's access counters: a buffer into which nothing is ever written. */
#include <linux/module.h>
#include "model.h"

static u32 registers[6];
static u8 buffer[4096];

NV_STATUS nvUvmInterfaceInitAccessCntrInfo(uvmGpuDeviceHandle device, UvmGpuAccessCntrInfo *info, NvU32 index)
{
	memset(info, 0, sizeof(*info));
	info->pAccessCntrBufferGet = &registers[0];
	info->pAccessCntrBufferPut = &registers[1];
	info->pAccessCntrBufferFull = &registers[2];
	info->pHubIntr = &registers[3];
	info->pHubIntrEnSet = &registers[4];
	info->pHubIntrEnClear = &registers[5];
	info->accessCounterMask = 1;
	info->bufferAddress = buffer;
	info->bufferSize = sizeof(buffer);
	info->accessCntrBufferHandle = 1;
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceInitAccessCntrInfo);

NV_STATUS nvUvmInterfaceDestroyAccessCntrInfo(uvmGpuDeviceHandle device, UvmGpuAccessCntrInfo *info)
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceDestroyAccessCntrInfo);

#ifdef MODEL_HAS_CONST_ACCESS_CONFIG
NV_STATUS nvUvmInterfaceEnableAccessCntr(uvmGpuDeviceHandle device, UvmGpuAccessCntrInfo *info,
					 const UvmGpuAccessCntrConfig *config)
#else
NV_STATUS nvUvmInterfaceEnableAccessCntr(uvmGpuDeviceHandle device, UvmGpuAccessCntrInfo *info,
					 UvmGpuAccessCntrConfig *config)
#endif
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceEnableAccessCntr);

NV_STATUS nvUvmInterfaceDisableAccessCntr(uvmGpuDeviceHandle device, UvmGpuAccessCntrInfo *info)
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceDisableAccessCntr);
