// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The model made wrong on purpose: each time something has to notice, or the tests could not fail. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client.h"
#include "proof.h"

#define MANAGED		0x200000000UL
#define NOWHERE		0x500000000000UL
#define WAIT_MS		3000

static bool store_is_seen(struct client *client)
{
	volatile uint64_t *memory = managed_map(client, MANAGED, PROOF_MIB);
	uint64_t value = 1;

	memory[0] = 0;
	migrate(client, (void *)memory, PROOF_MIB, true);
	run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, MANAGED, &value);
	memory[1] = 2;
	value = 3;
	run_one(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, MANAGED, &value);
	return memory[0] == 3;
}

static bool fault_is_serviced(struct client *client)
{
	volatile uint64_t *memory = managed_map(client, MANAGED, PROOF_MIB);
	struct gpu_model_access load = { .address = MANAGED, .op = GPU_MODEL_LOAD };
	uint64_t value = 0;
	struct gpu_model_wait end;

	memory[0] = 0x1234;
	end = wait_for(client, launch(client, PROOF_CHANNEL_SM, 1, &load, 1, 1), WAIT_MS, &value, 1);
	return end.state == GPU_MODEL_DONE && value == 0x1234;
}

static bool cancel_ends_the_group(struct client *client)
{
	struct gpu_model_access store = { .address = NOWHERE, .op = GPU_MODEL_STORE };

	return wait_for(client, launch(client, PROOF_CHANNEL_SM, 1, &store, 1, 1), WAIT_MS, NULL, 0).state ==
	       GPU_MODEL_KILLED;
}

static const struct {
	const char *setting;
	int value;
	int right;
	bool (*check)(struct client *client);
} mistakes[] = {
	{ "skip_invalidate", 1, 0, store_is_seen },
	{ "drop_replay", 1, 0, fault_is_serviced },
	{ "wrong_pte_bit", 22, -1, fault_is_serviced },
	{ "cancel_wrong_page", 1, 0, cancel_ends_the_group },
};

static bool passes(unsigned int i, bool wrong)
{
	pid_t child;
	int status;

	model_set(mistakes[i].setting, wrong ? mistakes[i].value : mistakes[i].right);
	child = fork();
	if (child == 0) {
		struct client client = client_open(1, 0);

		_exit(mistakes[i].check(&client) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	model_set(mistakes[i].setting, mistakes[i].right);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run_wrong(void)
{
	unsigned int failures = 0;
	unsigned int i;

	for (i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		bool right = passes(i, false);
		bool wrong = passes(i, true);

		failures += !right || wrong;
		printf("%s %s: %s when right, %s when wrong\n", right && !wrong ? "PASS" : "FAIL", mistakes[i].setting,
		       right ? "passes" : "FAILS", wrong ? "PASSES" : "fails");
	}
	return failures ? 1 : 0;
}
