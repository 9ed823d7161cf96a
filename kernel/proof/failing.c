// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Allocations that fail at random, of the threads that are marked for it alone: the kernel's failslab and fail_page_alloc. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "failing.h"

#define MOST	1000000000L

static const char *const kinds[] = { "failslab", "fail_page_alloc" };

static bool write_text(const char *path, const char *text)
{
	int descriptor = open(path, O_WRONLY);
	bool written = descriptor >= 0 && write(descriptor, text, strlen(text)) == (ssize_t)strlen(text);

	close(descriptor);
	return written;
}

static bool set(const char *kind, const char *name, const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kind, name);
	return write_text(path, text);
}

static bool set_all(const char *name, const char *text)
{
	unsigned int i;
	bool good = true;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		good = set(kinds[i], name, text) && good;
	return good;
}

bool failing_begin(const char *percent)
{
	return set_all("task-filter", "Y") && set_all("ignore-gfp-wait", "N") && set_all("verbose", "0") &&
	       set("fail_page_alloc", "ignore-gfp-highmem", "N") && set("fail_page_alloc", "min-order", "0") &&
	       set_all("probability", percent);
}

void failing_end(void)
{
	set_all("probability", "0");
}

/* How many are left of the most that may fail. */
static long left(const char *kind)
{
	char path[96], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/times", kind);
	file = fopen(path, "r");
	if (!file)
		return MOST;
	if (!fgets(text, sizeof(text), file))
		snprintf(text, sizeof(text), "%ld", MOST);
	fclose(file);
	return strtol(text, NULL, 10);
}

bool failing_count_from_here(void)
{
	char most[16];

	snprintf(most, sizeof(most), "%ld", MOST);
	return set_all("times", most);
}

long failing_count(void)
{
	long count = 0;
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		count += MOST - left(kinds[i]);
	return count;
}

static bool is_of_uvm(const char *process)
{
	char path[300], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", process);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = 0;
	fclose(file);
	return strncmp(name, "UVM GPU", 7) == 0;
}

void failing_mark(void)
{
	struct dirent *entry;
	DIR *all = opendir("/proc");
	char path[300];

	write_text("/proc/self/make-it-fail", "1");
	while (all && (entry = readdir(all)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_of_uvm(entry->d_name)) {
			snprintf(path, sizeof(path), "/proc/%s/make-it-fail", entry->d_name);
			write_text(path, "1");
		}
	if (all)
		closedir(all);
}
