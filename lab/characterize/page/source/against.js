// SPDX-License-Identifier: Apache-2.0
// Two results side by side.
import * as Plot from "@observablehq/plot";
import { element, figure, legend, row, section, table } from "./dom.js";
import { ms, shortFate } from "./words.js";

const before = { label: "before", color: "#8a8a8a" };
const after = { label: "after", color: "#b3402e" };
const mostDrawn = 40;

const machineWords = (machine) =>
  [machine.gpu, machine.driver && `driver ${machine.driver}`, machine.date, machine.commit].filter(Boolean).join(", ");

/// Every error in a list of names.
const fates = (text) => text.split(", ").map(shortFate).join(", ");

function drawing(pairs) {
  const rows = pairs.map((pair) => ({ ...pair, row: `${pair.kind} · ${pair.figure.replaceAll("_", " ")}` }));
  return Plot.plot({
    width: 860,
    height: rows.length * 18 + 46,
    marginLeft: 320,
    marginRight: 20,
    marginBottom: 38,
    x: { type: "log", label: "median, milliseconds (logarithmic)", labelAnchor: "center", labelArrow: "none", grid: true, tickFormat: (d) => `${d}` },
    y: { domain: rows.map(({ row: name }) => name), label: null, tickSize: 0 },
    style: { fontSize: "12px" },
    marks: [
      Plot.link(rows, { x1: "before_ms", x2: "after_ms", y1: "row", y2: "row", stroke: "#999" }),
      Plot.dot(rows, { x: "before_ms", y: "row", r: 4, stroke: before.color, fill: "white", strokeWidth: 2 }),
      Plot.dot(rows, { x: "after_ms", y: "row", r: 4, fill: after.color }),
    ],
  });
}

function changesTable({ changes, only_before: gone, only_after: added }) {
  const rows = changes.map(({ kind, what, before: then, after: now }) =>
    row([element("td", { class: "kind" }, element("strong", {}, kind)), what.replaceAll("_", " "), fates(then), fates(now)]));
  const only = [
    ...gone.map((kind) => row([kind, "only in the one before", "", ""])),
    ...added.map((kind) => row([kind, "only in the one after", "", ""])),
  ];
  if (rows.length + only.length === 0) return element("p", {}, "Nothing changed in the kinds that both have.");
  return table(["kind", "what", "before", "after"], [...rows, ...only], { class: "changes" });
}

const reading = ({ kind, figure: name, before_ms: then, after_ms: now }) =>
  `First row, which moved most: ${name.replaceAll("_", " ")} of ${kind} went from ${ms(then)} to ${ms(now)} ms.`;

/// Those whose ratio moved most.
function mostMoved(medians) {
  const moved = ({ before_ms: then, after_ms: now }) => Math.abs(Math.log(now / then));
  return medians
    .filter((pair) => pair.changed && pair.before_ms > 0 && pair.after_ms > 0)
    .sort((a, b) => moved(b) - moved(a))
    .slice(0, mostDrawn);
}

export function comparison(report) {
  if (!report.against) return [];
  const against = report.against;
  const moved = mostMoved(against.medians);
  const drawn = moved.length === 0 ? [] : [legend([before, after]), figure("Medians that moved by more than they spread", drawing(moved), reading(moved[0]), { "data-against": "" })];
  return [
    section(
      "Compared with another result",
      `Before: ${machineWords(against.before)}. After: ${machineWords(against.after)}.`,
      changesTable(against),
      ...drawn,
    ),
  ];
}
