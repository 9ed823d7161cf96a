// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Faults of clients that would rather not be ended, or would rather that others were. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "faults.h"
#include "nvstatus.h"

#define CGROUPS		"/sys/fs/cgroup"
#define GIB		(1UL << 30)
#define WIDE_COUNT	1200
#define WIDE_STRIDE	(4 * GIB)
#define FEW_COUNT	40
#define ALL_BITS	47
#define ALL_COUNT	(1UL << 20)
#define ALL_STRIDE	((1UL << ALL_BITS) / ALL_COUNT)
#define ODD_FACTOR	611953UL
#define HUGE		0x600000000000UL
#define HUGE_SIZE	(64 * GIB)
#define HUGE_COUNT	40
#define USELESS_FAULTS	60
#define AROUND		0x640000000000UL
#define AROUND_COUNT	40
#define TAKEN_IN	8
#define POOL		0x700000000UL
#define FILLING		0x800000000UL
#define FILLING_SIZE	(104 * PROOF_MIB)
#define LONG_REPEAT	400000000U
#define GRACES		"/proc/driver/nvidia-uvm/fault_isolation_graces"
#define FIRST_NUMBER	10
#define SOME_USER	1000
#define OTHER_USER	2000
#define OTHERS_COUNT	5
#define OTHERS_KEPT	2
#define STEP_US		10000

static struct {
	struct client *client;
	struct scene *scene;
} left_to_thread;

/* The process lives on in this thread until somebody ends it. */
static void *stay(void *unused)
{
	while (!atomic_load(&left_to_thread.scene->stop))
		usleep(10000);
	_exit(0);
}

/* Closes what the process has, in good order and while it is alive, before the process ends by itself. */
static void *leave_in_order(void *unused)
{
	client_leave(left_to_thread.client);
	_exit(0);
}

/* The main thread ends alone: what the kernel shows as the process is a zombie from here on, and its threads live. */
static void end_main_thread(struct client *client, struct scene *scene, void *(*rest)(void *))
{
	pthread_t thread;

	left_to_thread.client = client;
	left_to_thread.scene = scene;
	if (pthread_create(&thread, NULL, rest, NULL) != 0)
		die("pthread_create");
	syscall(SYS_exit, 0);
}

uint32_t main_thread_ended(struct client *client, struct scene *scene)
{
	several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
	end_main_thread(client, scene, stay);
	return 0;
}

uint32_t main_thread_ended_in_order(struct client *client, struct scene *scene)
{
	end_main_thread(client, scene, leave_in_order);
	return 0;
}

/* What ps shows is what a process says of itself. */
void name_as_mps_server(void)
{
	if (prctl(PR_SET_NAME, "nvidia-cuda-mps-server") != 0)
		die("prctl");
}

static bool write_line(const char *path, const char *line)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return false;
	fputs(line, file);
	return fclose(file) == 0;
}

/* The stock module asks for no names. */
static void enter_cgroup(const char *name)
{
	char path[128];

	mkdir(CGROUPS "/named", 0755);
	write_line("/proc/driver/nvidia-uvm/fault_isolation_cgroups", "/named");
	snprintf(path, sizeof(path), CGROUPS "/%s", name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), CGROUPS "/%s/cgroup.procs", name);
	if (!write_line(path, "0"))
		die("%s", path);
}

void enter_named_cgroup(void)
{
	enter_cgroup("named/below");
}

void enter_other_cgroup(void)
{
	enter_cgroup("other");
}

uint32_t some_stores(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
}

/* Wild pointers, as an index of the wrong type makes them. */
uint32_t wide_storm(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, WIDE_STRIDE, WIDE_COUNT);
}

uint32_t few_wide_stores(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, WIDE_STRIDE, FEW_COUNT);
}

/* How long a storm takes is the machine's: its process is given time, and ends once its program has. */
static void end_with(struct client *client, uint32_t program)
{
	while (wait_for(client, program, WAIT_MS, NULL, 0).state == GPU_MODEL_RUNNING)
		;
	_exit(0);
}

/* All over the lower half, in no order: the factor is odd, so each comes once. */
uint32_t endless_storm(struct client *client, struct scene *scene)
{
	struct gpu_model_access *accesses = calloc(ALL_COUNT, sizeof(*accesses));
	uint32_t program, i;

	if (!accesses)
		die("calloc");
	for (i = 0; i < ALL_COUNT; i++)
		accesses[i] = (struct gpu_model_access){ i * ODD_FACTOR % ALL_COUNT * ALL_STRIDE, i, GPU_MODEL_STORE, 8 };
	program = launch(client, PROOF_CHANNEL_SM, 8, accesses, ALL_COUNT, 1);
	free(accesses);
	end_with(client, program);
	return 0;
}

/* A reserved range, as of cuMemAddressReserve, with next to nothing in it. */
uint32_t external_storm(struct client *client, struct scene *scene)
{
	external_range(client, HUGE, HUGE_SIZE);
	end_with(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, HUGE, HUGE_SIZE / HUGE_COUNT / BIG_PAGE * BIG_PAGE,
				 HUGE_COUNT));
	return 0;
}

/*
 * The GPU faults on although the entry is there, and more often than the module tries to help, which is four times here:
 * one that is serviced stands for several, once for six. Not much more often: a dead client's faults end its group.
 */
uint32_t useless_sink(struct client *client, struct scene *scene)
{
	model_set("sparse_faults", USELESS_FAULTS);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, 1);
}

uint32_t useless_external_sink(struct client *client, struct scene *scene)
{
	external_range(client, HUGE, SIZE);
	model_set("sparse_faults", USELESS_FAULTS);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, HUGE, STRIDE, 1);
}

/* Whoever is condemned stays contained: it faults on, where it has no sink yet. */
uint32_t mode_turned_off(struct client *client, struct scene *scene)
{
	wait_for(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, 1), WAIT_MS, NULL, 0);
	module_set("mode", 0);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE + GIB, STRIDE, 1);
}

/* All within 512 MiB, of which a range keeps sinks from being larger than 2 MiB. */
static void many_small_sinks(struct client *client)
{
	external_range(client, AROUND, BIG_PAGE);
	wait_for(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, AROUND + STRIDE, STRIDE, AROUND_COUNT), WAIT_MS,
		 NULL, 0);
}

static uint32_t one_more_around(struct client *client)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, AROUND + (AROUND_COUNT + 2) * STRIDE, STRIDE, 1);
}

/* With the range gone one sink could take the place of all of them, and would have to take them in. */
uint32_t storm_around_freed(struct client *client, struct scene *scene)
{
	many_small_sinks(client);
	free_range(client, AROUND, BIG_PAGE);
	end_with(client, one_more_around(client));
	return 0;
}

/* There are more of them than fit under the new bound. */
uint32_t bound_lowered(struct client *client, struct scene *scene)
{
	many_small_sinks(client);
	module_set("max_table_kib", 64);
	return one_more_around(client);
}

/* The new sink could take in as many as it may, and would have to give up others besides. */
uint32_t bound_lowered_around_freed(struct client *client, struct scene *scene)
{
	external_range(client, AROUND + GIB, BIG_PAGE);
	many_small_sinks(client);
	wait_for(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, AROUND + GIB + STRIDE, STRIDE, TAKEN_IN), WAIT_MS,
		 NULL, 0);
	free_range(client, AROUND + GIB, BIG_PAGE);
	module_set("max_table_kib", 64);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, AROUND + GIB + (TAKEN_IN + 2) * STRIDE, STRIDE, 1);
}

/* What lies under a sink cannot be had any more. */
uint32_t range_over_sink(struct client *client, struct scene *scene)
{
	wait_for(client, some_stores(client, scene), WAIT_MS, NULL, 0);
	found(client, scene, try_external_range(client, NOWHERE, SIZE) == NV_ERR_UVM_ADDRESS_IN_USE);
	return 0;
}

/* Nor what a storm has made sparse beside its sinks. */
uint32_t range_beside_sink(struct client *client, struct scene *scene)
{
	wait_for(client, few_wide_stores(client, scene), WAIT_MS, NULL, 0);
	found(client, scene,
	      try_external_range(client, NOWHERE + WIDE_COUNT * WIDE_STRIDE, SIZE) == NV_ERR_UVM_ADDRESS_IN_USE);
	return 0;
}

/* Its own memory lies beside the addresses of a storm, and stays what it is: who stores there finds it there. */
uint32_t storm_beside_memory(struct client *client, struct scene *scene)
{
	uint64_t *memory = managed_map(client, NOWHERE + WIDE_COUNT * WIDE_STRIDE, SIZE);
	uint64_t value = 0x1234;

	wait_for(client, few_wide_stores(client, scene), WAIT_MS, NULL, 0);
	run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, (uintptr_t)memory, &value);
	found(client, scene, *(volatile uint64_t *)memory == 0x1234);
	return some_stores(client, scene);
}

/* No entry of a page table cures a violation of privilege. */
uint32_t fatal_type(struct client *client, struct scene *scene)
{
	model_set("fatal_client", client->number);
	return some_stores(client, scene);
}

/* Semaphores are the group's own, and an entry of 64 KiB would take them along. */
uint32_t beside_semaphore_pool(struct client *client, struct scene *scene)
{
	semaphore_pool(client, POOL);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, POOL + BIG_PAGE / 2, STRIDE, 1);
}

/* Two processes own the address space now, and nobody can say which of them is to end. */
uint32_t child_maps(struct client *client, struct scene *scene)
{
	pid_t child = fork();

	if (child == 0) {
		managed_map(client, MANAGED, SIZE);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return some_stores(client, scene);
}

/* Killed meanwhile, as others are; its program runs on for longer than its address space is kept. */
uint32_t killed_too_early(struct client *client, struct scene *scene)
{
	struct gpu_model_access store = { (uintptr_t)managed_map(client, MANAGED, SIZE), 1, GPU_MODEL_STORE, 8 };

	*(volatile char *)(uintptr_t)store.address = 1;
	return launch(client, PROOF_CHANNEL_SM, 1, &store, 1, LONG_REPEAT);
}

/* A client of the same group, of a process of that user, that dies with all that it has. */
static pid_t die_as(uint32_t number, uid_t user)
{
	pid_t child = fork();

	if (child == 0) {
		if (setuid(user) != 0)
			die("setuid");
		client_open(number, 0);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	return child;
}

/* Of how many of that user's processes the VA spaces are kept now; or of that process alone. */
static uint32_t kept(uid_t user, pid_t process)
{
	FILE *graces = fopen(GRACES, "r");
	char line[256], whose[32];
	uint32_t count = 0;

	if (!graces)
		return 0;
	snprintf(whose, sizeof(whose), process ? "kept uid=%u pid=%d " : "kept uid=%u ", user, process);
	while (fgets(line, sizeof(line), graces))
		count += strncmp(line, whose, strlen(whose)) == 0;
	fclose(graces);
	return count;
}

/* The first sink can be made, and no other. Whoever is on the way out is held then, and ended at once. */
uint32_t cannot_be_helped_further(struct client *client, struct scene *scene)
{
	wait_for(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, 1), WAIT_MS, NULL, 0);
	module_set("test_fails", 1);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE + GIB, STRIDE, 1);
}

/* More than the GPU has: what is there goes for what comes, and for the tables of sinks. */
void fill_video_memory(struct client *client)
{
	migrate(client, managed_map(client, FILLING, FILLING_SIZE), FILLING_SIZE, true);
}

static void *map_in_thread(void *client)
{
	managed_map(client, MANAGED, SIZE);
	return NULL;
}

/* Of the process that opened the descriptor. */
uint32_t second_thread_maps(struct client *client, struct scene *scene)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, map_in_thread, client) != 0)
		die("pthread_create");
	pthread_join(thread, NULL);
	return some_stores(client, scene);
}

/*
 * One user's processes die again and again, and each would keep its memory. Only the newest do; the first one, of another
 * user, keeps what it has. The grace time is a minute here, so that none ends by itself meanwhile.
 */
uint32_t die_one_after_another(struct client *client, struct scene *scene)
{
	pid_t others[OTHERS_COUNT];
	uint32_t i, waited;

	if (chmod("/dev/nvidia-uvm", 0666) != 0 || chmod("/dev/gpu-model", 0666) != 0)
		die("chmod");
	die_as(FIRST_NUMBER, SOME_USER);
	for (i = 0; i < OTHERS_COUNT; i++)
		others[i] = die_as(FIRST_NUMBER + 1 + i, OTHER_USER);
	for (waited = 0; waited < WAIT_MS * 1000 && kept(OTHER_USER, 0) > OTHERS_KEPT; waited += STEP_US)
		usleep(STEP_US);
	found(client, scene, kept(OTHER_USER, 0) == OTHERS_KEPT);
	found(client, scene, kept(SOME_USER, 0) == 1);
	for (i = OTHERS_COUNT - OTHERS_KEPT; i < OTHERS_COUNT; i++)
		found(client, scene, kept(OTHER_USER, others[i]) == 1);
	return 0;
}
