// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What can be chosen about the model, when it is loaded and while it runs. */
#include <linux/module.h>
#include <linux/string.h>
#include "model.h"

struct model_settings model_settings = {
	.arch = 1,
	.gpus = 1,
	.vidmem_mib = 128,
	.seed = 1,
	.reset_delay_ms = 20,
	.fault_entries = MODEL_FAULT_BUFFER / MODEL_FAULT_BYTES,
	.duplicate_percent = 10,
	.late_valid_percent = 10,
	.wrong_pte_bit = -1,
};

#define MODEL_PARAMETER(name, text)					\
	module_param_named(name, model_settings.name, int, 0444);	\
	MODULE_PARM_DESC(name, text)

MODEL_PARAMETER(arch, "0 Turing, 1 Hopper");
MODEL_PARAMETER(gpus, "how many GPUs, 1 or 2");
MODEL_PARAMETER(vidmem_mib, "video memory of each");
MODEL_PARAMETER(seed, "of every random choice");
MODEL_PARAMETER(reset_delay_ms, "from a fault that nobody services to the reset of its group");
MODEL_PARAMETER(fault_entries, "in the replayable fault buffer, at most 1024");
MODEL_PARAMETER(duplicate_percent, "faults that are reported twice");
MODEL_PARAMETER(late_valid_percent, "fault entries whose valid bit comes after PUT");
MODEL_PARAMETER(skip_invalidate, "wrong on purpose: 1 ignores TLB invalidates");
MODEL_PARAMETER(drop_replay, "wrong on purpose: 1 ignores replays");
MODEL_PARAMETER(wrong_pte_bit, "wrong on purpose: a bit to flip in every valid PTE read, -1 for none");
MODEL_PARAMETER(fatal_client, "whose faults are told as violations of privilege, 0 for nobody's");
MODEL_PARAMETER(host_faults_too, "with whose next copy fault the host of its channel faults too, 0 for nobody's");
MODEL_PARAMETER(sparse_faults, "how many accesses at sparse entries fault all the same");
MODEL_PARAMETER(cancel_wrong_page, "wrong on purpose: 1 cancels the page after the one asked for");

static const struct {
	const char *name;
	int *value;
} changeable[] = {
	{ "reset_delay_ms", &model_settings.reset_delay_ms },
	{ "duplicate_percent", &model_settings.duplicate_percent },
	{ "late_valid_percent", &model_settings.late_valid_percent },
	{ "skip_invalidate", &model_settings.skip_invalidate },
	{ "drop_replay", &model_settings.drop_replay },
	{ "wrong_pte_bit", &model_settings.wrong_pte_bit },
	{ "fatal_client", &model_settings.fatal_client },
	{ "host_faults_too", &model_settings.host_faults_too },
	{ "sparse_faults", &model_settings.sparse_faults },
	{ "cancel_wrong_page", &model_settings.cancel_wrong_page },
};

int model_setting_change(const char *name, s64 value)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changeable); i++) {
		if (strcmp(changeable[i].name, name) == 0) {
			WRITE_ONCE(*changeable[i].value, (int)value);
			return 0;
		}
	}
	return -ENOENT;
}
