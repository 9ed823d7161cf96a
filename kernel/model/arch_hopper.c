// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Hopper: version 3 of the MMU format (hwref/hopper/gh100/dev_mmu.h), faults as in dev_fault.h beside it. */
#include "model.h"
#include "nvmisc.h"
#include "clc86f.h"
#include "clc8b5.h"
#include "hwref/hopper/gh100/dev_fault.h"
#include "hwref/hopper/gh100/dev_mmu.h"

#define FIELD(entry, field)	DRF_VAL64(_MMU_VER3, _PTE, field, entry)

/* The bits that the names of NV_MMU_VER3_PTE_PCF_* spell out. */
#define PCF_UNCACHED		0x01
#define PCF_PRIVILEGE		0x02
#define PCF_READ_ONLY		0x04
#define PCF_NO_ATOMIC		0x08

static enum model_entry_kind table_kind(u64 aperture, u64 pcf)
{
	if (aperture != NV_MMU_VER3_PDE_APERTURE_INVALID)
		return MODEL_ENTRY_VALID;
	return pcf == NV_MMU_VER3_PDE_PCF_SPARSE_ATS_ALLOWED || pcf == NV_MMU_VER3_PDE_PCF_SPARSE_ATS_NOT_ALLOWED
		       ? MODEL_ENTRY_SPARSE : MODEL_ENTRY_INVALID;
}

static enum model_entry_kind hopper_pde(u64 entry, struct model_phys *table)
{
	u64 aperture = DRF_VAL64(_MMU_VER3, _PDE, _APERTURE, entry);

	table->vidmem = aperture == NV_MMU_VER3_PDE_APERTURE_VIDEO_MEMORY;
	table->address = DRF_VAL64(_MMU_VER3, _PDE, _ADDRESS, entry) << NV_MMU_VER3_PDE_ADDRESS_SHIFT;
	return table_kind(aperture, DRF_VAL64(_MMU_VER3, _PDE, _PCF, entry));
}

static enum model_entry_kind hopper_big_pde(u64 entry, struct model_phys *table)
{
	u64 aperture = DRF_VAL64(_MMU_VER3, _DUAL_PDE, _APERTURE_BIG, entry);

	table->vidmem = aperture == NV_MMU_VER3_DUAL_PDE_APERTURE_BIG_VIDEO_MEMORY;
	table->address = DRF_VAL64(_MMU_VER3, _DUAL_PDE, _ADDRESS_BIG, entry)
			 << NV_MMU_VER3_DUAL_PDE_ADDRESS_BIG_SHIFT;
	return table_kind(aperture, DRF_VAL64(_MMU_VER3, _DUAL_PDE, _PCF_BIG, entry));
}

static enum model_entry_kind hopper_pte(u64 entry, bool big, struct model_leaf *leaf)
{
	u64 aperture = FIELD(entry, _APERTURE);
	u64 pcf = FIELD(entry, _PCF);

	if (!FIELD(entry, _VALID)) {
		if (pcf == NV_MMU_VER3_PTE_PCF_SPARSE)
			return MODEL_ENTRY_SPARSE;
		return big && pcf == NV_MMU_VER3_PTE_PCF_NO_VALID_4KB_PAGE ? MODEL_ENTRY_NO_SMALL
									     : MODEL_ENTRY_INVALID;
	}
	leaf->peer = aperture == NV_MMU_VER3_PTE_APERTURE_PEER_MEMORY;
	leaf->phys.vidmem = aperture == NV_MMU_VER3_PTE_APERTURE_VIDEO_MEMORY;
	leaf->phys.address = FIELD(entry, _ADDRESS);
	leaf->phys.address <<= NV_MMU_VER3_PTE_ADDRESS_SHIFT;
	leaf->read_only = pcf & PCF_READ_ONLY;
	leaf->no_atomics = pcf & PCF_NO_ATOMIC;
	leaf->privileged = pcf & PCF_PRIVILEGE;
	return MODEL_ENTRY_VALID;
}

static u64 hopper_make_pte(struct model_phys phys, bool read_only, bool no_atomics)
{
	u64 page = phys.address >> NV_MMU_VER3_PTE_ADDRESS_SHIFT;
	u64 pcf = (read_only ? PCF_READ_ONLY : 0) | (no_atomics ? PCF_NO_ATOMIC : 0) |
		  (phys.vidmem ? 0 : PCF_UNCACHED);
	u64 aperture = phys.vidmem ? NV_MMU_VER3_PTE_APERTURE_VIDEO_MEMORY
				   : NV_MMU_VER3_PTE_APERTURE_SYSTEM_COHERENT_MEMORY;

	return DRF_DEF64(_MMU_VER3, _PTE, _VALID, _TRUE) | DRF_NUM64(_MMU_VER3, _PTE, _PCF, pcf) |
	       DRF_NUM64(_MMU_VER3, _PTE, _APERTURE, aperture) | DRF_NUM64(_MMU_VER3, _PTE, _ADDRESS, page);
}

const struct model_arch model_hopper = {
	.name = "Hopper",
	.architecture = 0x180,
	.implementation = 0,
	.host_class = HOPPER_CHANNEL_GPFIFO_A,
	.ce_class = HOPPER_DMA_COPY_A,
	.compute_class = 0xcbc0,
	.engine_graphics = NV_PFAULT_MMU_ENG_ID_GRAPHICS,
	.engine_ce = NV_PFAULT_MMU_ENG_ID_CE0,
	.engine_host = NV_PFAULT_MMU_ENG_ID_HOST0,
	.cancel_engine_mask = 0x1ff,
	.client_sm = { NV_PFAULT_CLIENT_GPC_T1_0, NV_PFAULT_CLIENT_GPC_T1_1,
		       NV_PFAULT_CLIENT_GPC_T1_2, NV_PFAULT_CLIENT_GPC_T1_3 },
	.client_ce = NV_PFAULT_CLIENT_HUB_CE0,
	.client_host = NV_PFAULT_CLIENT_HUB_HOST,
	.clear_by_register = true,
	.segment_base = true,
	.address_bits = 57,
	.levels = 5,
	.shift = { 56, 47, 38, 29, 21 },
	.bits = { 1, 9, 9, 9, 8 },
	.leaf_level = 3,
	.pde = hopper_pde,
	.big_pde = hopper_big_pde,
	.pte = hopper_pte,
	.make_pte = hopper_make_pte,
};
