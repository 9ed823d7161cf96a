// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The fuzzer: rounds of a few clients in one group that ask UVM for anything, fault anywhere, share, close, fork and die.
 * A round is made from its seed alone. After it nothing may be left and a new client has to be served; what
 * KASAN, lockdep and UVM's assertions say stands in the kernel's log.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "failing.h"
#include "fuzz_ioctls.h"
#include "proof.h"
#include "random.h"
#include "scene.h"

#define CLIENTS		3
#define STEPS		120
#define ACCESSES_MAX	24
#define ROUND_MS	4000
#define PLAIN		0x280000000UL

static sigjmp_buf bad_access;
/*
 * Of a client and its children. UVM, as it is, raises an error of the whole driver where a GPU is unregistered that holds
 * pages which mprotect() has made read-only since (block_evict_pages_from_gpu maps them with more than the VMA allows).
 */
static volatile bool *is_protected;

static void on_bad_access(int signal)
{
	siglongjmp(bad_access, 1);
}

static void touch(uint64_t address, bool write)
{
	volatile uint64_t *place = (volatile uint64_t *)(address & ~7UL);

	if (sigsetjmp(bad_access, 1))
		return;
	if (write)
		*place = address;
	else
		(void)*place;
}

static void start_program(struct client *client, uint64_t *state)
{
	static const uint32_t engines[] = { PROOF_CHANNEL_SM, PROOF_CHANNEL_SM, PROOF_CHANNEL_SM, PROOF_CHANNEL_COPY,
					    PROOF_CHANNEL_HOST };
	struct gpu_model_access accesses[ACCESSES_MAX];
	uint32_t channel = engines[random_next(state, 5)];
	uint32_t count = 1 + random_next(state, ACCESSES_MAX);
	uint32_t lanes = channel == PROOF_CHANNEL_SM ? 1 + random_next(state, GPU_MODEL_LANES_MAX) : 1;
	uint32_t program, i;

	for (i = 0; i < count; i++) {
		accesses[i].address = fuzz_address(state) & ~7UL;
		accesses[i].value = fuzz_address(state) & ~7UL;
		accesses[i].length = 8 << random_next(state, 10);
		accesses[i].op = channel == PROOF_CHANNEL_COPY ? GPU_MODEL_COPY :
				 channel == PROOF_CHANNEL_HOST ? GPU_MODEL_RELEASE :
				 GPU_MODEL_LOAD + random_next(state, 4);
	}
	if (try_launch(client, channel, lanes, accesses, count, 1 + random_next(state, 3), &program) && random_next(state, 2))
		wait_for(client, program, random_next(state, 100), NULL, 0);
}

static void change_mappings(struct client *client, uint64_t *state)
{
	uint64_t address = fuzz_address(state) & ~4095UL;
	size_t size = (size_t)4096 << random_next(state, 11);

	switch (random_next(state, 4)) {
	case 0:
	case 1:
		mmap((void *)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, client->uvm,
		     (off_t)address);
		break;
	case 2:
		munmap((void *)address, size);
		break;
	case 3:
		*is_protected = true;
		mprotect((void *)address, size, random_next(state, 2) ? PROT_READ : PROT_READ | PROT_WRITE);
		break;
	}
}

static void add_memory(struct client *client, uint64_t *state)
{
	uint32_t handle = 1 + random_next(state, 24);

	try_memory(client, handle, (size_t)0x10000 << random_next(state, 6));
}

static void look(uint64_t *state)
{
	static const char *const files[] = { "/proc/driver/nvidia-uvm/fault_isolation",
					     "/proc/driver/nvidia-uvm/fault_isolation_events" };
	char text[4096];
	int descriptor = open(files[random_next(state, 2)], O_RDONLY | O_NONBLOCK);
	ssize_t got = read(descriptor, text, 1 + random_next(state, sizeof(text)));

	(void)got;
	close(descriptor);
}

/* What seldom happens: a descriptor goes, a child shares all of them, the process ends. */
static void rare(struct client *client, uint64_t *state)
{
	switch (random_next(state, 7)) {
	case 0:
		close(client->mm);
		break;
	case 1:
		close(client->uvm);
		break;
	case 2:
		close(client->model);
		break;
	case 3:
	case 4:
		fork();
		break;
	case 5:
		kill(getpid(), SIGKILL);
		break;
	default:
		_exit(0);
	}
}

static void step(struct client *client, int tools, uint64_t *state)
{
	uint32_t which = random_next(state, 200);

	if (which < 90)
		fuzz_ioctl(client, tools, !*is_protected, state);
	else if (which < 130)
		start_program(client, state);
	else if (which < 155)
		change_mappings(client, state);
	else if (which < 185)
		touch(fuzz_address(state), random_next(state, 2));
	else if (which < 193)
		add_memory(client, state);
	else if (which < 198)
		look(state);
	else
		rare(client, state);
}

static void fuzz_client(uint32_t seed, uint32_t number, bool fails)
{
	uint64_t state = random_start(seed * CLIENTS + number);
	struct client client;
	int quiet = open("/dev/null", O_WRONLY);
	int tools = open("/dev/nvidia-uvm-tools", O_RDWR);
	uint32_t i;

	is_protected = mmap(NULL, sizeof(*is_protected), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	dup2(quiet, STDERR_FILENO);
	signal(SIGSEGV, on_bad_access);
	signal(SIGBUS, on_bad_access);
	client = client_open(number + 1, 0);
	if (fails)
		failing_mark();
	for (i = 0; i < STEPS; i++)
		step(&client, tools, &state);
	_exit(0);
}

/* Each client leads a process group of its own, with the children that it made. */
static void run_round(uint32_t seed, bool fails)
{
	pid_t clients[CLIENTS];
	uint32_t i, waited;
	uint32_t gone = 0;

	for (i = 0; i < CLIENTS; i++) {
		clients[i] = fork();
		if (clients[i] == 0) {
			setpgid(0, 0);
			fuzz_client(seed, i, fails);
		}
		setpgid(clients[i], clients[i]);
	}
	for (waited = 0; waited < ROUND_MS && gone < CLIENTS; waited += 10) {
		gone += waitpid(-1, NULL, WNOHANG) > 0;
		usleep(10000);
	}
	for (i = 0; i < CLIENTS; i++)
		kill(-clients[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static bool new_client_is_served(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct client client = client_open(CLIENTS + 1, 0);
		volatile uint64_t *memory = managed_map(&client, PLAIN, PROOF_MIB);
		uint64_t value = 0;

		memory[0] = 0x1234;
		run_one(&client, PROOF_CHANNEL_SM, GPU_MODEL_LOAD, PLAIN, &value);
		_exit(value == 0x1234 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* percent: of the allocations, NULL for none. */
static bool round_is_good(uint32_t seed, const char *percent, bool *served)
{
	char left[160];
	bool clean;

	printf("fuzz %u\n", seed); /* before it runs: it may be the last */
	if (percent && !failing_begin(percent)) {
		printf("fuzz %u: no allocation can be made to fail\n", seed);
		*served = false;
		return false;
	}
	run_round(seed, percent != NULL);
	if (percent)
		failing_end();
	clean = left_nothing(false, left, sizeof(left));
	*served = new_client_is_served();
	if (!clean || !*served)
		printf("fuzz %u: %s, a new client is %s\n", seed, clean ? "clean" : left, *served ? "served" : "NOT SERVED");
	return clean && *served;
}

int run_fuzz(const char *first, const char *seconds, const char *percent)
{
	uint32_t from = (uint32_t)strtoul(first ? first : "1", NULL, 10);
	time_t end = time(NULL) + (time_t)strtoul(seconds ? seconds : "1", NULL, 10);
	uint32_t failures = 0;
	uint32_t rounds = 0;
	struct gpu_model_status status;
	bool served;

	if (percent)
		failing_count_from_here();
	do {
		failures += !round_is_good(from + rounds++, percent, &served);
	} while (served && time(NULL) < end);
	status = model_status(0);
	printf("{\"fuzz_rounds\": %u, \"first\": %u, \"failed\": %u, \"faults\": %llu, \"cancels\": %llu, \"resets\": %llu, "
	       "\"non_replayable\": %llu, \"channel_errors\": %llu, \"allocations_failed\": %ld}\n",
	       rounds, from, failures, status.faults, status.cancels, status.resets, status.non_replayable,
	       status.channel_errors, percent ? failing_count() : 0);
	return failures ? 1 : 0;
}
