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

#ifdef MODEL_HAS_EVENTS_LINUX
typedef struct UvmEventsLinux model_events_t;
#else
typedef struct UvmOpsUvmEvents model_events_t;
#endif

#endif
