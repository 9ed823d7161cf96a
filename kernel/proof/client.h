/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* One MPS client as the driver sees it: its UVM address space, its channels in a shared group, its programs. */
#ifndef PROOF_CLIENT_H
#define PROOF_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi.h"
#include "uvm_types.h"

#define PROOF_GROUP		7
#define PROOF_GROUP_ALONE	8
#define PROOF_CHANNEL_SM	1
#define PROOF_CHANNEL_COPY	2
#define PROOF_CHANNEL_HOST	3
#define PROOF_MIB		(1UL << 20)

struct client {
	int uvm;
	int mm;
	int model;
	uint32_t number;	/* also its RM client handle and its subcontext */
	uint32_t gpu;
	uint32_t group;		/* of its channels */
};

/* Every function ends the process with a message where the driver or the model refuses; what is returned is right. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The newest events of the driver's isolation and of the model. */
void print_events(void);
NvProcessorUuid gpu_uuid(uint32_t gpu);

struct client client_open(uint32_t number, uint32_t gpu);
/* With nobody else in its group. */
struct client client_open_alone(uint32_t number, uint32_t gpu);
/* One that UVM associates with no process's mm, as any that shares its descriptor with others. */
struct client client_open_without_mm(uint32_t number, uint32_t gpu);
void client_add_gpu(struct client *client, uint32_t gpu);
/* One more, for programs of SMs. */
void client_add_channel(struct client *client, uint32_t channel, uint32_t group);
void client_close(struct client *client);
/* In good order: the channels first, as CUDA does. */
void client_leave(struct client *client);

void *managed_map(struct client *client, uint64_t address, size_t size);
void migrate(struct client *client, void *address, size_t size, bool to_gpu);
void set_preferred_location(struct client *client, void *address, size_t size, bool on_gpu);
void enable_read_duplication(struct client *client, void *address, size_t size);
/* The pages stay where they are preferred, whoever touches them. Returns UVM's status: not every place is possible. */
uint32_t try_keep_in_place(struct client *client, void *address, size_t size);
void keep_in_place(struct client *client, void *address, size_t size);
/* From here on no CPU page can be allocated for these addresses (UVM's own error injection). */
void fail_cpu_pages(struct client *client, void *address, size_t size);
/* Maps size bytes of a new allocation into an external range at address; mapping is a UvmGpuMappingType. */
void external_map(struct client *client, uint64_t address, size_t size, uint32_t memory, uint32_t mapping);
void external_range(struct client *client, uint64_t address, size_t size);
void free_range(struct client *client, uint64_t address, size_t size);

/* Returns UVM's status. */
uint32_t try_external_range(struct client *client, uint64_t address, size_t size);
/* One page of channels' own state, which the GPU maps at that address. */
void semaphore_pool(struct client *client, uint64_t address);

/* Video memory of the client's RM client, to be mapped; false where there is none. */
bool try_memory(struct client *client, uint32_t memory, size_t size);

uint32_t launch(struct client *client, uint32_t channel, uint32_t lanes, const struct gpu_model_access *accesses,
		uint32_t count, uint32_t repeat);
/* False where the channel takes no more programs. */
bool try_launch(struct client *client, uint32_t channel, uint32_t lanes, const struct gpu_model_access *accesses,
		uint32_t count, uint32_t repeat, uint32_t *program);
/* One lane does op at first, first + stride, ... The program, or 0 where the channel takes no more. */
uint32_t several(struct client *client, uint32_t channel, uint32_t op, uint64_t first, uint64_t stride, uint32_t count);
struct gpu_model_wait wait_for(struct client *client, uint32_t program, uint32_t timeout_ms, uint64_t *values,
			       uint32_t count);
/* The same; times has room for GPU_MODEL_TIMES_MAX and gets how long each fault took, in ns. Returns how many. */
uint32_t wait_for_times(struct client *client, uint32_t program, uint32_t timeout_ms, uint32_t *state, uint64_t *times);
/* One access, waited for; what it saw goes to *value. */
struct gpu_model_wait run_one(struct client *client, uint32_t channel, uint32_t op, uint64_t address, uint64_t *value);

/* A setting of the patched module. Returns what it was, 0 on a stock one. */
uint32_t module_set(const char *name, uint32_t value);
/* A counter of the patched module, 0 where it has counted none. */
uint64_t module_counted(const char *what);

struct gpu_model_status model_status(uint32_t gpu);
void model_set(const char *name, int64_t value);
/* Returns how often the rule that this one replaces struck. */
uint32_t model_inject(const char *call, uint32_t skip, uint32_t count, uint32_t status);
int model_power(bool suspend);
/* Faults of that client once more, which were serviced before, each together with one of the next of its group. */
void model_duplicate(const struct client *client, uint32_t count);

#endif
