// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Failures on demand: a rule names a call of the interface, how many calls to let pass and how many to fail. */
#include <linux/spinlock.h>
#include <linux/string.h>
#include "model.h"

#define RULES_MAX	8

static struct gpu_model_inject rules[RULES_MAX];
static DEFINE_SPINLOCK(rules_lock);

NV_STATUS model_injected(const char *call)
{
	NV_STATUS status = NV_OK;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&rules_lock, flags);
	for (i = 0; i < RULES_MAX && status == NV_OK; i++) {
		struct gpu_model_inject *rule = &rules[i];

		if (rule->count == 0 || strcmp(rule->call, call) != 0)
			continue;
		if (rule->skip > 0) {
			rule->skip--;
			continue;
		}
		rule->count--;
		rule->hits++;
		status = rule->status;
	}
	spin_unlock_irqrestore(&rules_lock, flags);
	return status;
}

/* Replaces the rule of the same call; a count of 0 removes it. Says how often the old one struck. */
int model_inject(struct gpu_model_inject *rule)
{
	struct gpu_model_inject *place = NULL;
	unsigned long flags;
	int i;

	rule->call[GPU_MODEL_NAME_LENGTH - 1] = '\0';
	rule->hits = 0;
	spin_lock_irqsave(&rules_lock, flags);
	for (i = 0; i < RULES_MAX; i++) {
		if (strcmp(rules[i].call, rule->call) == 0) {
			place = &rules[i];
			break;
		}
		if (!place && rules[i].count == 0)
			place = &rules[i];
	}
	if (place) {
		u32 hits = strcmp(place->call, rule->call) == 0 ? place->hits : 0;

		*place = *rule;
		rule->hits = hits;
	}
	spin_unlock_irqrestore(&rules_lock, flags);
	return place ? 0 : -ENOSPC;
}
