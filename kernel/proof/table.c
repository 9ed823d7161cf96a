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

/* The first thing that is not as it should be; NULL where everything is. */
static const char *ending_not_as_expected(const struct verdict *verdict)
{
	if (!verdict->innocents_live)
		return "the innocents died";
	if (!verdict->faulter_ended)
		return "the faulter lives";
	if (verdict->resets || verdict->reported || verdict->channel_errors)
		return "resets, reports or channel errors";
	return NULL;
}

static const char *books_not_as_expected(const struct fault_class *class, const struct verdict *verdict)
{
	if (verdict->deferred > (class->no_grace ? 0 : class->faulters + class->deaths) && !class->without_mm)
		return "deferred";
	if (class->table_kib_at_most && (verdict->table_kib == 0 || verdict->table_kib > class->table_kib_at_most))
		return "table_kib";
	if (verdict->listed < class->listed)
		return "condemned are not listed";
	if (class->contained_at_most && verdict->contained > class->contained_at_most)
		return "contained too many";
	if (verdict->contained < class->contained_at_least)
		return "contained too few";
	return NULL;
}

static const char *told_not_as_expected(const struct fault_class *class, const struct verdict *verdict)
{
	if (class->counts && verdict->counted == 0)
		return class->counts;
	if (class->foresees && verdict->foreseen == 0)
		return class->foresees;
	if (class->says && verdict->said == 0)
		return class->says;
	if (class->gives_up && verdict->given_up == 0)
		return "not given up";
	if (class->test_fails && verdict->fell_back)
		return "given up for everybody";
	if (class->dies_asleep && !verdict->ended_asleep)
		return "waits until the machine wakes";
	if (verdict->lock.holds && !stalls_told(verdict))
		return "stalls";
	return NULL;
}

static const char *not_as_expected(const struct fault_class *class, const struct verdict *verdict, bool patched)
{
	const char *wrong = patched ? told_not_as_expected(class, verdict) : NULL;
	bool dies = patched ? class->as_ever : !class->no_fault;

	if (wrong)
		return wrong;
	if (verdict->lock.sink_pushes.largest > PUSHES_AT_MOST)
		return "sink_pushes";
	if (!verdict->clean)
		return "something is left";
	if ((patched || (class->alone && !class->no_fault)) && !verdict->values_right)
		return "values";
	if (class->alone && !class->no_fault)
		return !verdict->innocents_live ? "the innocents died" : verdict->resets != 1 ? "resets" : NULL;
	if (dies && (verdict->innocents_live || verdict->resets == 0))
		return "the innocents live";
	if (!dies && !patched)
		return !verdict->innocents_live || verdict->resets ? "the innocents died" : NULL;
	if (patched && verdict->as_it_should != class->looks)
		return "looks";
	if (dies)
		return NULL;
	wrong = books_not_as_expected(class, verdict);
	return wrong ? wrong : ending_not_as_expected(verdict);
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

/* Returns whether it is as expected. */
static bool print_verdict(const struct fault_class *class, const struct verdict *verdict, bool patched)
{
	const char *wrong = not_as_expected(class, verdict, patched);

	printf("{\"class\": \"%s\", \"as_expected\": %s, ", class->name, wrong ? "false" : "true");
	if (wrong)
		printf("\"wrong\": \"%s\", \"looks\": \"%lu of %u\", ", wrong, verdict->as_it_should, class->looks);
	printf("\"innocents_live\": %s, \"values_right\": %s, \"faulter_ended\": %s, \"resets\": %lu, \"reported\": %lu, "
	       "\"channel_errors\": %lu, \"clean\": %s, \"deferred\": %lu, \"contained\": %lu, \"stalls\": %lu, \"holds\": %lu, "
	       "\"longest_stall_us\": %lu, \"table_kib\": %lu, \"took_ms\": %lu, ",
	       verdict->innocents_live ? "true" : "false", verdict->values_right ? "true" : "false",
	       verdict->faulter_ended ? "true" : "false", verdict->resets, verdict->reported, verdict->channel_errors,
	       verdict->clean ? "true" : "false", verdict->deferred, verdict->contained, verdict->stalls, verdict->lock.holds,
	       verdict->longest_stall_us, verdict->table_kib, verdict->took_ms);
	print_times(verdict);
	printf("\"left\": \"%s\"}\n", verdict->clean ? "" : verdict->left);
	return !wrong;
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
		failures += !print_verdict(&fault_classes[i], &verdict, patched);
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
