// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Random schedules: which class, when the fault comes, what the model delays and doubles; all from one seed. */
#include <stdio.h>
#include <stdlib.h>
#include "proof.h"
#include "random.h"
#include "scene.h"

static bool contained(const struct verdict *verdict)
{
	return verdict->innocents_live && verdict->values_right && verdict->resets == 0 && verdict->reported == 0 &&
	       verdict->channel_errors == 0 && verdict->clean;
}

static bool run_schedule(uint32_t seed)
{
	uint64_t state = random_start(seed);
	const struct fault_class *class;
	struct verdict verdict;

	do {
		class = &fault_classes[random_next(&state, fault_class_count)];
	} while (class->two_gpus || class->as_ever || class->alone);
	model_set("duplicate_percent", random_next(&state, 60));
	model_set("late_valid_percent", random_next(&state, 60));
	model_set("reset_delay_ms", 1 + random_next(&state, 40));
	printf("schedule %u (%s)\n", seed, class->name);
	verdict = play(class, random_next(&state, 1000));
	if (contained(&verdict))
		return true;
	printf("schedule %u (%s): innocents %s, values %s, resets %lu, reported %lu, channel errors %lu, %s\n", seed,
	       class->name, verdict.innocents_live ? "live" : "dead", verdict.values_right ? "right" : "WRONG",
	       verdict.resets, verdict.reported, verdict.channel_errors, verdict.clean ? "clean" : verdict.left);
	print_events();
	return false;
}

int run_schedules(const char *first, const char *count, const char *times)
{
	uint32_t from = (uint32_t)strtoul(first ? first : "1", NULL, 10);
	uint32_t seeds = (uint32_t)strtoul(count ? count : "1", NULL, 10);
	uint32_t number = seeds * (uint32_t)strtoul(times ? times : "1", NULL, 10);
	uint32_t failures = 0;
	uint32_t i;

	for (i = 0; i < number; i++) {
		failures += !run_schedule(from + i % seeds);
		printf("%u of %u schedules, %u failed\n", i + 1, number, failures);
	}
	printf("{\"schedules\": %u, \"first\": %u, \"seeds\": %u, \"failed\": %u}\n", number, from, seeds, failures);
	return failures ? 1 : 0;
}
