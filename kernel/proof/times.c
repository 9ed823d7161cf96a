// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "branch.h"
#include "client.h"
#include "times.h"

#define TRACING		"/sys/kernel/tracing/"
#define THREADS_MAX	64
#define VALUES_MAX	65536
#define BUFFER_KIB	"8192"

/* A module's names have to be loaded before. */
static const char *const probes[] = {
	"p:uvm/service_begins " SERVICE_REPLAYABLE_FAULTS "\n",
	"r:uvm/service_ends " SERVICE_REPLAYABLE_FAULTS "\n",
	"p:uvm/push uvm_channel_end_push\n",
};
static const char isolation_probe[] = "p:uvm/isolation_begins uvm_fault_isolation_contain\n";

struct values {
	uint64_t *value;
	uint64_t count;
};

struct thread {
	unsigned long id;
	bool services;
	bool isolates;
	double since;
	uint64_t pushes;
	uint64_t isolation_pushes;
	uint64_t contained;
	bool isolated;
};

struct reader {
	uint64_t holds;
	struct thread threads[THREADS_MAX];
	struct values benign_us, fatal_us, sink_us, under_lock_us, benign_pushes, sink_pushes;
};

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

struct spread spread_of(uint64_t *values, uint64_t count)
{
	struct spread spread = { .count = count };

	if (count == 0)
		return spread;
	qsort(values, count, sizeof(*values), by_value);
	spread.p50 = values[(count - 1) / 2];
	spread.p99 = values[(count * 99 + 99) / 100 - 1];
	spread.largest = values[count - 1];
	return spread;
}

/* With how as for open(2): stdio would look for the end of what has none. */
static bool write_to(const char *path, int how, const char *text)
{
	int file = open(path, O_WRONLY | how);
	bool written;

	if (file < 0)
		return false;
	written = write(file, text, strlen(text)) >= 0;
	close(file);
	return written;
}

static void set_up(void)
{
	static bool is_up;
	unsigned int i;

	if (is_up)
		return;
	is_up = true;
	for (i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (!write_to(TRACING "kprobe_events", O_APPEND, probes[i]))
			die("cannot set the probe %s", probes[i]); /* all holds would count as none, and nothing be checked */
	write_to(TRACING "kprobe_events", O_APPEND, isolation_probe); /* the stock module has no such function */
	write_to(TRACING "trace_clock", O_TRUNC, "mono"); /* the same on all processors, between which a thread may move */
	write_to(TRACING "buffer_size_kb", O_TRUNC, BUFFER_KIB);
}

/* All but the first. A guest that lost one would have fewer races than it claims. */
static void set_other_processors(bool online)
{
	long count = sysconf(_SC_NPROCESSORS_CONF), i;
	char path[64];

	for (i = 1; i < count; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online", i);
		write_to(path, 0, online ? "1" : "0");
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) != (online ? count : 1))
		die("%ld processors instead of %ld", sysconf(_SC_NPROCESSORS_ONLN), online ? count : 1);
}

/*
 * Probes and trace points are switched on by writing over code of the kernel while it runs. QEMU's emulator once in some
 * hundred times goes on with what it has translated before: the other processor then meets the same breakpoint for ever, in
 * the scheduler, and this one waits for it for ever. Where there is no other it cannot.
 */
void lock_times_switch(bool on)
{
	if (access(TRACING "kprobe_events", W_OK) != 0)
		return;
	set_up();
	set_other_processors(false);
	write_to(TRACING "events/uvm/enable", O_TRUNC, on ? "1" : "0");
	write_to(TRACING "events/nvidia_uvm/uvm_fault_isolation/enable", O_TRUNC, on ? "1" : "0");
	set_other_processors(true);
}

void lock_times_begin(void)
{
	static bool is_on;

	if (!is_on)
		lock_times_switch(true);
	is_on = true;
	write_to(TRACING "trace", O_TRUNC, "");
}

static void add(struct values *values, uint64_t value)
{
	if (!values->value) {
		values->value = calloc(VALUES_MAX, sizeof(*values->value));
		if (!values->value)
			die("calloc");
	}
	if (values->count < VALUES_MAX)
		values->value[values->count++] = value;
}

/* Of everything that was traced so far. */
static struct values all_benign_us, all_sink_us, all_benign_pushes, all_sink_pushes;

static struct spread take(struct values *values, struct values *all)
{
	struct spread spread = spread_of(values->value, values->count);
	uint64_t i;

	for (i = 0; all && i < values->count; i++)
		add(all, values->value[i]);
	free(values->value);
	return spread;
}

static struct thread *thread_of(struct reader *reader, unsigned long id)
{
	struct thread *thread = reader->threads;

	while (thread < reader->threads + THREADS_MAX - 1 && thread->id && thread->id != id)
		thread++;
	thread->id = id;
	return thread;
}

static void service_ended(struct reader *reader, struct thread *thread, double now)
{
	uint64_t took_us = (uint64_t)((now - thread->since) * 1e6);

	if (thread->services && thread->contained) {
		add(&reader->fatal_us, took_us);
	} else if (thread->services && thread->pushes) {
		add(&reader->benign_us, took_us);
		add(&reader->benign_pushes, thread->pushes);
	}
	reader->holds += thread->services && thread->isolated;
	thread->services = false;
}

static void isolation_told(struct reader *reader, struct thread *thread, const char *told)
{
	const char *took = strstr(told, " us=");
	uint64_t took_us = took ? strtoul(took + 4, NULL, 10) : 0;

	if (thread->isolates && (strstr(told, "outcome=contained") || strstr(told, "outcome=held"))) {
		thread->contained++;
		add(&reader->sink_us, took_us);
		add(&reader->sink_pushes, thread->isolation_pushes);
	}
	if (thread->isolates && thread->services) {
		thread->isolated = true;
		add(&reader->under_lock_us, took_us);
	}
	thread->isolates = false;
}

/* "   UVM GPU1 BH-123     [000] d.... 12.345678: service_begins: (...)" */
static void read_line(struct reader *reader, const char *line)
{
	const char *processor = strstr(line, " [0");
	const char *number = processor;
	struct thread *thread;
	char what[32];
	double now;
	int told;

	if (!processor || sscanf(processor, " [%*[0-9]] %*s %lf: %31[a-z_]: %n", &now, what, &told) < 2)
		return;
	while (number > line && number[-1] != '-')
		number--;
	thread = thread_of(reader, strtoul(number, NULL, 10));
	if (strcmp(what, "service_begins") == 0) {
		*thread = (struct thread){ .id = thread->id, .services = true, .since = now };
	} else if (strcmp(what, "service_ends") == 0) {
		service_ended(reader, thread, now);
	} else if (strcmp(what, "push") == 0) {
		thread->pushes++;
		thread->isolation_pushes += thread->isolates;
	} else if (strcmp(what, "isolation_begins") == 0) {
		thread->isolates = true;
		thread->isolation_pushes = 0;
	} else if (strcmp(what, "uvm_fault_isolation") == 0) {
		isolation_told(reader, thread, processor + told);
	}
}

struct lock_times lock_times_end(void)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	FILE *trace = fopen(TRACING "trace", "r");
	struct lock_times times;
	uint64_t kept, written;
	bool lost = false;
	char line[512];

	if (!reader)
		die("calloc");
	while (trace && fgets(line, sizeof(line), trace)) {
		if (sscanf(line, "# entries-in-buffer/entries-written: %lu/%lu", &kept, &written) == 2)
			lost = kept != written;
		else
			read_line(reader, line);
	}
	if (trace)
		fclose(trace);
	times = (struct lock_times){
		.benign_us = take(&reader->benign_us, &all_benign_us),
		.fatal_us = take(&reader->fatal_us, NULL),
		.sink_us = take(&reader->sink_us, &all_sink_us),
		.under_lock_us = take(&reader->under_lock_us, NULL),
		.holds = reader->holds,
		.lost = lost,
		.benign_pushes = take(&reader->benign_pushes, &all_benign_pushes),
		.sink_pushes = take(&reader->sink_pushes, &all_sink_pushes),
	};
	free(reader);
	return times;
}

static void print_values(const char *name, const struct values *all)
{
	uint64_t i;

	printf("{\"each\": \"%s\", \"values\": \"", name);
	for (i = 0; i < all->count; i++)
		printf("%s%lu", i ? " " : "", all->value[i]);
	printf("\"}\n");
}

void lock_times_print_each(void)
{
	print_values("lock_benign_us", &all_benign_us);
	print_values("sink_us", &all_sink_us);
	print_values("lock_benign_pushes", &all_benign_pushes);
	print_values("sink_pushes", &all_sink_pushes);
}
