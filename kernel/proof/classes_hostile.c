// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Faults of clients that would rather not be ended, or would rather that others were. */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "faults.h"

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
	client_close(left_to_thread.client);
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

uint32_t some_stores(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
}
