// SPDX-License-Identifier: Apache-2.0
// What the keys of a result are called for people, and which colour each has everywhere on the page.

export const classes = {
  mmu_replayable: "MMU, replayable",
  mmu_non_replayable: "MMU, non-replayable",
  sm: "SM exception",
  termination: "Termination",
  device: "Device",
  unknown: "Unknown class",
};

export const roles = {
  faulter: "faulter",
  co_client: "co-client, same domain",
  other_domain: "client of another domain",
  outside: "client without MPS",
};

// From the earliest to the latest on real hardware; the colours differ in brightness too, for paper and for
// eyes that tell few hues apart.
export const sources = {
  uvm_event: { label: "UVM event", color: "#b3402e" },
  uvm_isolation: { label: "UVM isolation", color: "#8a5a44" },
  process_exit: { label: "process exit", color: "#3d3d3d" },
  xid: { label: "Xid line", color: "#1f5fa8" },
  mps_log: { label: "MPS log", color: "#2a8f6d" },
  nvml: { label: "NVML event", color: "#63a6dc" },
  core_dump: { label: "core dump", color: "#c2649a" },
  progress: { label: "progress", color: "#9a7b16" },
  cuda_error: { label: "CUDA error, faulter", color: "#e08a1e" },
  cuda_error_co_client: { label: "CUDA error, co-client", color: "#7c4d9f" },
  operator: { label: "operator", color: "#888888" },
};

export const afterwards = {
  co_client: { label: "co-client stalls", color: "#7c4d9f" },
  other_domain: { label: "another domain stalls", color: "#2a8f6d" },
  outside: { label: "without MPS stalls", color: "#1f5fa8" },
  served: { label: "new client served", color: "#e08a1e" },
};

export const verdicts = {
  right: { label: "right", color: "#5d9c70" },
  unknown: { label: "nobody named", color: "#d9d4c5" },
  wrong: { label: "wrong", color: "#b3402e" },
  nothing: { label: "no incident", color: "#f1f1f1" },
};

/// "CUDA_ERROR_ILLEGAL_ADDRESS" → "illegal address"; "signal 9" stays.
export function shortFate(fate) {
  return fate.startsWith("CUDA_ERROR_") ? fate.slice(11).replaceAll("_", " ").toLowerCase() : fate;
}

export const sourceLabel = (key) => sources[key]?.label ?? key;

/// Milliseconds with three digits that count.
export function ms(value) {
  if (value === null || value === undefined) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

/// "a", "a and b", "a, b and c".
export const listed = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

/// [["illegal address", 9], ["lives", 1]], the most frequent first.
export function byFrequency(counts) {
  return Object.entries(counts ?? {}).sort((a, b) => b[1] - a[1]);
}

/// "illegal address"; "9 × illegal address, 1 × lives" where runs differ.
export function countedWords(counts, name = (key) => key) {
  const entries = byFrequency(counts);
  if (entries.length === 0) return "–";
  if (entries.length === 1) return name(entries[0][0]);
  return entries.map(([key, count]) => `${count} × ${name(key)}`).join(", ");
}

/// The kinds that ran, class by class: [["sm", [kind, …]], …].
export function kindsByClass(report) {
  const groups = new Map();
  for (const kind of report.summary.kinds) {
    if (kind.runs === 0) continue;
    if (!groups.has(kind.class)) groups.set(kind.class, []);
    groups.get(kind.class).push(kind);
  }
  return [...groups];
}
