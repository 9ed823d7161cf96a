// SPDX-License-Identifier: Apache-2.0
// The blast radius: whom a fault of each kind takes along.
import * as Plot from "@observablehq/plot";
import { figure, legend, section } from "./dom.js";
import { byFrequency, classes, kindsByClass, roles, shortFate } from "./words.js";

const colors = { lives: "#dcebdf", sometimes: "#f6d08f", dies: "#dd8a78" };

function cell(kind, role) {
  const fates = byFrequency(kind.fates[role]);
  const lived = kind.fates[role]?.lives ?? 0;
  const state = lived === kind.runs ? "lives" : lived === 0 ? "dies" : "sometimes";
  const [fate, count] = fates[0] ?? ["–", 0];
  const share = fates.length > 1 ? `${count}/${kind.runs} ` : "";
  return { kind: kind.kind, role: roles[role], state, text: share + shortFate(fate) };
}

function drawing(kinds, isFirst) {
  const cells = kinds.flatMap((kind) => Object.keys(roles).map((role) => cell(kind, role)));
  return Plot.plot({
    width: 860,
    height: kinds.length * 21 + (isFirst ? 26 : 4),
    marginLeft: 190,
    marginRight: 4,
    marginTop: isFirst ? 24 : 2,
    marginBottom: 2,
    x: { domain: Object.values(roles), axis: isFirst ? "top" : null, label: null, tickSize: 0 },
    y: { domain: kinds.map(({ kind }) => kind), label: null, tickSize: 0 },
    style: { fontSize: "12px" },
    marks: [
      Plot.cell(cells, { x: "role", y: "kind", fill: ({ state }) => colors[state], inset: 1 }),
      Plot.text(cells, { x: "role", y: "kind", text: "text", fill: "#222" }),
    ],
  });
}

export function blastRadius(report) {
  return section(
    "Blast radius",
    "What became of each process. Runs that differed show the most frequent end and how often it came.",
    legend([
      { label: "lives", color: colors.lives },
      { label: "dies in some runs", color: colors.sometimes },
      { label: "dies", color: colors.dies },
    ]),
    ...kindsByClass(report).map(([key, kinds], index) => figure(classes[key] ?? key, drawing(kinds, index === 0), { "data-blast": key })),
  );
}
