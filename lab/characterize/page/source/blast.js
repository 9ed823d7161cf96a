// SPDX-License-Identifier: Apache-2.0
// The blast radius: whom a fault of each kind takes along.
import * as Plot from "@observablehq/plot";
import { figure, legend, section } from "./dom.js";
import { byFrequency, classes, kindsByClass, listed, roles, shortFate } from "./words.js";

const colors = { lives: "#dcebdf", sometimes: "#f6d08f", dies: "#dd8a78" };

function cell(kind, role) {
  const fates = byFrequency(kind.fates[role]);
  const lived = kind.fates[role]?.lives ?? 0;
  const state = lived === kind.runs ? "lives" : lived === 0 ? "dies" : "sometimes";
  const [fate, count] = fates[0] ?? ["–", 0];
  const share = fates.length > 1 ? `${count}/${kind.runs} ` : "";
  return { kind: kind.kind, role: roles[role], state, text: share + shortFate(fate) };
}

function drawing(kinds) {
  const cells = kinds.flatMap((kind) => Object.keys(roles).map((role) => cell(kind, role)));
  return Plot.plot({
    width: 860,
    height: kinds.length * 21 + 26,
    marginLeft: 190,
    marginRight: 4,
    marginTop: 24,
    marginBottom: 2,
    x: { domain: Object.values(roles), axis: "top", label: null, tickSize: 0 },
    y: { domain: kinds.map(({ kind }) => kind), label: null, tickSize: 0, round: false },
    style: { fontSize: "12px" },
    marks: [
      Plot.cell(cells, { x: "role", y: "kind", fill: ({ state }) => colors[state], inset: 1 }),
      Plot.text(cells, { x: "role", y: "kind", text: "text", fill: "#222" }),
    ],
  });
}

/// Whom how many kinds of a class take along.
function reading(kinds) {
  const reaches = (role) => kinds.filter((kind) => cell(kind, role).state !== "lives").length;
  const all = kinds.length === 1 ? "The one kind" : `Of ${kinds.length} kinds`;
  return `${all} here, ${listed(Object.keys(roles).map((role) => `${reaches(role) || "none"} ended the ${roles[role].split(",")[0]}`))}.`;
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
    ...kindsByClass(report).map(([key, kinds]) => figure(classes[key] ?? key, drawing(kinds), reading(kinds), { "data-blast": key })),
  );
}
