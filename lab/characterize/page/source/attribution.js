// SPDX-License-Identifier: Apache-2.0
// Whether the process that caused the fault was named.
import * as Plot from "@observablehq/plot";
import { element, figure, legend, row, section, table } from "./dom.js";
import { classes, kindsByClass, verdicts } from "./words.js";

function countsOf(kinds) {
  const counts = Object.fromEntries(Object.keys(verdicts).map((verdict) => [verdict, 0]));
  for (const kind of kinds) {
    for (const [verdict, count] of Object.entries(kind.attribution)) counts[verdict] += count;
  }
  return counts;
}

function drawing(groups) {
  const bars = groups.flatMap(([key, kinds]) => {
    const counts = countsOf(kinds);
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    return Object.keys(verdicts).map((verdict) => ({ class: classes[key] ?? key, verdict, share: counts[verdict] / total }));
  });
  return Plot.plot({
    width: 860,
    height: groups.length * 26 + 44,
    marginLeft: 190,
    marginRight: 20,
    marginBottom: 36,
    x: { label: "share of the runs", percent: true, labelAnchor: "center", labelArrow: "none", tickFormat: (d) => `${d} %` },
    y: { domain: groups.map(([key]) => classes[key] ?? key), label: null, tickSize: 0 },
    style: { fontSize: "12px" },
    marks: [
      Plot.barX(bars, Plot.stackX({ x: "share", y: "class", fill: ({ verdict }) => verdicts[verdict].color, order: null, inset: 0.5 })),
      Plot.ruleX([0]),
    ],
  });
}

function reading(groups) {
  const { right, unknown, wrong } = countsOf(groups.flatMap(([, kinds]) => kinds));
  return `The longer the green, the more runs named the process that raised the fault: ${right} of ${right + unknown + wrong} with an incident; ${wrong} named somebody else, and red should not be there at all.`;
}

export function attribution(report) {
  const groups = kindsByClass(report);
  const rows = groups.map(([key, kinds]) => {
    const counts = countsOf(kinds);
    const numbers = Object.keys(verdicts).map((verdict) => element("td", { class: "number" }, String(counts[verdict])));
    return row([classes[key] ?? key, ...numbers]);
  });
  const heads = ["class", ...Object.values(verdicts).map(({ label }) => label)];
  return section(
    "The culprit",
    "The signals of a fault are merged into one incident, which names a process only where the evidence is good enough. Its answer, held against the process that did raise the fault.",
    table(heads, rows, { class: "counts" }),
    legend(Object.values(verdicts)),
    figure("By class", drawing(groups), reading(groups), { "data-attribution": "" }),
  );
}
