// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The event log: a ring of the last events, read as text from the control device. */
#include <linux/ktime.h>
#include <linux/kernel.h>
#include <linux/spinlock.h>
#include "model.h"

#define LOG_EVENTS	4096

struct log_event {
	u64 at_ns;
	const char *what;	/* a string literal */
	u64 value[3];
	u32 gpu;
};

static struct log_event events[LOG_EVENTS];
static u64 written;
static DEFINE_SPINLOCK(log_lock);

void model_log(struct model_gpu *gpu, const char *what, u64 a, u64 b, u64 c)
{
	struct log_event *event;
	unsigned long flags;

	spin_lock_irqsave(&log_lock, flags);
	event = &events[written++ % LOG_EVENTS];
	event->at_ns = ktime_get_ns();
	event->what = what;
	event->value[0] = a;
	event->value[1] = b;
	event->value[2] = c;
	event->gpu = gpu ? gpu->index : 0;
	spin_unlock_irqrestore(&log_lock, flags);
}

/* One event a call; *position counts events. Returns the length of its line, 0 where there is none yet. */
size_t model_log_read(char *text, size_t size, u64 *position)
{
	struct log_event event;
	unsigned long flags;

	spin_lock_irqsave(&log_lock, flags);
	if (*position + LOG_EVENTS < written)
		*position = written - LOG_EVENTS;
	if (*position >= written) {
		spin_unlock_irqrestore(&log_lock, flags);
		return 0;
	}
	event = events[(*position)++ % LOG_EVENTS];
	spin_unlock_irqrestore(&log_lock, flags);
	return scnprintf(text, size, "%llu gpu%u %s 0x%llx 0x%llx 0x%llx\n", event.at_ns, event.gpu, event.what,
			 event.value[0], event.value[1], event.value[2]);
}
