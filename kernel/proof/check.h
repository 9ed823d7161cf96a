/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef PROOF_CHECK_H
#define PROOF_CHECK_H

#include <stdint.h>

/* Ends the process where an ioctl failed (result) or the driver said no (status). */
void check(const char *what, int result, uint32_t status);

#endif
