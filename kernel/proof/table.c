// SPDX-License-Identifier: GPL-2.0 OR MIT
/* One line of JSON a class, for the table that the host makes of a stock and a patched run. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proof.h"
#include "scene.h"

/*
 * What one fault's sink may cost the neighbours, in pushes that the GPU's service lock waits for: eight sinks that it takes
 * in or gives up, with the entries of two directories beside each, four new tables, its own entries, and two directories
 * beside it.
 */
#define PUSHES_AT_MOST	(8 * 3 + 4 + 1 + 2)

/* The module has counted the holds of the lock that the kernel's tracing tells of, and nothing in one took longer than it says. */
static bool stalls_told(const struct verdict *verdict)
{
	return (verdict->stalls == verdict->lock.holds || (verdict->lock.lost && verdict->stalls > verdict->lock.holds)) &&
	       verdict->longest_stall_us >= verdict->lock.under_lock_us.largest;
}

static bool as_expected(const struct fault_class *class, const struct verdict *verdict, bool patched)
{
	if (patched && class->counts && verdict->counted == 0)
		return false;
	if (patched && class->foresees && verdict->foreseen == 0)
		return false;
	if (patched && class->says && verdict->said == 0)
		return false;
	if (patched && class->test_fails && !verdict->fell_back)
		return false;
	if (patched && verdict->lock.holds && !stalls_told(verdict))
		return false;
	if (verdict->lock.sink_pushes.largest > PUSHES_AT_MOST)
		return false;
	if (class->alone && !class->no_fault)
		return verdict->innocents_live && verdict->values_right && verdict->resets == 1 && verdict->clean;
	if (patched && class->as_ever)
		return !verdict->innocents_live && verdict->values_right && verdict->resets > 0 && verdict->clean &&
		       verdict->as_it_should == class->looks;
	if (!patched && class->no_fault)
		return verdict->innocents_live && verdict->resets == 0 && verdict->clean;
	if (!patched)
		return !verdict->innocents_live && verdict->resets > 0 && verdict->clean;
	if (verdict->deferred > (class->no_grace ? 0 : class->faulters + class->deaths) && !class->without_mm)
		return false;
	if (class->table_kib_at_most && (verdict->table_kib == 0 || verdict->table_kib > class->table_kib_at_most))
		return false;
	if (verdict->listed < class->listed)
		return false;
	if (class->contained_at_most && verdict->contained > class->contained_at_most)
		return false;
	if (verdict->contained < class->contained_at_least || verdict->as_it_should != class->looks)
		return false;
	return verdict->innocents_live && verdict->values_right && verdict->faulter_ended && verdict->resets == 0 &&
	       verdict->reported == 0 && verdict->channel_errors == 0 && verdict->clean;
}

static void print_spread(const char *name, const struct spread *spread, uint64_t unit)
{
	printf("\"%s\": \"%lu %lu %lu %lu\", ", name, spread->count, spread->p50 / unit, spread->p99 / unit,
	       spread->largest / unit);
}

/* How many, the median, what 99 in a hundred are within, the largest. */
static void print_times(const struct verdict *verdict)
{
	print_spread("benign_us", &verdict->benign_ns, 1000);
	print_spread("fatal_us", &verdict->fatal_ns, 1000);
	print_spread("lock_benign_us", &verdict->lock.benign_us, 1);
	print_spread("lock_fatal_us", &verdict->lock.fatal_us, 1);
	print_spread("sink_us", &verdict->lock.sink_us, 1);
	print_spread("lock_benign_pushes", &verdict->lock.benign_pushes, 1);
	print_spread("sink_pushes", &verdict->lock.sink_pushes, 1);
}

static void print_verdict(const struct fault_class *class, const struct verdict *verdict, bool patched)
{
	printf("{\"class\": \"%s\", \"as_expected\": %s, \"innocents_live\": %s, \"values_right\": %s, "
	       "\"faulter_ended\": %s, \"resets\": %lu, \"reported\": %lu, \"channel_errors\": %lu, \"clean\": %s, "
	       "\"deferred\": %lu, \"contained\": %lu, \"stalls\": %lu, \"holds\": %lu, \"longest_stall_us\": %lu, "
	       "\"table_kib\": %lu, \"took_ms\": %lu, ",
	       class->name, as_expected(class, verdict, patched) ? "true" : "false", verdict->innocents_live ? "true" : "false",
	       verdict->values_right ? "true" : "false", verdict->faulter_ended ? "true" : "false", verdict->resets,
	       verdict->reported, verdict->channel_errors, verdict->clean ? "true" : "false", verdict->deferred,
	       verdict->contained, verdict->stalls, verdict->lock.holds, verdict->longest_stall_us, verdict->table_kib, verdict->took_ms);
	print_times(verdict);
	printf("\"left\": \"%s\"}\n", verdict->clean ? "" : verdict->left);
}

/* Whether the class's name begins with this word, in which '_' stands for whatever is neither a letter nor a digit. */
static bool begins_with(const char *name, const char *word, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (name[i] != word[i] && (word[i] != '_' || name[i] == '\0' || isalnum((unsigned char)name[i])))
			return false;
	return length > 0;
}

/* which: NULL for all, a number, FIRST-LAST, or the beginnings of names with '+' between them. */
static bool is_chosen(unsigned long index, const char *which)
{
	const char *word;

	if (!which)
		return true;
	if (isdigit((unsigned char)*which)) {
		char *last = NULL;
		unsigned long from = strtoul(which, &last, 10);

		return index >= from && index <= (*last == '-' ? strtoul(last + 1, NULL, 10) : from);
	}
	for (word = which; *word; word += strcspn(word, "+"), word += *word == '+')
		if (begins_with(fault_classes[index].name, word, strcspn(word, "+")))
			return true;
	return false;
}

static int run_once(bool patched, const char *which)
{
	int failures = 0;
	unsigned int i;

	for (i = 0; i < fault_class_count; i++) {
		struct verdict verdict;

		if (!is_chosen(i, which))
			continue;
		verdict = play(&fault_classes[i], i);
		print_verdict(&fault_classes[i], &verdict, patched);
		failures += !as_expected(&fault_classes[i], &verdict, patched);
	}
	return failures;
}

int run_classes(bool patched, const char *only, unsigned long times)
{
	int failures = 0;

	while (times-- > 0)
		failures += run_once(patched, only);
	if (patched)
		lock_times_print_each();
	return failures ? 1 : 0;
}
