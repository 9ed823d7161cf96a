/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef PROOF_H
#define PROOF_H

#include <stdbool.h>

/* 0 where everything passed. */
int run_conformance(bool quick);

#endif
