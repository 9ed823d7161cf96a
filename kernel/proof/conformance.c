// SPDX-License-Identifier: GPL-2.0 OR MIT
/* NVIDIA's built-in UVM tests against the model, and a few of our own that need SMs. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include "client.h"
#include "nvstatus.h"
#include "proof.h"
#include "uvm_ioctl.h"
#include "uvm_test_ioctl.h"

#define MANAGED		0x200000000UL
#define POLICY		0x280000000UL
#define SIZE		(4 * PROOF_MIB)

static unsigned int failures;

static void report(const char *name, int result, uint32_t status)
{
	bool passed = result == 0 && status == 0;

	failures += !passed;
	printf("%s %s", passed ? "PASS" : "FAIL", name);
	if (!passed)
		printf(" result %d status 0x%x", result, status);
	printf("\n");
}

#define BUILT_IN(descriptor, test, ...)						\
	do {									\
		test##_PARAMS params = { __VA_ARGS__ };				\
		int result = ioctl(descriptor, test, &params);			\
										\
		report(#test, result, params.rmStatus);				\
	} while (0)

static void built_in_tests(int uvm)
{
	BUILT_IN(uvm, UVM_TEST_RNG_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_RM_MEM_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_GPU_SEMAPHORE_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_TRACKER_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_PUSH_SANITY, .skipTimestampTest = 0);
	BUILT_IN(uvm, UVM_TEST_CHANNEL_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_CE_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_HOST_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_MEM_SANITY, 0);
	BUILT_IN(uvm, UVM_TEST_PAGE_TREE, 0);
	BUILT_IN(uvm, UVM_TEST_PMM_SANITY, .mode = UvmTestPmmSanityModeFull);
	BUILT_IN(uvm, UVM_TEST_FAULT_BUFFER_FLUSH, .iterations = 20);
	BUILT_IN(uvm, UVM_TEST_VA_BLOCK, 0);
	BUILT_IN(uvm, UVM_TEST_CHANNEL_STRESS, .mode = UVM_TEST_CHANNEL_STRESS_MODE_NOOP_PUSH, .iterations = 50,
		 .num_streams = 2);
	BUILT_IN(uvm, UVM_TEST_CHANNEL_STRESS, .mode = UVM_TEST_CHANNEL_STRESS_MODE_STREAM, .iterations = 2,
		 .num_streams = 4, .seed = 7);
}

static void expect(const char *name, bool right, uint64_t found)
{
	failures += !right;
	printf("%s %s", right ? "PASS" : "FAIL", name);
	if (!right)
		printf(" found 0x%lx", found);
	printf("\n");
}

/* A page that the GPU knows is taken away by the CPU; the GPU must not go on writing where it was. */
static void stale_translation(struct client *client, volatile uint64_t *memory)
{
	uint64_t value = 1;

	migrate(client, (void *)memory, SIZE, true);
	run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, (uintptr_t)memory, &value);
	memory[1] = 2;
	value = 3;
	run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, (uintptr_t)memory, &value);
	expect("store after the page moved", memory[0] == 3, memory[0]);
}

static void serviced_faults(struct client *client, volatile uint64_t *memory)
{
	uint64_t value = 0;
	struct gpu_model_wait end;

	memory[0x20000] = 0x1234;
	end = run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_LOAD, (uintptr_t)&memory[0x20000], &value);
	expect("load is serviced", end.state == GPU_MODEL_DONE && value == 0x1234 && end.faults > 0, value);
	value = 0x5678;
	run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, (uintptr_t)&memory[0x20000], &value);
	expect("store is seen by the CPU", memory[0x20000] == 0x5678, memory[0x20000]);
	value = 2;
	end = run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_ATOMIC_ADD, (uintptr_t)&memory[0x20000], &value);
	expect("atomic is serviced", end.state == GPU_MODEL_DONE && value == 0x5678 && memory[0x20000] == 0x567a,
	       memory[0x20000]);
}

static void serviced_copy(struct client *client, volatile uint64_t *memory)
{
	struct gpu_model_access copy = {
		.address = (uintptr_t)&memory[0x30000],
		.value = (uintptr_t)&memory[0x40000],
		.op = GPU_MODEL_COPY,
		.length = 0x2000,
	};
	uint64_t value = 0x77;
	struct gpu_model_wait end;

	memory[0x40000] = 0xaa;
	memory[0x40000 + 0x1fff / 8] = 0xbb;
	end = wait_for(client, launch(client, PROOF_CHANNEL_COPY, 1, &copy, 1, 1), 20000, NULL, 0);
	expect("copy engine's faults are serviced", end.state == GPU_MODEL_DONE && memory[0x30000] == 0xaa &&
	       memory[0x30000 + 0x1fff / 8] == 0xbb, memory[0x30000]);
	end = run_one(client, PROOF_CHANNEL_HOST, GPU_MODEL_RELEASE, (uintptr_t)&memory[0x50000], &value);
	expect("host's faults are serviced", end.state == GPU_MODEL_DONE && memory[0x50000] == 0x77, memory[0x50000]);
}

static void many_lanes(struct client *client, volatile uint64_t *memory)
{
	struct gpu_model_access accesses[256];
	uint64_t wrong = 0;
	uint32_t i;

	for (i = 0; i < 256; i++)
		accesses[i] = (struct gpu_model_access){ (uintptr_t)&memory[i * 512], 0x1000 + i, GPU_MODEL_STORE, 8 };
	wait_for(client, launch(client, PROOF_CHANNEL_SM, 8, accesses, 256, 1), 60000, NULL, 0);
	for (i = 0; i < 256; i++)
		wrong += memory[i * 512] != 0x1000 + i;
	expect("eight lanes, 256 pages", wrong == 0, wrong);
}

/* So no policy makes a fault of a GPU that can fault fatal: what it would keep away from that GPU is not kept there. */
static void no_place_on_a_faulting_gpu(struct client *client)
{
	void *memory = managed_map(client, POLICY, SIZE);
	uint32_t status;

	set_preferred_location(client, memory, SIZE, true);
	status = try_keep_in_place(client, memory, SIZE);
	expect("pages cannot be kept on a GPU that can fault", status == NV_ERR_INVALID_DEVICE, status);
}

static void nothing_wrong_in_the_model(bool quick)
{
	struct gpu_model_status status = model_status(0);

	expect("no channel error beyond the one that UVM_TEST_CHANNEL_SANITY makes", status.channel_errors <= (quick ? 0 : 1), status.channel_errors);
	expect("no group reset", status.resets == 0, status.resets);
	expect("the TLB was used", status.tlb_hits > 0 && status.invalidates > 0, status.tlb_hits);
}

int run_conformance(bool quick)
{
	struct client client = client_open(1, 0);
	volatile uint64_t *memory = managed_map(&client, MANAGED, SIZE);

	serviced_faults(&client, memory);
	stale_translation(&client, memory);
	serviced_copy(&client, memory);
	many_lanes(&client, memory);
	no_place_on_a_faulting_gpu(&client);
	if (!quick)
		built_in_tests(client.uvm);
	nothing_wrong_in_the_model(quick);
	client_leave(&client);
	return failures ? 1 : 0;
}
