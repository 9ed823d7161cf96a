// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The patched module's own tests. What one of them missed is in the kernel's log. */
#include <stdio.h>
#include <sys/ioctl.h>
#include "client.h"
#include "nvstatus.h"
#include "proof.h"
#include "uvm_fault_isolation_test_ioctl.h"

static int run(struct client *client, const char *name, bool shares_group)
{
	UVM_TEST_FAULT_ISOLATION_PARAMS params = { .gpu_uuid = gpu_uuid(0), .shares_group = shares_group };
	int result = ioctl(client->uvm, UVM_TEST_FAULT_ISOLATION, &params);
	bool passed = result == 0 && params.rmStatus == NV_OK;

	printf("{\"class\": \"built-in tests, %s\", \"as_expected\": %s, \"result\": %d, \"status\": %u}\n", name,
	       passed ? "true" : "false", result, params.rmStatus);
	return passed ? 0 : 1;
}

int run_builtin(void)
{
	struct client client = client_open(1, 0), neighbour;
	int failures = run(&client, "alone in the group", false);

	neighbour = client_open(2, 0);
	failures += run(&client, "with a neighbour", true);
	module_set("test_fails", 2);
	failures += run(&client, "a sink fails", true);
	module_set("test_fails", 0);
	client_leave(&neighbour);
	client_leave(&client);
	return failures ? 1 : 0;
}
