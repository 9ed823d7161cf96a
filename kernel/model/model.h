/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A GPU and its resource manager in software, behind the interface that
 * nvidia-uvm.ko imports. One engine thread per GPU runs everything that
 * hardware would do on its own. gpu->lock guards all state of a GPU; nothing
 * calls into UVM while holding it. Page memory has a lock of its own, inside.
 */
#ifndef GPU_MODEL_H
#define GPU_MODEL_H

#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include "nv_uvm_interface.h"
#include "abi.h"

#define MODEL_GPUS_MAX		2
#define MODEL_FAULT_BYTES	32
#define MODEL_FAULT_BUFFER	(32 * 1024)
#define MODEL_BIG_PAGE		0x10000ULL
#define MODEL_SUBCONTEXTS	64
#define MODEL_CHANNEL_ID_MAX	0xfff
#define MODEL_LEVELS_MAX	5
#define MODEL_TLB_ENTRIES	1024
#define MODEL_PDE_ENTRIES	64
#define MODEL_SHADOW_ENTRIES	64

struct model_gpu;

/* A physical address in one of the two memories that UVM's page tables use. */
struct model_phys {
	u64 address;
	bool vidmem;
};

/* Values of NV_PFAULT_FAULT_TYPE, the same on Turing and Hopper. */
enum model_fault {
	MODEL_FAULT_PDE = 0,
	MODEL_FAULT_PTE = 2,
	MODEL_FAULT_VA_LIMIT = 3,
	MODEL_FAULT_PRIVILEGE = 5,
	MODEL_FAULT_READ_ONLY = 6,
	MODEL_FAULT_APERTURE = 10,
	MODEL_FAULT_REGION = 13,
	MODEL_FAULT_ATOMIC = 15,
	MODEL_FAULT_NONE = 31,
};

/* Values of NV_PFAULT_ACCESS_TYPE. */
enum model_access_type {
	MODEL_ACCESS_READ = 0,
	MODEL_ACCESS_WRITE = 1,
	MODEL_ACCESS_ATOMIC = 2,
	MODEL_ACCESS_PREFETCH = 3,
};

struct model_leaf {
	struct model_phys phys;
	u8 page_shift;
	bool sparse;
	bool read_only;
	bool no_atomics;
	bool privileged;
	bool peer;
};

enum model_entry_kind {
	MODEL_ENTRY_INVALID,
	MODEL_ENTRY_SPARSE,
	MODEL_ENTRY_NO_SMALL,	/* an invalid big PTE that also hides the small ones */
	MODEL_ENTRY_VALID,
};

struct model_arch {
	const char *name;
	u32 architecture;
	u32 implementation;
	u32 host_class;
	u32 ce_class;
	u32 compute_class;
	u32 engine_graphics;
	u32 engine_ce;
	u32 engine_host;
	u32 cancel_engine_mask;
	u32 client_sm[4];
	u32 client_ce;
	u32 client_host;
	bool clear_by_register;
	bool segment_base;
	u8 address_bits;
	u8 levels;
	u8 shift[MODEL_LEVELS_MAX];
	u8 bits[MODEL_LEVELS_MAX];
	/* Level whose entry may be a leaf of its own, beside the last one; -1 for none. */
	int leaf_level;
	enum model_entry_kind (*pde)(u64 entry, struct model_phys *table);
	enum model_entry_kind (*big_pde)(u64 entry, struct model_phys *table);
	enum model_entry_kind (*pte)(u64 entry, bool big, struct model_leaf *leaf);
	u64 (*make_pte)(struct model_phys phys, bool read_only, bool no_atomics);
};

struct model_tlb_entry {
	u64 directory;
	u64 page;
	struct model_leaf leaf;
	bool valid;
};

struct model_pde_entry {
	u64 directory;
	u64 index;
	u64 entry[2];
	bool valid;
};

struct model_tlb {
	struct model_tlb_entry pages[MODEL_TLB_ENTRIES];
	struct model_pde_entry tables[MODEL_LEVELS_MAX][MODEL_PDE_ENTRIES];
};

/* 64 KiB pages of a part of video memory. */
struct model_pages {
	struct mutex lock;
	unsigned long *map;
	u64 base;
	u32 count;
	u32 used;
};

struct model_memory {
	struct list_head node;
	struct kref references;
	struct model_gpu *gpu;
	u32 client;
	u32 handle;
	u64 size;
	struct model_phys phys;
	void *cpu;
};

struct model_allocation {
	struct list_head node;
	u64 address;
	u64 size;
	struct model_memory *memory;
};

struct model_space {
	struct list_head node;
	struct model_gpu *gpu;
	struct list_head allocations;
	u64 next_address;
	struct model_phys directory;
	bool has_directory;
	bool user;
};

struct model_group {
	struct list_head node;
	u32 id;
	u32 channels;
	bool reset_pending;
	bool dead;
	u64 reset_at_ns;
	u32 duplicates_due;
	u32 duplicates_subcontext;
};

struct model_channel {
	struct list_head node;
	struct model_gpu *gpu;
	struct model_space *space;
	struct model_group *group;	/* NULL for UVM's own channels */
	u32 id;
	u32 engine;
	bool dead;

	/* UVM's own: the ring, and where its decoding stands */
	u64 *ring;
	u32 entries;
	u32 get;
	u32 put;
	u32 ring_put;
	u32 doorbell;
	u32 dummy;
	NvNotification error;
	u64 segment_base;
	u32 word;
	u32 objects[8];
	u32 host[0x100 / 4];
	u32 mem_ops_seen;
	u32 *copy;
	u32 software[3];

	/* a user's */
	u32 client;
	u32 handle;
	u32 subcontext;
	u64 instance;
	bool retained;
	bool stopped;
	bool orphan;
	u32 programs;
	u32 faulted;
	u64 host_address;	/* what the host accesses for it besides, once; 0 for nothing */
	u32 chram;
	u32 runlist[0x100 / 4];
};

enum model_lane_state {
	MODEL_LANE_READY,
	MODEL_LANE_FAULTED,	/* waits for a replay or a cleared channel */
	MODEL_LANE_CANCELLED,
	MODEL_LANE_DONE,
};

struct model_lane {
	enum model_lane_state state;
	u64 step;
	u64 fault_address;
	u64 fault_at_ns;
	enum model_fault fault;
	enum model_access_type access;
};

struct model_program {
	struct list_head node;
	struct kref references;
	struct model_channel *channel;
	u32 id;
	u32 state;
	u32 lanes;
	u32 count;
	u64 total;
	u64 done;
	u64 faults;
	u32 time_count;
	u64 times[GPU_MODEL_TIMES_MAX];	/* of its first faults */
	struct gpu_model_access *accesses;
	u64 *values;
	struct model_lane lane[GPU_MODEL_LANES_MAX];
};

struct model_shadow {
	spinlock_t lock;
	u32 get;
	u32 put;
	u32 packets[MODEL_SHADOW_ENTRIES][MODEL_FAULT_BYTES / 4];
};

struct model_fault_buffer {
	void *entries;
	u32 count;
	u32 late;		/* index + 1 of an entry whose valid bit is still to be set */
	u32 get;
	u32 put;
	u32 info;
	u32 interrupt;
	u32 enable_set;
	u32 enable_clear;
	bool masked;
	u32 prefetch;
};

struct model_gpu {
	struct mutex lock;
	u32 index;
	NvProcessorUuid uuid;
	struct pci_dev *pci;
	const struct model_arch *arch;
	struct task_struct *engine;
	wait_queue_head_t changed;
	struct irq_work interrupt;
	bool suspended;
	bool asleep;		/* from UVM's answer to suspend until it is told to resume: nobody may call RM */

	u8 *vidmem;
	u64 vidmem_bytes;
	struct model_pages pma;
	struct model_pages heap;
	UvmPmaStatistics pma_statistics;

	struct list_head spaces;
	struct list_head channels;
	struct list_head groups;
	struct list_head programs;
	struct list_head memories;
	u32 last_channel;
	u32 next_instance;
	u32 time_low;
	u32 time_high;
	u64 random;

	struct model_tlb *tlb;
	struct model_fault_buffer faults;
	struct model_shadow shadow;
	struct gpu_model_status status;
};

/* What the files offer one another, in the order of their layers (kernel/README.md): a file calls those above it. */

/* settings.c: module parameters that the control device may change */
struct model_settings {
	int arch;
	int gpus;
	int vidmem_mib;
	int seed;
	int reset_delay_ms;
	int fault_entries;
	int duplicate_percent;
	int late_valid_percent;
	int skip_invalidate;
	int drop_replay;
	int wrong_pte_bit;
	int cancel_wrong_page;
	int sparse_faults;
	int fatal_client;
	int host_faults_too;
};
extern struct model_settings model_settings;
int model_setting_change(const char *name, s64 value);

/* log.c */
void model_log(struct model_gpu *gpu, const char *what, u64 a, u64 b, u64 c);
size_t model_log_read(char *text, size_t size, u64 *position);

/* inject.c */
NV_STATUS model_injected(const char *call);
int model_inject(struct gpu_model_inject *rule);

/* memory.c */
int model_pages_init(struct model_pages *pages, u64 base, u64 bytes);
void model_pages_destroy(struct model_pages *pages);
bool model_pages_alloc(struct model_pages *pages, u32 count, u32 align, u64 *address);
void model_pages_free(struct model_pages *pages, u64 address, u32 count);
u32 model_pages_free_runs(struct model_pages *pages, u32 run);
void *model_phys_to_cpu(struct model_gpu *gpu, struct model_phys phys, u64 size);
struct model_memory *model_memory_create(struct model_gpu *gpu, u64 size, bool vidmem);
void model_memory_put(struct model_memory *memory);

/* arch_turing.c, arch_hopper.c */
extern const struct model_arch model_turing;
extern const struct model_arch model_hopper;

/* gpu.c */
extern struct model_gpu *model_gpus[MODEL_GPUS_MAX];
/* after: the GPU before it, NULL for none; its reference is taken over. Destroy it, whatever the result says. */
int model_gpu_create(u32 index, struct pci_dev *after, void (*interrupt)(struct irq_work *work));
/* Its engine has stopped; nothing where there is none. */
void model_gpu_destroy(u32 index);
struct model_gpu *model_gpu_find(const NvProcessorUuid *uuid);
u32 model_random(struct model_gpu *gpu, u32 below);
bool model_chance(struct model_gpu *gpu, int percent);
void model_interrupt(struct model_gpu *gpu);

/* tlb.c */
bool model_tlb_find(struct model_space *space, u64 address, struct model_leaf *leaf);
void model_tlb_fill(struct model_space *space, u64 address, const struct model_leaf *leaf);
bool model_tlb_find_table(struct model_space *space, int level, u64 address, u64 entry[2]);
void model_tlb_fill_table(struct model_space *space, int level, u64 address, const u64 entry[2]);
void model_tlb_invalidate(struct model_gpu *gpu, u64 directory, bool all, u64 address, u64 size, u32 levels);
u64 model_directory_key(struct model_phys directory);

/* walk.c */
enum model_fault model_walk(struct model_space *space, u64 address, struct model_leaf *leaf);
/* NULL with *fault set, or the memory behind address and how many bytes follow; sparse gives NULL with no fault. */
void *model_translate(struct model_space *space, u64 address, enum model_access_type access, bool privileged,
		      u64 *left, enum model_fault *fault);

/* channel.c */
void model_channel_error(struct model_channel *channel, const char *why, u64 info);
int model_semaphore_write(struct model_channel *channel, u64 address, u32 payload, bool timestamp);

/* rm_channel.c */
u32 model_channel_new_id(struct model_gpu *gpu);

/* rm_user.c: objects that a user's RM client would own */
struct model_channel *model_user_channel_find(struct model_gpu *gpu, u32 client, u32 handle);
struct model_group *model_group_find(struct model_gpu *gpu, u32 id);
int model_user_channel_create(const struct gpu_model_channel *request);
int model_user_memory_create(const struct gpu_model_memory *request);
void model_user_channel_reap(struct model_channel *channel);
void model_client_gone(u32 client);
struct model_channel *model_instance_find(struct model_gpu *gpu, u64 instance);

/* fault_buffer.c */
bool model_fault_report(struct model_program *program, u32 lane);
/* With the next faults of its group; false where there is no such group. */
bool model_fault_duplicate(const struct gpu_model_duplicate *request);
bool model_fault_buffer_run(struct model_gpu *gpu);
bool model_faults_pending(struct model_gpu *gpu);
bool model_shadow_pending(struct model_gpu *gpu);

/* non_replayable.c */
void model_non_replayable(struct model_program *program, u32 lane);
void model_channel_clear_faulted(struct model_channel *channel, u32 mask);
bool model_channels_poll(struct model_gpu *gpu);

/* gsp.c: what RM's firmware does about faults that nobody services */
void model_gsp_fault(struct model_group *group, struct model_gpu *gpu, const char *why);
bool model_gsp_run(struct model_gpu *gpu);

/* sm.c */
bool model_programs_run(struct model_gpu *gpu);
void model_programs_replay(struct model_gpu *gpu);
void model_programs_cancel(struct model_gpu *gpu, u64 directory, u64 address, u32 access_type, u32 engine);
void model_programs_cancel_group(struct model_gpu *gpu, u64 instance);
void model_program_release(struct kref *references);

/* copy_engine.c */
int model_copy_method(struct model_channel *channel, u32 method, u32 data);

/* mem_op.c */
int model_mem_op(struct model_channel *channel);
int model_software_method(struct model_channel *channel, u32 method, u32 data);

/* host.c */
bool model_host_run(struct model_gpu *gpu);

/* rm_events.c */
void model_top_half(const NvProcessorUuid *uuid);
int model_power(bool suspend);

/* control.c */
int model_control_init(void);
void model_control_exit(void);

#endif
