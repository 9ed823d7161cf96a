// SPDX-License-Identifier: Apache-2.0
// The life of one fault of each class: launch, who detects it, who is told, who stands still, and the new start.
import * as Plot from "@observablehq/plot";
import { figure, legend, section } from "./dom.js";
import { deaths, placed, reading, restartLabel, signalRows, stallLabels } from "./life_labels.js";
import { classes, roles } from "./words.js";

const colors = { running: "#cfe3d4", stalled: "#f2b866", waiting: "#dcd3cd", starting: "#bcd3ec" };
const newClient = "new client, same domain";

/// What a process did until it died or the drawing ends.
function processParts(role, participant, end) {
  const row = roles[role];
  const died = participant.error_ms ?? participant.end_ms;
  const until = died ?? end;
  const stall = participant.longest_stall;
  if (role === "faulter") {
    return [
      { row, from: null, to: 0, state: "running" },
      { row, from: 0, to: until, state: "waiting" },
    ];
  }
  if (!stall) return [{ row, from: null, to: until, state: "running" }];
  return [
    { row, from: null, to: stall.from_ms, state: "running" },
    { row, from: stall.from_ms, to: stall.to_ms, state: "stalled" },
    { row, from: stall.to_ms, to: Math.max(until, stall.to_ms), state: "running" },
  ];
}

/// Past the bars and their labels, in pixels.
const size = { width: 860, left: 170, right: 190 };

function drawing(run) {
  const { first, later } = signalRows(run);
  const restart = run.restart.served_ms === null ? [] : [{ row: newClient, from: run.restart.asked_ms, to: run.restart.served_ms, state: "starting" }];
  const dead = deaths(run);
  const stalls = stallLabels(run);
  const served = restartLabel(run, newClient);
  const times = [...first, ...later, ...dead, ...stalls, served].map(({ ms: at }) => at);
  const end = Math.max(...times, 1) * 1.06;
  const begin = -end * 0.03;
  const bars = Object.keys(roles)
    .filter((role) => run.participants[role])
    .flatMap((role) => processParts(role, run.participants[role], end))
    .concat(restart)
    .map((part) => ({ ...part, from: Math.max(part.from ?? begin, begin) }));
  const rows = [...first.map(({ row }) => row), ...Object.values(roles), newClient];
  const pixels = (at) => ((at - begin) / (end - begin)) * (size.width - size.left - size.right);
  const labels = [...first.map((one) => placed(one, later, pixels, size)), ...dead, ...stalls, served];
  const label = { x: "ms", y: "row", text: "label", fill: "#222" };
  return Plot.plot({
    width: size.width,
    height: rows.length * 23 + 42,
    marginLeft: size.left,
    marginRight: size.right,
    marginTop: 8,
    marginBottom: 34,
    x: { domain: [begin, end], label: "milliseconds after the faulting launch", labelAnchor: "center", labelArrow: "none", grid: true, ticks: 8 },
    y: { domain: rows, label: null, tickSize: 0, padding: 0.35 },
    style: { fontSize: "12px" },
    marks: [
      Plot.barX(bars, { x1: "from", x2: "to", y: "row", fill: ({ state }) => colors[state] }),
      Plot.ruleX([0], { stroke: "#222", strokeDasharray: "3 2" }),
      Plot.dot(later, { x: "ms", y: "row", r: 3.5, stroke: "color", fill: "white" }),
      Plot.dot(first, { x: "ms", y: "row", r: 5, fill: "color" }),
      Plot.dot(dead, { x: "ms", y: "row", r: 5, symbol: "times", stroke: "#b3402e", strokeWidth: 2.5 }),
      Plot.text(labels.filter(({ side }) => side !== "left"), { ...label, dx: 9, textAnchor: "start" }),
      Plot.text(labels.filter(({ side }) => side === "left"), { ...label, dx: -9, textAnchor: "end" }),
    ],
  });
}

export function lives(report) {
  const figures = Object.keys(classes)
    .filter((key) => report.lives[key])
    .map((key) => figure(`${classes[key]}: ${report.lives[key].kind}, one typical run`, drawing(report.lives[key]), reading(report.lives[key]), { "data-life": key }));
  return section(
    "The life of one fault",
    "One typical run of each class, the one of median length. A filled dot is the first word of a source, an empty one a later word of the same; a cross is the end of a process. " +
      "The new client is started when the fault has done its work, and its bar is mostly its own start.",
    legend([
      { label: "its kernels run", color: colors.running },
      { label: "its GPU stands still", color: colors.stalled },
      { label: "the faulter waits for an answer", color: colors.waiting },
      { label: "a new client starts", color: colors.starting },
    ]),
    ...figures,
  );
}
