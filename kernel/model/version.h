/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What differs between driver branches. model.mk looks into the branch's own headers and defines MODEL_HAS_*. */
#ifndef GPU_MODEL_VERSION_H
#define GPU_MODEL_VERSION_H

#include "nv_uvm_interface.h"

static inline void model_version_fb_info(UvmGpuFbInfo *info)
{
#ifdef MODEL_HAS_MAX_VIDMEM_PAGE_SIZE
	info->maxVidmemPageSize = 2 << 20;
#endif
}

/* Where UVM asks for the channel to be looked at again once its faulted bit is cleared. */
static inline void model_version_doorbell(UvmGpuChannelInstanceInfo *info, u32 *runlist, u32 doorbell, u32 token)
{
#ifdef MODEL_HAS_RUNLIST_REGISTER
	info->pRunlistPRIBaseRegister = runlist;
#else
	info->workSubmissionOffset = runlist + doorbell / sizeof(u32);
	info->workSubmissionToken = token;
#endif
}

/* RM had names of its own for the values of the user's mapping types. */
#ifdef MODEL_HAS_RM_MAPPING_TYPE
#define MODEL_MAPPING_READ_ONLY	 UvmRmGpuMappingTypeReadOnly
#define MODEL_MAPPING_NO_ATOMICS UvmRmGpuMappingTypeReadWrite
#else
#define MODEL_MAPPING_READ_ONLY	 UvmGpuMappingTypeReadOnly
#define MODEL_MAPPING_NO_ATOMICS UvmGpuMappingTypeReadWrite
#endif

#ifdef MODEL_HAS_EVENTS_LINUX
typedef struct UvmEventsLinux model_events_t;
#else
typedef struct UvmOpsUvmEvents model_events_t;
#endif

#endif
