// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The parts of a scene: an innocent client that checks every value it computes, and one that faults. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "scene.h"

#define INNOCENT_MEMORY	0x200000000UL
#define PAGES		48
#define PAGE_WORDS	512
#define LANES		4
#define REPEATS		3
#define BENIGN_COUNT	20
#define WAIT_MS		30000
/* An ordinary fault may take seconds where the kernel checks all that it does and the machine is busy. */
#define BENIGN_MS	180000
/* A round takes about as long. */
#define REST_US		50000

static struct client enter(const struct fault_class *class, uint32_t number, uint32_t gpu)
{
	return class->without_mm ? client_open_without_mm(number, gpu) : client_open(number, gpu);
}

static void wait_until(atomic_int *flag)
{
	while (!atomic_load(flag))
		usleep(1000);
}

/* A third of the pages is read, a third written, a third counted up. */
static uint32_t prepare(volatile uint64_t *memory, struct gpu_model_access *accesses, uint64_t salt)
{
	static const uint32_t ops[] = { GPU_MODEL_LOAD, GPU_MODEL_STORE, GPU_MODEL_ATOMIC_ADD };
	uint32_t i;

	for (i = 0; i < PAGES; i++) {
		memory[i * PAGE_WORDS] = salt + i;
		accesses[i] = (struct gpu_model_access){
			.address = (uintptr_t)&memory[i * PAGE_WORDS],
			.value = ops[i % 3] == GPU_MODEL_STORE ? ~(salt + i) : 1,
			.op = ops[i % 3],
			.length = 8,
		};
	}
	return PAGES;
}

/* Who reads a wrong value says which one, and what the model saw last. */
static uint64_t is_wrong(uint32_t client, uint32_t page, const char *what, uint64_t value, uint64_t expected)
{
	if (value == expected)
		return 0;
	printf("client %u, page %u: %s 0x%lx instead of 0x%lx\n", client, page, what, value, expected);
	return 1;
}

static uint64_t count_wrong(uint32_t client, volatile uint64_t *memory, const uint64_t *values, uint64_t salt)
{
	uint64_t wrong = 0;
	uint32_t i;

	for (i = 0; i < PAGES; i++) {
		uint64_t expected = i % 3 == 0 ? salt + i : i % 3 == 1 ? ~(salt + i) : salt + i + REPEATS;

		wrong += is_wrong(client, i, "memory has", memory[i * PAGE_WORDS], expected);
		if (i % 3 == 0)
			wrong += is_wrong(client, i, "the load saw", values[i], salt + i);
	}
	if (wrong)
		print_events();
	return wrong;
}

/* Waits for a program of whose pages the CPU wants to know meanwhile, again and again, what is in them. */
static struct gpu_model_wait read_until_done(struct client *client, uint32_t program, volatile uint64_t *memory,
					     uint64_t *values)
{
	struct gpu_model_wait end;
	uint32_t waited_ms = 0;
	uint32_t i;

	do {
		for (i = 0; i < PAGES; i++)
			(void)memory[i * PAGE_WORDS];
		end = wait_for(client, program, 1, values, PAGES);
	} while (end.state == GPU_MODEL_RUNNING && waited_ms++ < WAIT_MS);
	return end;
}

/* What is awaited then is the faulters' end: the innocents leave the processors to other guests, half of the time. */
static bool faults_are_over(struct scene *scene, const struct fault_class *class)
{
	uint32_t i;

	for (i = 0; i < class->faulters; i++)
		if (atomic_load(&scene->part[i].outcome) == OUTCOME_NONE)
			return false;
	return true;
}

void play_innocent(struct scene *scene, const struct fault_class *class, uint32_t number, uint32_t gpu)
{
	struct part *part = &scene->part[number];
	struct client client = enter(class, number + 1, gpu);
	volatile uint64_t *memory = managed_map(&client, INNOCENT_MEMORY, PAGES * PAGE_WORDS * 8);
	struct gpu_model_access accesses[PAGES];
	uint64_t values[PAGES];
	enum outcome outcome = OUTCOME_FINISHED;
	struct gpu_model_wait end;
	uint64_t round = 0;
	uint32_t program;

	atomic_store(&part->ready, 1);
	wait_until(&scene->go);
	while (class->innocents_last && !atomic_load(&scene->stop) && !faults_are_over(scene, class))
		usleep(1000);
	while (!atomic_load(&scene->stop) && outcome == OUTCOME_FINISHED) {
		uint64_t salt = (round++ << 16) + number * 0x1000000;

		prepare(memory, accesses, salt);
		if (!try_launch(&client, PROOF_CHANNEL_SM, LANES, accesses, PAGES, REPEATS, &program)) {
			outcome = OUTCOME_KILLED;
			break;
		}
		end = class->cpu_reads ? read_until_done(&client, program, memory, values) :
					 wait_for(&client, program, WAIT_MS, values, PAGES);
		if (end.state != GPU_MODEL_DONE) {
			outcome = OUTCOME_KILLED;
			break;
		}
		atomic_fetch_add(&part->wrong, count_wrong(client.number, memory, values, salt));
		if (atomic_load(&part->wrong))
			outcome = OUTCOME_WRONG;
		atomic_fetch_add(&part->rounds, 1);
		if (faults_are_over(scene, class))
			usleep(REST_US);
	}
	atomic_store(&part->outcome, outcome);
	client_leave(&client);
}

/* Ordinary faults of the same client, for the times that they take. */
static struct spread benign_faults(struct client *client)
{
	uint64_t *memory = managed_map(client, FAULTER_MEMORY, FAULTER_MEMORY_SIZE);
	struct gpu_model_access accesses[BENIGN_COUNT];
	uint64_t times[GPU_MODEL_TIMES_MAX];
	uint32_t i, count, state;

	for (i = 0; i < BENIGN_COUNT; i++) {
		memory[i * 2 * PROOF_MIB / 8] = 1;
		accesses[i] = (struct gpu_model_access){
			.address = (uintptr_t)&memory[i * 2 * PROOF_MIB / 8],
			.value = 2,
			.op = GPU_MODEL_STORE,
		};
	}
	count = wait_for_times(client, launch(client, PROOF_CHANNEL_SM, 1, accesses, BENIGN_COUNT, 1), BENIGN_MS, &state,
			       times);
	if (state != GPU_MODEL_DONE)
		die("a benign fault was not serviced");
	return spread_of(times, count);
}

void play_faulter(struct scene *scene, const struct fault_class *class, uint32_t number)
{
	struct part *part = &scene->part[number];
	uint64_t times[GPU_MODEL_TIMES_MAX];
	struct client client;
	uint32_t program, count, state;

	if (class->prepare)
		class->prepare();
	client = class->alone ? client_open_alone(number + 1, scene->gpu) : enter(class, number + 1, scene->gpu);
	part->benign_ns = benign_faults(&client);
	if (class->opened)
		class->opened(&client);
	atomic_store(&part->ready, 1);
	wait_until(&scene->go);
	program = class->fault(&client, scene);
	atomic_store(&part->ready, 2);
	if (program) {
		count = wait_for_times(&client, program, WAIT_MS, &state, times);
		part->fatal_ns = spread_of(times, count);
		atomic_store(&part->outcome, state == GPU_MODEL_DONE ? OUTCOME_FINISHED : OUTCOME_KILLED);
	}
	/* Who is contained is ended from outside, a little later. */
	while (!atomic_load(&scene->stop))
		usleep(10000);
	client_leave(&client);
}
