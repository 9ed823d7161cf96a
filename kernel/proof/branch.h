/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What differs between the branches' ioctls. PROOF_BRANCH comes from the build. */
#ifndef PROOF_BRANCH_H
#define PROOF_BRANCH_H

#if PROOF_BRANCH < 580
#define CPU_ERROR_COUNT	cpu_pages_allocation_error_count
#else
#define CPU_ERROR_COUNT	cpu_chunk_allocation_error_count
#endif

#endif
