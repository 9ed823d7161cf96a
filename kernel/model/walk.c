// SPDX-License-Identifier: GPL-2.0 OR MIT
/* From a virtual address to memory: the page-table walk, then the checks that an access meets. */
#include <linux/sizes.h>
#include "model.h"

static bool read_entry(struct model_gpu *gpu, struct model_phys at, u64 *entry, int words)
{
	u64 *place = model_phys_to_cpu(gpu, at, words * sizeof(u64));
	int i;

	if (!place)
		return false;
	for (i = 0; i < words; i++)
		entry[i] = READ_ONCE(place[i]);
	return true;
}

static enum model_entry_kind read_pte(struct model_gpu *gpu, struct model_phys table, u64 index, bool big,
				      struct model_leaf *leaf)
{
	u64 entry;

	table.address += index * sizeof(u64);
	if (!read_entry(gpu, table, &entry, 1))
		return MODEL_ENTRY_INVALID;
	if ((entry & 1) && READ_ONCE(model_settings.wrong_pte_bit) >= 0)
		entry ^= 1ULL << model_settings.wrong_pte_bit;
	leaf->page_shift = big ? 16 : 12;
	return gpu->arch->pte(entry, big, leaf);
}

static enum model_fault from_kind(enum model_entry_kind kind, struct model_leaf *leaf, enum model_fault invalid)
{
	leaf->sparse = kind == MODEL_ENTRY_SPARSE;
	return kind == MODEL_ENTRY_VALID || leaf->sparse ? MODEL_FAULT_NONE : invalid;
}

/* The last directory's entry is a 2 MiB page, or points to big and small page tables, or both. */
static enum model_fault walk_last(struct model_gpu *gpu, const u64 entry[2], u64 address, struct model_leaf *leaf)
{
	const struct model_arch *arch = gpu->arch;
	struct model_phys big, small;
	enum model_entry_kind big_kind, small_kind, kind;

	if (entry[0] & 1) {
		leaf->page_shift = 21;
		return from_kind(arch->pte(entry[0], false, leaf), leaf, MODEL_FAULT_PTE);
	}
	big_kind = arch->big_pde(entry[0], &big);
	small_kind = arch->pde(entry[1], &small);
	if (big_kind == MODEL_ENTRY_SPARSE && small_kind != MODEL_ENTRY_VALID) {
		leaf->page_shift = 21;
		return from_kind(MODEL_ENTRY_SPARSE, leaf, MODEL_FAULT_PTE);
	}
	if (big_kind == MODEL_ENTRY_VALID) {
		kind = read_pte(gpu, big, (address >> 16) & 31, true, leaf);
		if (kind != MODEL_ENTRY_INVALID || small_kind != MODEL_ENTRY_VALID)
			return from_kind(kind, leaf, MODEL_FAULT_PTE);
	}
	if (small_kind != MODEL_ENTRY_VALID)
		return MODEL_FAULT_PDE;
	return from_kind(read_pte(gpu, small, (address >> 12) & 511, false, leaf), leaf, MODEL_FAULT_PTE);
}

static bool remember_table(const struct model_arch *arch, int level, const u64 entry[2])
{
	struct model_phys table;

	if (entry[0] & 1)
		return false;
	if (level < arch->levels - 1)
		return arch->pde(entry[0], &table) == MODEL_ENTRY_VALID;
	return arch->big_pde(entry[0], &table) == MODEL_ENTRY_VALID || arch->pde(entry[1], &table) == MODEL_ENTRY_VALID;
}

static bool fetch_directory_entry(struct model_space *space, int level, struct model_phys table, u64 address,
				  u64 entry[2])
{
	const struct model_arch *arch = space->gpu->arch;
	int words = level == arch->levels - 1 ? 2 : 1;
	u64 index = (address >> arch->shift[level]) & ((1ULL << arch->bits[level]) - 1);

	if (model_tlb_find_table(space, level, address, entry))
		return true;
	entry[1] = 0;
	table.address += index * words * sizeof(u64);
	if (!read_entry(space->gpu, table, entry, words))
		return false;
	if (remember_table(arch, level, entry))
		model_tlb_fill_table(space, level, address, entry);
	return true;
}

enum model_fault model_walk(struct model_space *space, u64 address, struct model_leaf *leaf)
{
	const struct model_arch *arch = space->gpu->arch;
	struct model_phys table = space->directory;
	u64 entry[2];
	int level;

	for (level = 0; level < arch->levels; level++) {
		enum model_entry_kind kind;

		if (!fetch_directory_entry(space, level, table, address, entry))
			return MODEL_FAULT_PDE;
		if (level == arch->levels - 1)
			return walk_last(space->gpu, entry, address, leaf);
		if (level == arch->leaf_level && (entry[0] & 1)) {
			leaf->page_shift = arch->shift[level];
			return from_kind(arch->pte(entry[0], false, leaf), leaf, MODEL_FAULT_PTE);
		}
		kind = arch->pde(entry[0], &table);
		if (kind == MODEL_ENTRY_VALID)
			continue;
		leaf->page_shift = arch->shift[level];
		return from_kind(kind, leaf, MODEL_FAULT_PDE);
	}
	return MODEL_FAULT_PDE;
}

/* RM's own mappings are not in the page tables that UVM sees; the model keeps them as a list. */
static void *find_allocation(struct model_space *space, u64 address, u64 *left)
{
	struct model_allocation *allocation;

	list_for_each_entry(allocation, &space->allocations, node) {
		if (address - allocation->address < allocation->size) {
			*left = allocation->size - (address - allocation->address);
			return allocation->memory->cpu + (address - allocation->address);
		}
	}
	return NULL;
}

static enum model_fault lookup(struct model_space *space, u64 address, struct model_leaf *leaf)
{
	enum model_fault fault;
	u64 offset;

	if (model_tlb_find(space, address, leaf))
		return MODEL_FAULT_NONE;
	memset(leaf, 0, sizeof(*leaf));
	fault = model_walk(space, address, leaf);
	if (fault != MODEL_FAULT_NONE)
		return fault;
	offset = address & ((1ULL << leaf->page_shift) - 1) & ~(u64)(SZ_4K - 1);
	leaf->phys.address = (leaf->phys.address & ~((1ULL << leaf->page_shift) - 1)) + offset;
	model_tlb_fill(space, address, leaf);
	return MODEL_FAULT_NONE;
}

/* On hardware that knows better, or whose TLB does. */
static bool sparse_helps(void)
{
	int left = READ_ONCE(model_settings.sparse_faults);

	if (left <= 0)
		return true;
	WRITE_ONCE(model_settings.sparse_faults, left - 1);
	return false;
}

static enum model_fault check(const struct model_leaf *leaf, enum model_access_type access, bool privileged)
{
	if (leaf->sparse)
		return sparse_helps() ? MODEL_FAULT_NONE : MODEL_FAULT_PTE;
	if (leaf->privileged && !privileged)
		return MODEL_FAULT_PRIVILEGE;
	if (leaf->read_only && (access == MODEL_ACCESS_WRITE || access == MODEL_ACCESS_ATOMIC))
		return MODEL_FAULT_READ_ONLY;
	if (leaf->no_atomics && access == MODEL_ACCESS_ATOMIC)
		return MODEL_FAULT_ATOMIC;
	return leaf->peer ? MODEL_FAULT_APERTURE : MODEL_FAULT_NONE;
}

void *model_translate(struct model_space *space, u64 address, enum model_access_type access, bool privileged,
		      u64 *left, enum model_fault *fault)
{
	struct model_leaf leaf;
	struct model_phys phys;
	void *cpu;

	*fault = MODEL_FAULT_NONE;
	if (space) {
		cpu = find_allocation(space, address, left);
		if (cpu)
			return cpu;
	}
	if (!space || !space->has_directory)
		*fault = MODEL_FAULT_PDE;
	else if (address >> space->gpu->arch->address_bits)
		*fault = MODEL_FAULT_VA_LIMIT;
	else
		*fault = lookup(space, address, &leaf);
	if (*fault == MODEL_FAULT_NONE)
		*fault = check(&leaf, access, privileged);
	if (*fault != MODEL_FAULT_NONE)
		return NULL;
	*left = SZ_4K - (address & (SZ_4K - 1));
	if (leaf.sparse)
		return NULL;
	phys = leaf.phys;
	phys.address += address & (SZ_4K - 1);
	cpu = model_phys_to_cpu(space->gpu, phys, *left);
	if (!cpu) {
		model_log(space->gpu, "bad physical address", address, phys.address, phys.vidmem);
		*fault = MODEL_FAULT_REGION;
	}
	return cpu;
}
