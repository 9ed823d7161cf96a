/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What differs between the branches: ioctls, and a function's name. PROOF_BRANCH comes from the build. */
#ifndef PROOF_BRANCH_H
#define PROOF_BRANCH_H

#if PROOF_BRANCH < 580
#define CPU_ERROR_COUNT	cpu_pages_allocation_error_count
#else
#define CPU_ERROR_COUNT	cpu_chunk_allocation_error_count
#endif

/* Where the driver begins and ends to service replayable faults, with a GPU's service lock held. */
#if PROOF_BRANCH < 580
#define SERVICE_REPLAYABLE_FAULTS	"uvm_gpu_service_replayable_faults"
#else
#define SERVICE_REPLAYABLE_FAULTS	"uvm_parent_gpu_service_replayable_faults"
#endif

/* UVM_FREE is told how much it frees; newer branches know. */
#if PROOF_BRANCH < 595
#define FREE_LENGTH(size)	.length = (size)
#else
#define FREE_LENGTH(size)
#endif

/* And UVM_UNREGISTER_CHANNEL of which GPU. */
#if PROOF_BRANCH < 595
#define UNREGISTER_FROM(uuid)	.gpuUuid = (uuid),
#else
#define UNREGISTER_FROM(uuid)
#endif

#endif
