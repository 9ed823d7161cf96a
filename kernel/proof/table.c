// SPDX-License-Identifier: GPL-2.0 OR MIT
/* One line of JSON a class, for the table that the host makes of a stock and a patched run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proof.h"
#include "scene.h"

static bool as_expected(const struct fault_class *class, const struct verdict *verdict, bool patched)
{
	if (patched && class->as_ever)
		return !verdict->innocents_live && verdict->values_right && verdict->resets > 0 && verdict->clean;
	if (!patched)
		return !verdict->innocents_live && verdict->resets > 0 && verdict->clean;
	return verdict->innocents_live && verdict->values_right && verdict->faulter_ended && verdict->resets == 0 &&
	       verdict->reported == 0 && verdict->channel_errors == 0 && verdict->clean;
}

static void print_verdict(const struct fault_class *class, const struct verdict *verdict, bool patched)
{
	printf("{\"class\": \"%s\", \"as_expected\": %s, \"innocents_live\": %s, \"values_right\": %s, "
	       "\"faulter_ended\": %s, \"resets\": %lu, \"reported\": %lu, \"channel_errors\": %lu, \"clean\": %s, "
	       "\"benign_us\": %lu, \"fatal_us\": %lu, \"left\": \"%s\"}\n",
	       class->name, as_expected(class, verdict, patched) ? "true" : "false", verdict->innocents_live ? "true" : "false",
	       verdict->values_right ? "true" : "false", verdict->faulter_ended ? "true" : "false", verdict->resets,
	       verdict->reported, verdict->channel_errors, verdict->clean ? "true" : "false", verdict->benign_ns / 1000,
	       verdict->fatal_ns / 1000, verdict->clean ? "" : verdict->left);
}

static int run_once(bool patched, unsigned long from, unsigned long to)
{
	int failures = 0;
	unsigned int i;

	for (i = 0; i < fault_class_count; i++) {
		struct verdict verdict;

		if (i < from || i > to)
			continue;
		verdict = play(&fault_classes[i], i);
		print_verdict(&fault_classes[i], &verdict, patched);
		failures += !as_expected(&fault_classes[i], &verdict, patched);
	}
	return failures;
}

int run_classes(bool patched, const char *only, unsigned long times)
{
	char *last = NULL;
	unsigned long from = only ? strtoul(only, &last, 10) : 0;
	unsigned long to = !only ? fault_class_count : *last == '-' ? strtoul(last + 1, NULL, 10) : from;
	int failures = 0;

	while (times-- > 0)
		failures += run_once(patched, from, to);
	return failures ? 1 : 0;
}
