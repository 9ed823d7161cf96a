/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The tracepoint nvidia_uvm:uvm_fault_isolation, one an event of the log. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvidia_uvm

#if !defined(__UVM_FAULT_ISOLATION_TRACE_H__) || defined(TRACE_HEADER_MULTI_READ)
#define __UVM_FAULT_ISOLATION_TRACE_H__

#include <linux/string.h>
#include <linux/tracepoint.h>

TRACE_EVENT(uvm_fault_isolation,
    TP_PROTO(int process_id, unsigned int gpu, unsigned long long address, const char *fault_class, const char *outcome,
             unsigned int duration_us),
    TP_ARGS(process_id, gpu, address, fault_class, outcome, duration_us),
    TP_STRUCT__entry(
        __field(int, process_id)
        __field(unsigned int, gpu)
        __field(unsigned long long, address)
        __array(char, fault_class, 16)
        __array(char, outcome, 16)
        __field(unsigned int, duration_us)
    ),
    TP_fast_assign(
        __entry->process_id = process_id;
        __entry->gpu = gpu;
        __entry->address = address;
        strscpy(__entry->fault_class, fault_class, sizeof(__entry->fault_class));
        strscpy(__entry->outcome, outcome, sizeof(__entry->outcome));
        __entry->duration_us = duration_us;
    ),
    TP_printk("pid=%d gpu=%u address=0x%llx class=%s outcome=%s us=%u",
              __entry->process_id, __entry->gpu, __entry->address, __entry->fault_class, __entry->outcome,
              __entry->duration_us)
);

#endif /* __UVM_FAULT_ISOLATION_TRACE_H__ */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE uvm_fault_isolation_trace
#include <trace/define_trace.h>
