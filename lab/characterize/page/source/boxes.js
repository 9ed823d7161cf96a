// SPDX-License-Identifier: Apache-2.0
// Box plots: how long after the launch each source spoke, how long survivors stood still, when a new client was served.
import * as Plot from "@observablehq/plot";
import { figure, legend, section } from "./dom.js";
import { afterwards, classes, kindsByClass, listed, ms, sources } from "./words.js";

/// A logarithmic axis has no zero; nothing here is that quick.
const least = 0.01;
/// A drawing this tall has its axis above as well as below.
const manyKinds = 8;

function drawing(kinds, values, styles, { domain, title }) {
  const used = Object.keys(styles).filter((key) => values.some((value) => value.key === key));
  const rowHeight = 7;
  const axes = kinds.length > manyKinds ? ["top", "bottom"] : ["bottom"];
  const height = kinds.length * (used.length * rowHeight + 7) + 38 + (axes.length > 1 ? 24 : 6);
  return Plot.plot({
    width: 860,
    height,
    marginLeft: 190,
    marginRight: 24,
    marginTop: axes.length > 1 ? 24 : 6,
    marginBottom: 38,
    x: { type: "log", domain, grid: true, ticks: powers(domain), axis: null },
    y: { domain: used, axis: null, padding: 0.12 },
    fy: { domain: kinds.map(({ kind }) => kind), label: null, axis: "left", padding: 0.16, tickSize: 0 },
    style: { fontSize: "12px" },
    marks: [
      ...axes.map((anchor) => Plot.axisX({
        anchor, label: anchor === "bottom" ? title : null, labelAnchor: "center", labelArrow: "none", ticks: powers(domain), tickFormat: (d) => `${d}`,
      })),
      Plot.frame({ stroke: "#e4e4e4" }),
      Plot.boxX(values, {
        x: "ms", y: "key", fy: "kind", r: 1.5, strokeWidth: 2,
        fill: ({ key }) => styles[key].color, stroke: ({ key }) => styles[key].color, fillOpacity: 0.45,
      }),
    ],
  });
}

/// 1, 10, 100, … within the domain.
function powers([from, to]) {
  const ticks = [];
  for (let power = Math.round(Math.log10(from)); power <= Math.round(Math.log10(to)); power += 1) ticks.push(Number(`1e${power}`));
  return ticks;
}

/// [{kind, key, ms}] of what `pick` finds in a kind: {key: {values}}.
function valuesOf(kinds, pick) {
  return kinds.flatMap((kind) =>
    Object.entries(pick(kind)).flatMap(([key, spread]) =>
      (spread?.values ?? []).map((value) => ({ kind: kind.kind, key, ms: Math.max(value, least) }))));
}

const signalTimes = (kind) => kind.signal_ms;
const timesAfterwards = (kind) => ({ ...kind.stall_ms, ...(kind.served_ms ? { served: kind.served_ms } : {}) });

const sourceWords = Object.fromEntries(Object.entries(sources).map(([key, { label }]) => [key, `${label} after`]));
const afterwardsWords = {
  co_client: "the co-client stood still for",
  other_domain: "the client of another domain stood still for",
  outside: "the one without MPS for",
  served: "a new client was served after",
};

function domainOf(values) {
  const all = values.map(({ ms }) => ms);
  const power = (exponent) => Number(`1e${exponent}`);
  return [power(Math.floor(Math.log10(Math.min(...all)))), power(Math.ceil(Math.log10(Math.max(...all) * 1.02)))];
}

/// The medians of the first kind, in the order of their times.
function reading({ kind, ...rest }, pick, words) {
  const medians = Object.entries(pick({ kind, ...rest })).filter(([key]) => words[key]).sort((a, b) => a[1].p50 - b[1].p50);
  return `First row, ${kind}: in the median ${listed(medians.map(([key, { p50 }]) => `${words[key]} ${ms(p50)} ms`))}.`;
}

function boxes(report, { pick, styles, words, title, tag }) {
  const groups = kindsByClass(report);
  const everything = valuesOf(groups.flatMap(([, kinds]) => kinds), pick).filter(({ key }) => styles[key]);
  if (everything.length === 0) return [];
  const domain = domainOf(everything);
  const used = Object.keys(styles).filter((key) => everything.some((value) => value.key === key));
  const figures = groups.flatMap(([key, kinds]) => {
    const values = valuesOf(kinds, pick).filter((value) => styles[value.key]);
    const shown = kinds.filter(({ kind }) => values.some((value) => value.kind === kind));
    return shown.length === 0 ? [] : [figure(classes[key] ?? key, drawing(shown, values, styles, { domain, title }), reading(shown[0], pick, words), { [`data-${tag}`]: key })];
  });
  return [legend(used.map((key) => styles[key])), ...figures];
}

export function signalBoxes(report) {
  return section(
    "When each source says so",
    "From the faulting launch to the first word of each source. A box holds the middle half of the runs, its line is the median, the whiskers reach to the last value within one and a half box lengths; what lies beyond is a dot.",
    ...boxes(report, { pick: signalTimes, styles: sources, words: sourceWords, title: "milliseconds from the launch (logarithmic)", tag: "signals" }),
  );
}

export function afterwardsBoxes(report) {
  return section(
    "What survivors feel, and when the domain is of use again",
    "The longest time without a finished kernel around the fault, for each victim that lived; and the first kernel of a new client in the faulter's domain, after the launch of the fault, its own start included.",
    ...boxes(report, { pick: timesAfterwards, styles: afterwards, words: afterwardsWords, title: "milliseconds (logarithmic)", tag: "afterwards" }),
  );
}
