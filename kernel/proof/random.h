/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef PROOF_RANDOM_H
#define PROOF_RANDOM_H

#include <stdint.h>

static inline uint64_t random_start(uint32_t seed)
{
	return seed * 2654435761ULL + 1;
}

/* The next number of the series, smaller than below. */
static inline uint32_t random_next(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33) % below;
}

#endif
