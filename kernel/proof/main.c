// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proof.h"

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *which = argc > 2 ? argv[2] : NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "conformance") == 0)
		return run_conformance(false);
	if (strcmp(what, "quick") == 0)
		return run_conformance(true);
	if (strcmp(what, "stock") == 0 || strcmp(what, "patched") == 0)
		return run_classes(strcmp(what, "patched") == 0, which, argc > 3 ? strtoul(argv[3], NULL, 10) : 1);
	if (strcmp(what, "builtin") == 0)
		return run_builtin();
	if (strcmp(what, "permissions") == 0)
		return run_permissions();
	if (strcmp(what, "unload") == 0)
		return run_unload(which);
	if (strcmp(what, "nothing") == 0)
		return 0;
	if (strcmp(what, "lives") == 0)
		return run_lives(which, argc > 3 ? argv[3] : NULL);
	if (strcmp(what, "schedules") == 0)
		return run_schedules(which, argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL);
	if (strcmp(what, "fuzz") == 0)
		return run_fuzz(which, argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL);
	if (strcmp(what, "wrong") == 0)
		return run_wrong();
	if (strcmp(what, "probes") == 0)
		return run_probes(which ? strtoul(which, NULL, 10) : 1);
	fprintf(stderr, "usage: proof conformance | quick | builtin | permissions | unload WHEN | nothing | lives DESCRIPTOR COUNT | stock [CLASS [TIMES]] | patched [CLASS [TIMES]] |\n"
			"schedules FIRST COUNT [TIMES] | fuzz FIRST SECONDS [PERCENT] | wrong | probes ROUNDS;\n"
			"CLASS is a number, FIRST-LAST or NAME+NAME...\n");
	return 2;
}
