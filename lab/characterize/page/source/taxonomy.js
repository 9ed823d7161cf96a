// SPDX-License-Identifier: Apache-2.0
// The table of all kinds: what each is, what it does, and who says so first.
import { element, row, section, table } from "./dom.js";
import { byFrequency, classes, countedWords, kindsByClass, ms, shortFate, sourceLabel, verdicts } from "./words.js";

const heads = ["kind", "faulter sees", "co-client", "elsewhere", "Xids", "first seen by", "after, ms", "culprit", ""];

function elsewhere(kind) {
  const counts = {};
  for (const role of ["other_domain", "outside"]) {
    for (const [fate, count] of Object.entries(kind.fates[role] ?? {})) counts[fate] = (counts[fate] ?? 0) + count;
  }
  return countedWords(counts, shortFate);
}

function firstSight(kind) {
  const [source] = byFrequency(kind.first_seen_by)[0];
  const times = kind.signal_ms[source];
  return times ? ms(times.p50) : "–";
}

const culprit = (kind) => countedWords(kind.attribution, (verdict) => verdicts[verdict]?.label ?? verdict);

function kindRow(kind, summary) {
  const name = element("td", { class: "kind" }, element("strong", {}, kind.kind), element("small", {}, summary));
  const mark = kind.as_expected ? "✓" : "≠";
  return row(
    [
      name,
      countedWords(kind.fates.faulter, (fate) => (fate === "lives" ? "no error" : shortFate(fate))),
      countedWords(kind.fates.co_client, shortFate),
      elsewhere(kind),
      countedWords(kind.xids),
      countedWords(kind.first_seen_by, sourceLabel),
      element("td", { class: "number" }, firstSight(kind)),
      culprit(kind),
      element("td", { class: kind.as_expected ? "as-expected" : "otherwise" }, mark),
    ],
    { "data-kind": kind.kind },
  );
}

export function taxonomy(report) {
  const summaries = new Map(report.expected.map((expected) => [expected.kind, expected.summary]));
  const rows = kindsByClass(report).flatMap(([key, kinds]) => [
    element("tr", { class: "class" }, element("th", { colspan: heads.length, scope: "rowgroup" }, classes[key] ?? key)),
    ...kinds.map((kind) => kindRow(kind, summaries.get(kind.kind) ?? "")),
  ]);
  return section(
    "Taxonomy",
    "Each kind of fault was raised in an MPS domain of its own, beside one innocent client there, one in a second domain and one without MPS. " +
      "What each saw, the Xids in the kernel log in their order, who knew first and after how many milliseconds (median), and whether the process that caused it was named. " +
      "✓: as the catalogue expects; ≠: otherwise, told at the end.",
    table(heads, rows, { class: "taxonomy" }),
  );
}
