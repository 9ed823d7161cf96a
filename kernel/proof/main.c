// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <stdio.h>
#include <string.h>
#include "proof.h"

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && strcmp(argv[1], "conformance") == 0)
		return run_conformance(false);
	if (argc == 2 && strcmp(argv[1], "quick") == 0)
		return run_conformance(true);
	fprintf(stderr, "usage: proof conformance|quick\n");
	return 2;
}
