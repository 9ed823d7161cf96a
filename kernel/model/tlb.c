// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Translations that the GPU remembers: 4 KiB pieces of valid and sparse pages,
 * and directory entries of every level. Nothing invalid is remembered. Entries
 * leave only when an invalidate names them or another entry takes their place.
 */
#include <linux/hash.h>
#include <linux/string.h>
#include "model.h"

u64 model_directory_key(struct model_phys directory)
{
	return directory.address | directory.vidmem;
}

static struct model_tlb_entry *page_slot(struct model_gpu *gpu, u64 directory, u64 page)
{
	return &gpu->tlb->pages[hash_64(page ^ (directory << 7), 32) % MODEL_TLB_ENTRIES];
}

static struct model_pde_entry *table_slot(struct model_gpu *gpu, u64 directory, int level, u64 index)
{
	return &gpu->tlb->tables[level][hash_64(index ^ (directory << 7), 32) % MODEL_PDE_ENTRIES];
}

bool model_tlb_find(struct model_space *space, u64 address, struct model_leaf *leaf)
{
	u64 directory = model_directory_key(space->directory);
	struct model_tlb_entry *entry = page_slot(space->gpu, directory, address >> 12);

	if (!entry->valid || entry->directory != directory || entry->page != address >> 12) {
		space->gpu->status.tlb_misses++;
		return false;
	}
	space->gpu->status.tlb_hits++;
	*leaf = entry->leaf;
	return true;
}

/* leaf names the 4 KiB piece that holds address. */
void model_tlb_fill(struct model_space *space, u64 address, const struct model_leaf *leaf)
{
	u64 directory = model_directory_key(space->directory);
	struct model_tlb_entry *entry = page_slot(space->gpu, directory, address >> 12);

	entry->directory = directory;
	entry->page = address >> 12;
	entry->leaf = *leaf;
	entry->valid = true;
}

bool model_tlb_find_table(struct model_space *space, int level, u64 address, u64 entry[2])
{
	u64 directory = model_directory_key(space->directory);
	u64 index = address >> space->gpu->arch->shift[level];
	struct model_pde_entry *found = table_slot(space->gpu, directory, level, index);

	if (!found->valid || found->directory != directory || found->index != index)
		return false;
	memcpy(entry, found->entry, sizeof(found->entry));
	return true;
}

void model_tlb_fill_table(struct model_space *space, int level, u64 address, const u64 entry[2])
{
	u64 directory = model_directory_key(space->directory);
	u64 index = address >> space->gpu->arch->shift[level];
	struct model_pde_entry *place = table_slot(space->gpu, directory, level, index);

	place->directory = directory;
	place->index = index;
	memcpy(place->entry, entry, sizeof(place->entry));
	place->valid = true;
}

static void invalidate_tables(struct model_gpu *gpu, u64 directory, bool all, u64 address, u64 size, int level)
{
	u8 shift = gpu->arch->shift[level];
	int i;

	for (i = 0; i < MODEL_PDE_ENTRIES; i++) {
		struct model_pde_entry *entry = &gpu->tlb->tables[level][i];

		if (entry->valid && entry->directory == directory &&
		    (all || (entry->index >= address >> shift && entry->index <= (address + size - 1) >> shift)))
			entry->valid = false;
	}
}

/* levels: how many levels of directories go too, counted from the deepest. */
void model_tlb_invalidate(struct model_gpu *gpu, u64 directory, bool all, u64 address, u64 size, u32 levels)
{
	int i;

	gpu->status.invalidates++;
	if (READ_ONCE(model_settings.skip_invalidate))
		return;
	for (i = 0; i < MODEL_TLB_ENTRIES; i++) {
		struct model_tlb_entry *entry = &gpu->tlb->pages[i];

		if (entry->valid && entry->directory == directory &&
		    (all || (entry->page >= address >> 12 && entry->page <= (address + size - 1) >> 12)))
			entry->valid = false;
	}
	for (i = 0; i < levels && i < gpu->arch->levels; i++)
		invalidate_tables(gpu, directory, all, address, size, gpu->arch->levels - 1 - i);
}
