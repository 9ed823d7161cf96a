// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The files in /proc that are root's alone: whoever is root of a container owns them too, and has to be refused. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client.h"
#include "proof.h"

#define FOLDER	"/proc/driver/nvidia-uvm/"

static const struct {
	const char *name;
	const char *line;	/* what may be written to it; NULL where nothing may */
} files[] = {
	{ "fault_isolation_events", NULL },
	{ "fault_isolation_condemned", NULL },
	{ "fault_isolation_graces", NULL },
	{ "fault_isolation_servers", "1" },
	{ "fault_isolation_cgroups", "/" },
};

#define FILES	(sizeof(files) / sizeof(files[0]))

/* The user stays 0, as in a container. */
static void give_capabilities_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &header, none) != 0)
		die("capset");
}

static int open_file(size_t i)
{
	char path[128];

	snprintf(path, sizeof(path), FOLDER "%s", files[i].name);
	return open(path, files[i].line ? O_RDWR : O_RDONLY);
}

/* In a child, since nobody gets capabilities back. before: a descriptor from the time at which it had them. */
static bool is_refused(size_t i, int before)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		const char *line = files[i].line;

		give_capabilities_up();
		if (open_file(i) >= 0 || errno != EPERM)
			_exit(1);
		_exit(line && (write(before, line, strlen(line)) >= 0 || errno != EPERM));
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

int run_permissions(void)
{
	int failures = 0;
	size_t i;

	for (i = 0; i < FILES; i++) {
		int before = open_file(i);
		bool good = before >= 0 && is_refused(i, before);

		close(before);
		failures += !good;
		printf("{\"class\": \"root without capabilities, %s\", \"as_expected\": %s}\n", files[i].name, good ? "true" : "false");
	}
	return failures ? 1 : 0;
}
