// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Turing: version 2 of the MMU format (hwref/turing/tu102/dev_mmu.h), faults as in dev_fault.h beside it. */
#include "model.h"
#include "nvmisc.h"
#include "clc46f.h"
#include "clc5b5.h"
#include "hwref/turing/tu102/dev_fault.h"
#include "hwref/turing/tu102/dev_mmu.h"

#define FIELD(entry, field)	DRF_VAL64(_MMU_VER2, _PTE, field, entry)

static enum model_entry_kind table_kind(u64 aperture, bool volatile_bit)
{
	if (aperture != NV_MMU_VER2_PDE_APERTURE_INVALID)
		return MODEL_ENTRY_VALID;
	return volatile_bit ? MODEL_ENTRY_SPARSE : MODEL_ENTRY_INVALID;
}

static enum model_entry_kind turing_pde(u64 entry, struct model_phys *table)
{
	u64 aperture = DRF_VAL64(_MMU_VER2, _PDE, _APERTURE, entry);

	table->vidmem = aperture == NV_MMU_VER2_PDE_APERTURE_VIDEO_MEMORY;
	table->address = table->vidmem ? DRF_VAL64(_MMU_VER2, _PDE, _ADDRESS_VID, entry)
				       : DRF_VAL64(_MMU_VER2, _PDE, _ADDRESS_SYS, entry);
	table->address <<= NV_MMU_VER2_PDE_ADDRESS_SHIFT;
	return table_kind(aperture, DRF_VAL64(_MMU_VER2, _PDE, _VOL, entry));
}

static enum model_entry_kind turing_big_pde(u64 entry, struct model_phys *table)
{
	u64 aperture = DRF_VAL64(_MMU_VER2, _DUAL_PDE, _APERTURE_BIG, entry);

	table->vidmem = aperture == NV_MMU_VER2_DUAL_PDE_APERTURE_BIG_VIDEO_MEMORY;
	table->address = table->vidmem ? DRF_VAL64(_MMU_VER2, _DUAL_PDE, _ADDRESS_BIG_VID, entry)
				       : DRF_VAL64(_MMU_VER2, _DUAL_PDE, _ADDRESS_BIG_SYS, entry);
	table->address <<= NV_MMU_VER2_DUAL_PDE_ADDRESS_BIG_SHIFT;
	return table_kind(aperture, DRF_VAL64(_MMU_VER2, _DUAL_PDE, _VOL_BIG, entry));
}

static enum model_entry_kind turing_pte(u64 entry, bool big, struct model_leaf *leaf)
{
	u64 aperture = FIELD(entry, _APERTURE);

	if (!FIELD(entry, _VALID)) {
		if (FIELD(entry, _VOL))
			return MODEL_ENTRY_SPARSE;
		return big && FIELD(entry, _PRIVILEGE) ? MODEL_ENTRY_NO_SMALL : MODEL_ENTRY_INVALID;
	}
	leaf->peer = aperture == NV_MMU_VER2_PTE_APERTURE_PEER_MEMORY;
	leaf->phys.vidmem = aperture == NV_MMU_VER2_PTE_APERTURE_VIDEO_MEMORY;
	leaf->phys.address = leaf->phys.vidmem ? FIELD(entry, _ADDRESS_VID) : FIELD(entry, _ADDRESS_SYS);
	leaf->phys.address <<= NV_MMU_VER2_PTE_ADDRESS_SHIFT;
	leaf->read_only = FIELD(entry, _READ_ONLY);
	leaf->no_atomics = FIELD(entry, _ATOMIC_DISABLE);
	leaf->privileged = FIELD(entry, _PRIVILEGE);
	return MODEL_ENTRY_VALID;
}

static u64 turing_make_pte(struct model_phys phys, bool read_only, bool no_atomics)
{
	u64 page = phys.address >> NV_MMU_VER2_PTE_ADDRESS_SHIFT;
	u64 entry = DRF_DEF64(_MMU_VER2, _PTE, _VALID, _TRUE);

	if (phys.vidmem)
		entry |= DRF_DEF64(_MMU_VER2, _PTE, _APERTURE, _VIDEO_MEMORY) |
			 DRF_NUM64(_MMU_VER2, _PTE, _ADDRESS_VID, page);
	else
		entry |= DRF_DEF64(_MMU_VER2, _PTE, _APERTURE, _SYSTEM_COHERENT_MEMORY) |
			 DRF_NUM64(_MMU_VER2, _PTE, _ADDRESS_SYS, page);
	entry |= DRF_NUM64(_MMU_VER2, _PTE, _VOL, !phys.vidmem);
	entry |= DRF_NUM64(_MMU_VER2, _PTE, _READ_ONLY, read_only);
	entry |= DRF_NUM64(_MMU_VER2, _PTE, _ATOMIC_DISABLE, no_atomics);
	return entry;
}

const struct model_arch model_turing = {
	.name = "Turing",
	.architecture = 0x160,
	.implementation = 2,
	.host_class = TURING_CHANNEL_GPFIFO_A,
	.ce_class = TURING_DMA_COPY_A,
	.compute_class = 0xc5c0,
	.engine_graphics = NV_PFAULT_MMU_ENG_ID_GRAPHICS,
	.engine_ce = NV_PFAULT_MMU_ENG_ID_CE0,
	.engine_host = NV_PFAULT_MMU_ENG_ID_HOST0,
	.cancel_engine_mask = 0x7f,
	.client_sm = { NV_PFAULT_CLIENT_GPC_T1_0, NV_PFAULT_CLIENT_GPC_T1_1,
		       NV_PFAULT_CLIENT_GPC_T1_2, NV_PFAULT_CLIENT_GPC_T1_3 },
	.client_ce = NV_PFAULT_CLIENT_HUB_CE0,
	.client_host = NV_PFAULT_CLIENT_HUB_HOST,
	.clear_by_register = false,
	.segment_base = false,
	.address_bits = 49,
	.levels = 4,
	.shift = { 47, 38, 29, 21 },
	.bits = { 2, 9, 9, 8 },
	.leaf_level = -1,
	.pde = turing_pde,
	.big_pde = turing_big_pde,
	.pte = turing_pte,
	.make_pte = turing_make_pte,
};
