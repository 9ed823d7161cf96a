// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A scene: the clients as processes, a fault, what became of everybody and what was left behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "scene.h"

#define INNOCENTS	2
#define STEP_US		5000
#define READY_MS	180000
#define END_MS		20000
/* By the clock: less than the longest time until SIGKILL, so that who is to be killed at once is not killed late instead. */
#define FAULTER_MS	50000
#define GONE_MS		60000
#define GRACE_MS_MAX	60000
#define CONTAINED_MS	10000
#define ASLEEP_MS	5000
#define ROUNDS_AFTER	3
#define COUNTERS	"/proc/driver/nvidia-uvm/fault_isolation"
#define SERVERS		"/proc/driver/nvidia-uvm/fault_isolation_servers"

static bool all_ready(struct scene *scene, uint32_t clients)
{
	uint32_t i;

	for (i = 0; i < clients; i++)
		if (!atomic_load(&scene->part[i].ready))
			return false;
	return true;
}

static void start(struct scene *scene, const struct fault_class *class, pid_t *pids)
{
	uint32_t i;

	for (i = 0; i < class->faulters + INNOCENTS; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] > 0)
			continue;
		if (i < class->faulters)
			play_faulter(scene, class, i);
		else
			play_innocent(scene, class, i, class->two_gpus ? (i - class->faulters) % 2 : 0);
		_exit(0);
	}
}

static bool innocents_done(struct scene *scene, const struct fault_class *class, const uint32_t *rounds)
{
	uint32_t i;

	for (i = class->faulters; i < class->faulters + INNOCENTS; i++) {
		struct part *part = &scene->part[i];

		if (atomic_load(&part->outcome) == OUTCOME_NONE && atomic_load(&part->rounds) < rounds[i] + ROUNDS_AFTER)
			return false;
	}
	return true;
}

/* Nobody is left whom the fault could still harm. */
static bool innocents_dead(struct scene *scene, const struct fault_class *class)
{
	uint32_t i;

	for (i = class->faulters; i < class->faulters + INNOCENTS; i++)
		if (atomic_load(&scene->part[i].outcome) != OUTCOME_KILLED)
			return false;
	return true;
}

static bool faulters_ended(const struct fault_class *class, pid_t *pids)
{
	uint32_t ended = 0;
	uint32_t i;

	for (i = 0; i < class->faulters; i++) {
		if (pids[i] && waitpid(pids[i], NULL, WNOHANG) == pids[i])
			pids[i] = 0;
		ended += pids[i] == 0;
	}
	return ended == class->faulters;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Of all GPUs that the scene uses. */
static struct gpu_model_status total_status(bool two_gpus)
{
	struct gpu_model_status sum = model_status(0), other;

	if (!two_gpus)
		return sum;
	other = model_status(1);
	sum.spaces += other.spaces;
	sum.user_channels += other.user_channels;
	sum.programs += other.programs;
	sum.memories += other.memories;
	sum.rm_allocations += other.rm_allocations;
	sum.pma_bytes += other.pma_bytes;
	sum.resets += other.resets;
	sum.reported += other.reported;
	sum.channel_errors += other.channel_errors;
	return sum;
}

/* A dead client's address space stays until its program is over, however long a busy machine takes for it. */
static uint32_t begin_grace(const struct fault_class *class)
{
	return module_set("grace_ms", class->short_grace_ms ? class->short_grace_ms : GRACE_MS_MAX);
}

/* Whoever works until nothing is left of the client waits for it: never shorter than it was, a slow guest was given more. */
static void shorten_grace(const struct fault_class *class, uint32_t usual_ms)
{
	if (!class->short_grace_ms)
		module_set("grace_ms", class->grace_ms > usual_ms ? class->grace_ms : usual_ms);
}

static void end_grace(bool two_gpus)
{
	uint64_t until_ms = now_ms() + GONE_MS;

	while (total_status(two_gpus).programs > 0 && now_ms() < until_ms)
		usleep(STEP_US);
	module_set("grace_ms", 1);
}

/* Of the lines that begin so, all together. */
static uint64_t counted_in_all(const char *what, const char *having)
{
	FILE *counters = fopen(COUNTERS, "r");
	uint64_t sum = 0;
	char line[128];

	if (!counters)
		return 0;
	while (fgets(line, sizeof(line), counters))
		if (strncmp(line, what, strlen(what)) == 0 && strstr(line, having))
			sum += strtoul(strrchr(line, ' '), NULL, 10);
	fclose(counters);
	return sum;
}

static uint64_t stalls_counted(void)
{
	return counted_in_all("stall_us ", "under_") + module_counted("stall_us longer");
}

/* How often the kernel's log has the words. */
static uint64_t said(const char *what)
{
	static char log[1 << 20];
	int size = klogctl(3, log, sizeof(log) - 1);	/* SYSLOG_ACTION_READ_ALL */
	uint64_t times = 0;
	const char *at;

	log[size > 0 ? size : 0] = '\0';
	for (at = strstr(log, what); at; at = strstr(at + 1, what))
		times++;
	return times;
}

/* Whom root names as an MPS server; nobody else may. The stock module does not ask. */
static void name_server(pid_t pid)
{
	FILE *servers = fopen(SERVERS, "w");

	if (!servers)
		return;
	fprintf(servers, "%d\n", pid);
	if (fclose(servers) != 0)
		die("%s", SERVERS);
}

/* At once, or once the module has contained something; the stock module does not. */
static void sleep_and_wake(uint32_t asleep_ms, uint64_t contained)
{
	uint64_t until_ms = now_ms() + CONTAINED_MS;

	while (asleep_ms && now_ms() < until_ms && counted_in_all("fault ", " contained ") == contained)
		usleep(1000);
	if (model_power(true) == 0) {
		usleep(asleep_ms ? asleep_ms * 1000 : 20000);
		model_power(false);
	}
}

static uint64_t condemned_now(void)
{
	FILE *condemned = fopen(COUNTERS "_condemned", "r");
	uint64_t lines = 0;
	char line[128];

	if (!condemned)
		return 0;
	while (fgets(line, sizeof(line), condemned))
		lines++;
	fclose(condemned);
	return lines;
}

static void look_around(struct verdict *verdict)
{
	uint64_t kib = module_counted("table_kib"), listed = condemned_now();

	if (kib > verdict->table_kib)
		verdict->table_kib = kib;
	if (listed > verdict->listed)
		verdict->listed = listed;
}

/* Whether the process has ended before the machine wakes. What it leaves to wait for that is UVM's own affair. */
static bool die_asleep(pid_t *pid)
{
	uint64_t until_ms = now_ms() + ASLEEP_MS;
	bool ended = false;

	if (model_power(true) != 0)
		die("suspend");
	kill(*pid, SIGKILL);
	while (!ended && now_ms() < until_ms) {
		ended = waitpid(*pid, NULL, WNOHANG) == *pid;
		usleep(STEP_US);
	}
	model_power(false);
	if (ended)
		*pid = 0;
	return ended;
}

/* Until the faulters are gone or marked as killed, and the innocents have done some rounds since. */
static bool wait_for_ends(struct scene *scene, const struct fault_class *class, pid_t *pids, uint32_t grace_ms,
			  struct verdict *verdict)
{
	uint32_t rounds[SCENE_CLIENTS_MAX];
	bool ended = false;
	uint32_t i, waited;
	uint64_t until_ms;

	for (until_ms = now_ms() + FAULTER_MS; now_ms() < until_ms && !ended && !innocents_dead(scene, class);) {
		ended = faulters_ended(class, pids);
		for (i = 0; i < class->faulters && !ended; i++)
			if (atomic_load(&scene->part[i].outcome) == OUTCOME_KILLED)
				until_ms = 0;
		look_around(verdict);
		usleep(STEP_US);
	}
	if (class->to_the_end)
		shorten_grace(class, grace_ms);
	for (waited = 0; class->to_the_end && waited < GONE_MS * 1000 && module_counted("clients") > INNOCENTS &&
	     !innocents_dead(scene, class); waited += STEP_US) {
		look_around(verdict);
		usleep(STEP_US);
	}
	usleep(100000);
	for (i = 0; i < SCENE_CLIENTS_MAX; i++)
		rounds[i] = atomic_load(&scene->part[i].rounds);
	for (waited = 0; waited < END_MS * 1000 && !innocents_done(scene, class, rounds); waited += STEP_US)
		usleep(STEP_US);
	return ended;
}

/* Half a minute at most: a dead client's address space may be kept for a while on purpose. */
bool left_nothing(bool two_gpus, char *text, size_t size)
{
	struct gpu_model_status status;
	uint64_t left = 1;
	int tries;

	for (tries = 0; tries < 600 && left; tries++) {
		status = total_status(two_gpus);
		left = status.spaces + status.user_channels + status.programs + status.memories + status.rm_allocations +
		       status.pma_bytes + module_counted("clients") + module_counted("sinks") + module_counted("foreseen sinks");
		if (left)
			usleep(50000);
	}
	snprintf(text, size, "spaces %u channels %u programs %u memories %u RM allocations %u PMA bytes %llu", status.spaces,
		 status.user_channels, status.programs, status.memories, status.rm_allocations, status.pma_bytes);
	return left == 0;
}

static void add_part(struct verdict *verdict, const struct fault_class *class, struct scene *scene, uint32_t i)
{
	struct part *part = &scene->part[i];

	if (i < class->faulters) {
		verdict->benign_ns = part->benign_ns;
		verdict->fatal_ns = part->fatal_ns;
		verdict->as_it_should += atomic_load(&part->as_it_should);
		return;
	}
	verdict->innocents_live &= atomic_load(&part->outcome) == OUTCOME_FINISHED && atomic_load(&part->rounds) > 0;
	verdict->values_right &= atomic_load(&part->wrong) == 0;
}

static struct verdict play_once(const struct fault_class *class, uint32_t seed, uint32_t grace_ms)
{
	struct scene *scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t clients = class->faulters + INNOCENTS;
	struct gpu_model_status before = total_status(class->two_gpus), after;
	struct verdict verdict = { .innocents_live = true, .values_right = true };
	uint64_t deferred = module_counted("fault termination deferred"), contained = counted_in_all("fault ", " contained ");
	uint64_t stalls = stalls_counted();
	uint64_t said_before = class->says ? said(class->says) : 0;
	uint64_t given_up = module_counted("given_up");
	uint64_t counter = class->counts ? module_counted(class->counts) : 0;
	uint64_t foreseen = class->foresees ? module_counted(class->foresees) : 0;
	pid_t pids[SCENE_CLIENTS_MAX] = { 0 };
	uint32_t i, waited;

	lock_times_begin();
	scene->seed = seed;
	start(scene, class, pids);
	for (waited = 0; waited < READY_MS * 1000 && !all_ready(scene, clients); waited += STEP_US)
		usleep(STEP_US);
	if (class->server)
		name_server(pids[0]);
	atomic_store(&scene->go, 1);
	for (waited = 0; class->kill && waited < READY_MS * 1000 && atomic_load(&scene->part[0].ready) < 2; waited += 1000)
		usleep(1000);
	if (class->dies_asleep)
		verdict.ended_asleep = die_asleep(&pids[0]);
	else if (class->kill)
		kill(pids[0], SIGKILL);
	if (class->suspend)
		sleep_and_wake(class->asleep_ms, contained);
	verdict.faulter_ended = wait_for_ends(scene, class, pids, grace_ms, &verdict);
	atomic_store(&scene->stop, 1);
	for (i = 0; i < clients; i++)
		if (pids[i])
			waitpid(pids[i], NULL, 0);
	for (i = 0; i < clients; i++)
		add_part(&verdict, class, scene, i);
	end_grace(class->two_gpus);
	verdict.clean = left_nothing(class->two_gpus, verdict.left, sizeof(verdict.left));
	after = total_status(class->two_gpus);
	verdict.deferred = module_counted("fault termination deferred") - deferred;
	verdict.contained = counted_in_all("fault ", " contained ") - contained;
	verdict.said = class->says ? said(class->says) - said_before : 0;
	verdict.counted = class->counts ? module_counted(class->counts) - counter : 0;
	verdict.foreseen = class->foresees ? module_counted(class->foresees) - foreseen : 0;
	verdict.given_up = module_counted("given_up") - given_up;
	verdict.stalls = stalls_counted() - stalls;
	verdict.longest_stall_us = module_counted("stall_us longest");
	verdict.lock = lock_times_end();
	verdict.resets = after.resets - before.resets;
	verdict.reported = after.reported - before.reported;
	verdict.channel_errors = after.channel_errors - before.channel_errors;
	munmap(scene, sizeof(*scene));
	return verdict;
}

/* Settings of the patched module while a class is played; 0 leaves one as it is. Exchanged with what was there. */
struct settings {
	uint32_t kill_delay_ms;
	uint32_t max_table_kib;
	uint32_t max_graces;
	uint32_t max_repeats;
	uint32_t max_failures;
	uint32_t mode;
};

static void exchange(uint32_t *value, const char *name)
{
	if (*value)
		*value = module_set(name, *value);
}

static void exchange_settings(struct settings *settings)
{
	exchange(&settings->kill_delay_ms, "kill_delay_ms");
	exchange(&settings->max_table_kib, "max_table_kib");
	exchange(&settings->max_graces, "max_graces");
	exchange(&settings->max_repeats, "max_repeats");
	exchange(&settings->max_failures, "max_failures");
	exchange(&settings->mode, "mode");
}

struct verdict play(const struct fault_class *class, uint32_t seed)
{
	struct settings settings = {
		.kill_delay_ms = class->kill_delay_ms,
		.max_table_kib = class->max_table_kib,
		.max_graces = class->max_graces,
		.max_repeats = class->max_repeats,
		.max_failures = class->test_fails ? 1 : 0,
		.mode = class->report ? 1 : 0,
	};
	uint32_t grace_ms = begin_grace(class);
	uint64_t since_ms = now_ms();
	struct verdict verdict;

	module_set("test_delay_ms", class->test_delay_ms);
	module_set("test_fails", class->test_fails);
	module_set("test_self_fails", class->self_test_fails);
	module_set("opt_in", class->opt_in);
	exchange_settings(&settings);
	verdict = play_once(class, seed, grace_ms);
	verdict.took_ms = now_ms() - since_ms;
	exchange_settings(&settings);
	module_set("grace_ms", grace_ms);
	module_set("test_delay_ms", 0);
	module_set("test_fails", 0);
	module_set("test_self_fails", 0);
	module_set("opt_in", 0);
	if (class->mode_off)
		module_set("mode", 2);
	if (class->test_fails)
		verdict.fell_back = module_set("mode", 2) == 1;
	model_set("sparse_faults", 0);
	model_set("fatal_client", 0);
	model_set("host_faults_too", 0);
	return verdict;
}
