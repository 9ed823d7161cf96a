// SPDX-License-Identifier: Apache-2.0
// From results/h100/recovery.json: how long clients wait for their next token after a fault. `npm ci && npm run plots` here.
import { readFileSync, writeFileSync } from "node:fs";
import * as Plot from "@observablehq/plot";
import { JSDOM } from "jsdom";

const from = new URL("../../results/h100/recovery.json", import.meta.url);
const to = new URL("../recovery.svg", import.meta.url);
const ways = { cold: "cold restart", reattach: "re-attach to the vault", asleep: "asleep, copied back", standby: "standby" };
const colors = { range: ["#9aa3ad", "#6b8fb5", "#d0a24c", "#c0392b"], domain: Object.values(ways) };

const { runs, machine } = JSON.parse(readFileSync(from, "utf8"));
const waits = runs.flatMap(({ size, faults }) =>
  faults.map((each) => ({
    size,
    way: ways[each.mode],
    fault: each.fault,
    first_ms: each.first_new_token_ms,
    last_ms: each.last_clients_first_new_token_ms,
  }))
);

const plot = Plot.plot({
  document: new JSDOM("").window.document,
  width: 760,
  height: 425,
  marginLeft: 90,
  marginRight: 80,
  marginBottom: 50,
  style: "background: white; font: 12px sans-serif",
  x: { type: "log", labelAnchor: "center", labelOffset: 42, label: "ms from the fault to the first new token; the line's end: every client is served again", grid: true, domain: [10, 10000], tickFormat: "~s" },
  y: { label: null },
  fy: { label: null, domain: ["kill", "trap", "misaligned"] },
  color: { ...colors, legend: false },
  marks: [
    Plot.frame({ stroke: "#ddd" }),
    Plot.ruleY(waits, { fy: "fault", y: "size", x1: "first_ms", x2: "last_ms", stroke: "way", strokeWidth: 3 }),
    Plot.dot(waits, { fy: "fault", y: "size", x: "first_ms", fill: "way", r: 4 }),
  ],
});
const legend = Object.values(ways)
  .map((way, n) => `<circle cx="${105 + n * 160}" cy="438" r="5" fill="${colors.range[n]}"/><text x="${115 + n * 160}" y="442">${way}</text>`)
  .join("");
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="760" height="475" viewBox="0 0 760 475" font-family="sans-serif" font-size="12">
<rect width="760" height="475" fill="white"/>${plot.outerHTML}${legend}
<text x="105" y="465" fill="#666">${machine.gpu}, driver ${machine.driver}, ${machine.date}, ${machine.commit}</text></svg>\n`;
writeFileSync(to, svg);
