// SPDX-License-Identifier: Apache-2.0
// From results/h100/demo.json: who is alive before and after one tenant's fault. `npm ci && npm run plots` here.
import { readFileSync, writeFileSync } from "node:fs";
import * as Plot from "@observablehq/plot";
import { JSDOM } from "jsdom";

const from = new URL("../../results/h100/demo.json", import.meta.url);
const to = new URL("../lanes.svg", import.meta.url);
const demo = JSON.parse(readFileSync(from, "utf8"));
const play = demo.plays.find(({ fault }) => fault === "misaligned-load");
const lanes = { 2: "stock MPS", 3: "Firebreak" };
const rows = { rogue: "the culprit", decode: "an LLM", denoise: "a diffusion model" };
const first_ms = -500;
const last_ms = 2100;

// One bar for each process: waiting until it serves, serving until it ends or is replaced.
const bars = play.acts.slice(1).flatMap((act) => {
  const ms = (at_ns) => (at_ns - act.rogue.launched_at_ns) / 1e6;
  return act.processes.map(({ tenant, role, started_at_ns, ended_at_ns, exit }) => {
    const takeover = act.act === 3 && play.recoveries.find((each) => each.tenant === tenant);
    const row = { lane: lanes[act.act], row: rows[tenant], who: role === "standby" ? "standby" : tenant === "rogue" ? "culprit" : "active" };
    const start = Math.max(ms(started_at_ns), first_ms);
    if (role === "standby") return { ...row, waits_from: start, start: takeover.fault_to_first_kernel_ms, end: ms(ended_at_ns), finished: exit.status === 0 };
    return { ...row, start, end: takeover ? 0 : ms(ended_at_ns), finished: exit.status === 0 };
  });
});
const died = bars.filter(({ finished, who, lane }) => !finished && (lane === lanes[2] || who === "culprit"));
const done = bars.filter(({ finished }) => finished);
const color = { domain: ["culprit", "active", "standby"], range: ["#c0392b", "#6b8fb5", "#2f6f4f"] };

const plot = Plot.plot({
  document: new JSDOM("").window.document,
  width: 760,
  height: 270,
  marginLeft: 120,
  marginRight: 90,
  marginBottom: 42,
  style: "background: white; font: 12px sans-serif",
  x: { domain: [first_ms, last_ms], label: "ms after the culprit's faulting kernel was launched", labelAnchor: "center", labelOffset: 36 },
  y: { domain: Object.values(rows), label: null, padding: 0.35 },
  fy: { domain: Object.values(lanes), label: null, padding: 0.12 },
  color,
  marks: [
    Plot.frame({ stroke: "#ddd" }),
    Plot.ruleX([0], { stroke: "#c0392b", strokeDasharray: "3,3" }),
    Plot.ruleY(bars.filter((bar) => bar.waits_from !== undefined), { fy: "lane", y: "row", x1: "waits_from", x2: "start", stroke: "who", strokeWidth: 2, strokeDasharray: "2,3" }),
    Plot.barX(bars, { fy: "lane", y: "row", x1: "start", x2: "end", fill: "who" }),
    Plot.text(died, { fy: "lane", y: "row", x: "end", text: () => "✕ ended", dx: 6, textAnchor: "start", fill: "#c0392b" }),
    Plot.text(done, { fy: "lane", y: "row", x: (bar) => bar.start + 40, text: () => "standby goes on; the output is identical to the byte", textAnchor: "start", fill: "white", fontSize: 11 }),
  ],
});
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="760" height="300" viewBox="0 0 760 300" font-family="sans-serif" font-size="12">
<rect width="760" height="300" fill="white"/>${plot.outerHTML}
<text x="120" y="290" fill="#666">misaligned load on ${demo.device}, driver ${demo.driver}, ${demo.date}, ${demo.commit}</text></svg>\n`;
writeFileSync(to, svg);
