// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the model does not have: peer mappings, confidential computing, SR-IOV's paging
 * channels, page-table entries of special memory. Every call says so. The
 * branches' prototypes differ and no argument is looked at, so the interface's
 * header stays out of this file.
 */
#include <linux/bug.h>
#include <linux/export.h>
#include <linux/printk.h>
#include <linux/types.h>
#include "nvstatus.h"

#define UNSUPPORTED(call)						\
	NV_STATUS call(void);						\
	NV_STATUS call(void)						\
	{								\
		pr_info_once("gpu-model: " #call " is not modelled\n");	\
		return NV_ERR_NOT_SUPPORTED;				\
	}								\
	EXPORT_SYMBOL(call)

UNSUPPORTED(nvUvmInterfaceP2pObjectCreate);
UNSUPPORTED(nvUvmInterfaceP2pObjectDestroy);
UNSUPPORTED(nvUvmInterfacePagingChannelAllocate);
UNSUPPORTED(nvUvmInterfacePagingChannelDestroy);
UNSUPPORTED(nvUvmInterfacePagingChannelsMap);
UNSUPPORTED(nvUvmInterfacePagingChannelsUnmap);
UNSUPPORTED(nvUvmInterfacePagingChannelPushStream);
UNSUPPORTED(nvUvmInterfaceCslInitContext);
UNSUPPORTED(nvUvmInterfaceDeinitCslContext);
UNSUPPORTED(nvUvmInterfaceCslUpdateContext);
UNSUPPORTED(nvUvmInterfaceCslRotateIv);
UNSUPPORTED(nvUvmInterfaceCslRotateKey);
UNSUPPORTED(nvUvmInterfaceCslEncrypt);
UNSUPPORTED(nvUvmInterfaceCslDecrypt);
UNSUPPORTED(nvUvmInterfaceCslSign);
UNSUPPORTED(nvUvmInterfaceCslQueryMessagePool);
UNSUPPORTED(nvUvmInterfaceCslIncrementIv);
UNSUPPORTED(nvUvmInterfaceCslLogEncryption);
UNSUPPORTED(nvUvmInterfaceKeyRotationChannelDisable);
UNSUPPORTED(nvUvmInterfaceGetExternalAllocPhysAddrs);
UNSUPPORTED(nvUvmInterfaceTogglePrefetchFaults);
UNSUPPORTED(nvUvmInterfaceAccessBitsBufAlloc);
UNSUPPORTED(nvUvmInterfaceAccessBitsBufFree);
UNSUPPORTED(nvUvmInterfaceAccessBitsDump);

/* UVM's zeroed answer says already that there is no NVLink. */
NV_STATUS nvUvmInterfaceGetNvlinkInfo(void);
NV_STATUS nvUvmInterfaceGetNvlinkInfo(void)
{
	return NV_OK;
}
EXPORT_SYMBOL(nvUvmInterfaceGetNvlinkInfo);

void nvUvmInterfaceReportFatalError(NV_STATUS error);
void nvUvmInterfaceReportFatalError(NV_STATUS error)
{
	WARN(1, "gpu-model: UVM reported the fatal error 0x%x\n", error);
}
EXPORT_SYMBOL(nvUvmInterfaceReportFatalError);
