/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What guest programs ask of the model through /dev/gpu-model; shared by the module and kernel/proof. */
#ifndef GPU_MODEL_ABI_H
#define GPU_MODEL_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GPU_MODEL_LANES_MAX	8
#define GPU_MODEL_NAME_LENGTH	32

enum gpu_model_engine {
	GPU_MODEL_ENGINE_SM = 1,
	GPU_MODEL_ENGINE_COPY = 2,
	GPU_MODEL_ENGINE_HOST = 3,
};

enum gpu_model_op {
	GPU_MODEL_LOAD = 1,
	GPU_MODEL_STORE = 2,
	GPU_MODEL_ATOMIC_ADD = 3,
	GPU_MODEL_PREFETCH = 4,
	GPU_MODEL_COPY = 5,		/* value: source address */
	GPU_MODEL_RELEASE = 6,		/* semaphore release by the host (PBDMA) */
	GPU_MODEL_PAUSE = 7,		/* does nothing for one step of the lane */
};

enum gpu_model_state {
	GPU_MODEL_RUNNING = 0,
	GPU_MODEL_DONE = 1,
	GPU_MODEL_KILLED = 2,		/* its group was reset */
};

/* 8-byte accesses; a copy moves length bytes. */
struct gpu_model_access {
	__u64 address;
	__u64 value;
	__u32 op;
	__u32 length;
};

/* Clients with the same group share a timeslice group, each in a subcontext of its own, as MPS clients do. */
struct gpu_model_channel {
	__u32 gpu;
	__u32 client;
	__u32 channel;
	__u32 engine;
	__u32 group;
	__u32 subcontext;
};

struct gpu_model_memory {
	__u32 gpu;
	__u32 client;
	__u32 memory;
	__u32 vidmem;
	__u64 size;
};

/* Lane i of n runs accesses i, i + n, ... of the list, repeat times over. */
struct gpu_model_launch {
	__u32 client;
	__u32 channel;
	__u32 lanes;
	__u32 count;
	__u32 repeat;
	__u32 program;			/* out */
	__u64 accesses;
};

#define GPU_MODEL_TIMES_MAX	256

struct gpu_model_wait {
	__u32 program;
	__u32 timeout_ms;
	__u32 state;			/* out: gpu_model_state */
	__u32 count;			/* values to copy out */
	__u64 values;			/* what loads and atomics saw, one per access */
	__u64 steps;			/* out: accesses done so far */
	__u64 faults;			/* out: faults met */
	__u64 times;			/* where to put how long each fault took, from its entry until the access went through */
	__u32 time_count;		/* in: the most to copy; out: how many there are; ns, in the order in which they went */
	__u32 reserved;
};

struct gpu_model_inject {
	char call[GPU_MODEL_NAME_LENGTH];	/* for instance "PmaAllocPages" */
	__u32 skip;
	__u32 count;
	__u32 status;			/* NV_STATUS */
	__u32 hits;			/* out */
};

/* Replayable faults of that subcontext that were serviced before: duplicates of their entries come late. Its work may be gone. */
struct gpu_model_duplicate {
	__u32 gpu;
	__u32 group;
	__u32 subcontext;
	__u32 count;
};

struct gpu_model_setting {
	char name[GPU_MODEL_NAME_LENGTH];
	__s64 value;
};

/* Everything that must be zero after all clients are gone, and what happened so far. */
struct gpu_model_status {
	__u32 gpu;
	__u32 spaces;
	__u32 user_channels;
	__u32 programs;
	__u32 memories;
	__u32 rm_allocations;
	__u64 pma_bytes;
	__u64 faults;
	__u64 duplicates;
	__u64 overflows;
	__u64 replays;
	__u64 cancels;
	__u64 cancelled;
	__u64 non_replayable;
	__u64 clears;
	__u64 reported;			/* non-replayable faults that UVM handed to RM */
	__u64 resets;			/* groups reset by GSP */
	__u64 channel_errors;		/* RC on UVM's own channels, malformed methods; calls of RM in sleep */
	__u64 fatal_reports;		/* ReportFatalError calls */
	__u64 invalidates;
	__u64 tlb_hits;
	__u64 tlb_misses;
	__u64 methods;
	__u64 interrupts;
};

#define GPU_MODEL_IOC_CHANNEL	_IOW('G', 1, struct gpu_model_channel)
#define GPU_MODEL_IOC_MEMORY	_IOW('G', 2, struct gpu_model_memory)
#define GPU_MODEL_IOC_LAUNCH	_IOWR('G', 3, struct gpu_model_launch)
#define GPU_MODEL_IOC_WAIT	_IOWR('G', 4, struct gpu_model_wait)
#define GPU_MODEL_IOC_INJECT	_IOWR('G', 5, struct gpu_model_inject)
#define GPU_MODEL_IOC_SET	_IOW('G', 6, struct gpu_model_setting)
#define GPU_MODEL_IOC_STATUS	_IOWR('G', 7, struct gpu_model_status)
#define GPU_MODEL_IOC_SUSPEND	_IO('G', 8)
#define GPU_MODEL_IOC_RESUME	_IO('G', 9)
#define GPU_MODEL_IOC_DUPLICATE	_IOW('G', 10, struct gpu_model_duplicate)

#endif
