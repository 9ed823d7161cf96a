/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the processes of one scene tell each other; in memory that they share. */
#ifndef PROOF_SCENE_H
#define PROOF_SCENE_H

#include <stdatomic.h>
#include "client.h"
#include "times.h"

#define SCENE_CLIENTS_MAX	4

/* What the faulter's ordinary faults are in, for their times. */
#define FAULTER_MEMORY		0x280000000UL
#define FAULTER_MEMORY_SIZE	(20 * 2 * PROOF_MIB)

enum outcome {
	OUTCOME_NONE,
	OUTCOME_FINISHED,	/* its programs ended with every value right */
	OUTCOME_KILLED,		/* its group was reset */
	OUTCOME_WRONG,		/* a value was not what it had to be */
};

enum failing {
	FAILING_WAITS,		/* until the others have opened what they fault with, however long a busy machine takes */
	FAILING_MAY_BEGIN,
	FAILING_NOW,
	FAILING_OVER,
};

struct part {
	atomic_int ready;
	atomic_int outcome;
	atomic_uint rounds;
	struct spread benign_ns;	/* of its faults, from an entry until the access went through; read once it is over */
	struct spread fatal_ns;
	atomic_ulong wrong;
	atomic_ulong as_it_should;	/* what the faulter looked at by itself, and found right */
};

struct scene {
	atomic_int go;
	atomic_int stop;
	uint32_t gpu;		/* of the faulting client */
	uint32_t seed;
	atomic_int failing;	/* enum failing: how far the client is the service of whose batches fails, again and again */
	struct part part[SCENE_CLIENTS_MAX];
};

/* What the faulting client does. Returns the program whose end is waited for, 0 for none. */
typedef uint32_t fault_function(struct client *client, struct scene *scene);

struct fault_class {
	const char *name;
	fault_function *fault;
	uint32_t faulters;
	bool kill;		/* the parent kills the client once its program runs */
	bool two_gpus;
	bool suspend;		/* the machine sleeps and wakes while the fault is under way */
	bool dies_asleep;	/* the machine sleeps when the client is killed: the process's end must not wait until it wakes */
	uint32_t asleep_ms;	/* or, not 0, once it is contained, and for so long */
	bool cpu_reads;		/* the innocents' CPUs read what their GPU programs work on, and so take the pages back */
	bool innocents_last;	/* they work once its fault is over: none of theirs is in the batch that fails */
	bool without_mm;	/* UVM cannot tell the clients apart by their mm */
	bool server;		/* root names its process as an MPS server */
	bool alone;		/* in a group of its own, which ends as ever */
	uint32_t test_fails;	/* 1: the module can make no sink. 2: it fails once its entries are written. 3: no channel can be cleared */
	void (*opened)(struct client *client);	/* in its process, once it has opened all and before anybody begins */
	bool gives_up;		/* the module makes no more sinks for this client, and goes on making them for others */
	bool mode_off;		/* it turns the module's mode off after its first fault */
	uint32_t looks;		/* at so many things by itself, all of which have to be right */
	uint32_t listed;	/* how many of its clients /proc has to list as condemned at some time */
	bool opt_in;		/* the module is for who is in a control group that root has named */
	bool self_test_fails;	/* the GPU gives another entry back than was written */
	bool report;		/* the module only says what it would do */
	const char *says;	/* what the kernel's log has to say of it */
	const char *counts;	/* a counter of the module that has to go up */
	const char *foresees;	/* another, of what mode 1 would have come to in mode 2 */
	bool to_the_end;	/* the neighbours work until nothing of it is left, not only until its process has ended */
	bool no_fault;		/* nobody faults: the stock module's neighbours live too */
	uint32_t deaths;	/* of processes of its besides, each of which has a grace time */
	bool no_grace;		/* it leaves in good order, so nothing is to be kept for it */
	void (*prepare)(void);	/* in the faulter's process, before it opens anything */
	bool as_ever;		/* nobody can tell whose fault it is: the patched module leaves it as it was */
	uint32_t test_delay_ms;	/* the patched module looks that much later for whom an error concerns */
	uint32_t short_grace_ms;	/* a grace time for which its program is too long; 0 for none such */
	uint32_t grace_ms;	/* to the end: its program runs longer than others on a busy machine; 0 for what the module has */
	uint32_t kill_delay_ms;	/* from the event to SIGKILL; 0 for what the module has */
	uint32_t max_table_kib;
	uint32_t max_graces;	/* grace times of one user's at once; 0 for what the module has */
	uint32_t max_repeats;	/* how often the module tries to help at one sink; 0 for what it has */
	uint32_t table_kib_at_most;	/* what they are to take, 0 for nothing to be looked at */
	uint32_t contained_at_most;	/* in how many faults it has to be over, 0 for any number */
	uint32_t contained_at_least;	/* how many faults: sinks reach no further than they may, and there is one */
	double ratio_at_most;	/* aim, 0 for none */
};

extern const struct fault_class fault_classes[];
extern const unsigned int fault_class_count;

void play_innocent(struct scene *scene, const struct fault_class *class, uint32_t number, uint32_t gpu);
void play_faulter(struct scene *scene, const struct fault_class *class, uint32_t number);

struct verdict {
	bool innocents_live;
	bool faulter_ended;
	bool values_right;
	bool clean;		/* nothing was left behind */
	uint64_t resets;
	uint64_t reported;
	uint64_t channel_errors;
	uint64_t deferred;	/* ends that the module has put off */
	uint64_t contained;	/* faults */
	uint64_t said;		/* how often the kernel's log has it more than before */
	uint64_t counted;	/* by how much the counter of the class went up */
	uint64_t foreseen;	/* the same of what it foresees */
	uint64_t as_it_should;	/* what the faulter looked at by itself, and found right */
	bool fell_back;		/* the module only reports now */
	uint64_t given_up;	/* clients for which it makes no more sinks */
	bool ended_asleep;	/* the killed process, before the machine woke */
	uint64_t stalls;	/* that the module counted */
	uint64_t longest_stall_us;	/* as the module says, since it was loaded */
	uint64_t listed;	/* the most clients that were listed as condemned at a time */
	uint64_t table_kib;	/* the most that its sinks' page tables took whenever somebody looked */
	uint64_t took_ms;	/* the whole scene */
	struct lock_times lock;
	struct spread benign_ns;
	struct spread fatal_ns;
	char left[160];
};

/* Waits until the model holds nothing of any client; text says what is left. */
bool left_nothing(bool two_gpus, char *text, size_t size);
struct verdict play(const struct fault_class *class, uint32_t seed);

#endif
