// SPDX-License-Identifier: Apache-2.0
import { comparison } from "./against.js";
import { attribution } from "./attribution.js";
import { blastRadius } from "./blast.js";
import { afterwardsBoxes, signalBoxes } from "./boxes.js";
import { element, row, section, table } from "./dom.js";
import { lives } from "./life.js";
import { taxonomy } from "./taxonomy.js";

/// The few figures that somebody in a hurry needs.
function headline(report) {
  const ran = report.summary.kinds.filter(({ runs }) => runs > 0);
  const sum = (pick) => ran.reduce((total, kind) => total + (pick(kind) ?? 0), 0);
  const figures = [
    [ran.length, "kinds of fault"],
    [sum(({ runs }) => runs), "runs"],
    [ran.filter((kind) => kind.as_expected).length, "kinds as expected"],
    [sum(({ attribution: counts }) => counts.right), "culprits named"],
    [sum(({ attribution: counts }) => counts.wrong), "wrong culprits"],
  ];
  return element("ul", { class: "headline" }, figures.map(([number, words]) =>
    element("li", {}, element("strong", {}, String(number)), words)));
}

function origin(report) {
  const { gpu, driver, linux, commit, date } = report.machine;
  const facts = [
    ["GPU", gpu], ["driver", driver || "–"], ["Linux", linux], ["Firebreak", commit], ["date", date],
    ["command", report.command],
  ];
  const cautions = [];
  if (gpu.includes("Software")) cautions.push("Made on the software GPU: its delays are a table's, and nothing here is evidence about hardware.");
  if (report.softgpu_speed !== 1) cautions.push(`Its delays were divided by ${report.softgpu_speed}: so are the times below.`);
  if (!report.finished) cautions.push("Unfinished: not every kind has run as often as it was to.");
  return element("header", {},
    element("h1", {}, "Firebreak: every fault, characterized"),
    element("dl", {}, facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    ...cautions.map((caution) => element("p", { class: "caution" }, caution)),
    headline(report));
}

/// What was not as expected, and what did not run.
function surprises(report) {
  const lines = report.summary.kinds.flatMap((kind) => [
    ...Object.entries(kind.mismatches).map(([line, count]) => [kind.kind, line, `${count} of ${kind.runs}`]),
    ...(kind.problems > 0 ? [[kind.kind, `did not get to the end: ${kind.last_problem}`, String(kind.problems)]] : []),
    ...(kind.refused ? [[kind.kind, `refused: ${kind.refused}`, "–"]] : []),
  ]);
  if (lines.length === 0) return section("Otherwise than expected", "Nothing: every kind did what the catalogue expects of it.");
  return section("Otherwise than expected", "Where runs differ from the catalogue's expectation, and what did not run.",
    table(["kind", "what", "runs"], lines.map(([kind, what, runs]) =>
      row([element("td", { class: "source" }, element("strong", {}, kind)), what, element("td", { class: "source" }, runs)]))));
}

const report = JSON.parse(document.getElementById("results").textContent);
document.getElementById("report").append(
  origin(report), taxonomy(report), lives(report), blastRadius(report), signalBoxes(report), afterwardsBoxes(report),
  attribution(report), ...comparison(report), surprises(report));
