/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

/* That many percent of the marked threads' allocations fail from here on, and none. False: this kernel cannot. */
bool failing_begin(const char *percent);
void failing_end(void);
/* How many have failed since. */
bool failing_count_from_here(void);
long failing_count(void);
/* This process, with all that it forks, and UVM's threads that service and kill, as many as there are now. */
void failing_mark(void);

#endif
