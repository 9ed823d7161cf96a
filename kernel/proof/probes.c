// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Whether the guest outlives its probes: off and on again and again, while others keep its processors in the scheduler. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client.h"
#include "proof.h"
#include "times.h"

#define YIELDERS	2
#define YIELDS		500
#define REST_US		100
#define BETWEEN_US	20000
#define PROGRESS	20

static pid_t start_yielder(void)
{
	pid_t child = fork();
	int i;

	if (child < 0)
		die("fork");
	while (child == 0) {
		for (i = 0; i < YIELDS; i++)
			sched_yield();
		usleep(REST_US);
	}
	return child;
}

int run_probes(unsigned long rounds)
{
	pid_t yielders[YIELDERS];
	unsigned long round;
	int i;

	for (i = 0; i < YIELDERS; i++)
		yielders[i] = start_yielder();
	for (round = 1; round <= rounds; round++) {
		lock_times_switch(true);
		usleep(BETWEEN_US);
		lock_times_switch(false);
		if (round % PROGRESS == 0)
			printf("%lu of %lu rounds\n", round, rounds);
	}
	for (i = 0; i < YIELDERS; i++) {
		kill(yielders[i], SIGKILL);
		waitpid(yielders[i], NULL, 0);
	}
	printf("{\"probes\": \"off and on\", \"rounds\": %lu}\n", rounds);
	return 0;
}
