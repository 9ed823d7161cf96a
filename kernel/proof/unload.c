// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The module goes while something of it is still under way. Nothing of it may run, or be waited for, afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client.h"
#include "proof.h"

#define MODULE		"nvidia_uvm"
#define NOWHERE		0x500000000000UL
#define MEMORY		0x480000000UL
#define SIZE		(2 * PROOF_MIB)
#define READ_WRITE	2
#define LONG_REPEAT	400000000U
#define STEP_US		10000
#define WAIT_US		30000000
#define KILL_DELAY_MS	1000
#define MINUTE_MS	60000

static long unload(unsigned int flags)
{
	return syscall(SYS_delete_module, MODULE, flags) == 0 ? 0 : errno;
}

/* Until nothing holds the module any more, however long a busy machine takes. */
static bool unloads_in_time(void)
{
	uint32_t waited;

	for (waited = 0; waited < WAIT_US; waited += STEP_US) {
		if (unload(O_NONBLOCK) == 0)
			return true;
		usleep(STEP_US);
	}
	return false;
}

static uint32_t complaints(void)
{
	static char log[1 << 20];
	int size = klogctl(3, log, sizeof(log) - 1);	/* SYSLOG_ACTION_READ_ALL */
	static const char *const words[] = { "BUG:", "WARNING:", "Oops" };
	uint32_t count = 0;
	const char *at;
	size_t i;

	log[size > 0 ? size : 0] = '\0';
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (at = strstr(log, words[i]); at; at = strstr(at + 1, words[i]))
			count++;
	return count;
}

/*
 * A process with that client, which stays until it is killed. faults: it is condemned, and its death waits for nobody while the machine
 * sleeps, since it has no mm; otherwise its kernel runs on for long.
 */
static pid_t start(uint32_t number, bool faults, struct client *neighbour)
{
	struct gpu_model_access store = { faults ? NOWHERE : MEMORY, 1, GPU_MODEL_STORE, 8 };
	struct client client;
	pid_t child;
	int ready[2];
	char word;

	if (pipe(ready) != 0)
		die("pipe");
	child = fork();
	if (child == 0) {
		client_close(neighbour);
		client = faults ? client_open_without_mm(number, 0) : client_open(number, 0);
		if (!faults) {
			external_range(&client, MEMORY, SIZE);
			external_map(&client, MEMORY, SIZE, 16, READ_WRITE);
		}
		launch(&client, PROOF_CHANNEL_SM, 1, &store, 1, faults ? 1 : LONG_REPEAT);
		if (write(ready[1], "r", 1) != 1)
			die("write");
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &word, 1) != 1)
		die("the client did not start");
	close(ready[0]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static bool counted_in_time(const char *what, uint64_t count)
{
	uint32_t waited;

	for (waited = 0; waited < WAIT_US && module_counted(what) != count; waited += STEP_US)
		usleep(STEP_US);
	return module_counted(what) == count;
}

/* A dead client's VA space is kept: the module has to stay for it, though nobody has anything of it open. */
static const char *in_grace(void)
{
	struct client neighbour = client_open(2, 0);
	pid_t client = start(1, false, &neighbour);
	const char *wrong = NULL;

	module_set("grace_ms", MINUTE_MS);
	end(client);
	client_leave(&neighbour);
	if (!counted_in_time("graces", 1) || !counted_in_time("clients", 1))
		wrong = "no grace time";
	else if (unload(O_NONBLOCK) != EWOULDBLOCK)
		wrong = "the module went during a grace time";
	if (wrong)
		return wrong;
	module_set("grace_ms", 1);
	return unloads_in_time() ? NULL : "the module stayed";
}

/*
 * A condemned client's process dies while the machine sleeps, and its VA space waits on UVM's own queue for the machine to wake. The
 * module is unloaded meanwhile, and the time comes at which the client was to be killed.
 */
static const char *asleep(void)
{
	struct client neighbour = client_open(2, 0);
	uint64_t condemned = module_counted("condemned");
	uint32_t before = complaints();
	pid_t client, unloader;
	int status;

	module_set("grace_ms", 0);
	module_set("kill_delay_ms", KILL_DELAY_MS);
	client = start(1, true, &neighbour);
	if (!counted_in_time("condemned", condemned + 1))
		return "nobody was condemned";
	client_leave(&neighbour);
	if (model_power(true) != 0)
		return "the machine does not sleep";
	end(client);
	unloader = fork();
	if (unloader == 0)
		_exit(unloads_in_time() ? 0 : 1);
	usleep(3 * KILL_DELAY_MS * 1000);
	model_power(false);
	if (waitpid(unloader, &status, 0) != unloader || status != 0)
		return "the module stayed";
	usleep(KILL_DELAY_MS * 1000);
	return complaints() == before ? NULL : "the kernel's log has a complaint";
}

int run_unload(const char *when)
{
	const char *wrong = when && strcmp(when, "asleep") == 0 ? asleep() : in_grace();

	printf("{\"class\": \"unload, %s\", \"as_expected\": %s, \"wrong\": \"%s\"}\n", when ? when : "", wrong ? "false" : "true",
	       wrong ? wrong : "");
	return wrong ? 1 : 0;
}
