# SPDX-License-Identifier: Apache-2.0
"""Results that stand in no table and that nobody else names. The newest of their measurement; each says what it is."""

OTHERS = (
    "software-gpu/soak-agent-killed",
    "h100/core-dump-culprit", "h100/demo-parked", "h200/demo", "h100/every-step", "h100/export", "h100/guard-pytorch",
    "h100/guard-words", "h100/launches", "h100/launches-compiled", "h100/launches-llama-model",
    "h100/launches-llama-operations", "h100/llama-answers", "h100/llama-faults", "h100/llama-faults-2",
    "h200/more-kinds", "h100/old-actives", "h100/parking-killed", "h100/parking-second-3", "h100/parking-rates",
    "h100/parking-rates-2", "h100/spare-rates", "h100/spare-rates-2", "h200/parking-beside-large",
    "h200/parking-beside-sanitizer", "h200/never-begins-rule", "h200/never-begins-assert-rule", "h100/report",
    "h100/small-standby-torch", "h100/torch-binding", "h100/spare-dead", "h100/spare-dump", "h100/spare-probe",
    "h100/spare-faults-2", "h100/spare-cost-allocations", "h200/llm-server-2", "h200/instance-held",
    "h200/core-dump-api-mps", "h200/driver-imports", "h200/redo-share", "h200/torn-kernels", "h200/untrue-words",
    "h200/containment", "h200/foreign-clients", "h200/two-users",
    "h100/xid-names-another-domain", "software-gpu/flood-16", "qemu/classes-newest", "qemu/classes-turing",
    "qemu/mutants-turing", "qemu/schedules", "qemu/failing-595", "qemu/kcsan-595", "qemu/kcsan-595-6.12",
)
