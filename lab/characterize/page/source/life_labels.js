// SPDX-License-Identifier: Apache-2.0
// What stands beside the bars and dots of one fault's life, and the sentence below.
import { listed, ms, roles, shortFate, sourceLabel, sources } from "./words.js";

/// Of the drawing's type, on the safe side.
const pixelsPerLetter = 6.8;
/// Dots closer than this to a label's beginning push it on.
const near = 14;

/// One mark a source: its first signal with a label, the later ones without.
export function signalRows(run) {
  const first = new Map();
  const later = [];
  for (const signal of run.signals) {
    const at = { row: sourceLabel(signal.source), ms: signal.after_ms, color: sources[signal.source]?.color ?? "#000" };
    if (first.has(at.row)) later.push(at);
    else first.set(at.row, { ...at, label: `${ms(at.ms)} ms  ${signal.kind.replace(/^MPS log: /, "")}` });
  }
  return { first: [...first.values()], later };
}

const cut = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(letters - 1, 0)).trimEnd()}…` : text);

/// The label of a row's first dot: behind the dots that follow at once, or left of it where there is more room;
/// what still has none is cut.
export function placed(first, later, pixels, { width, left }) {
  const others = later.filter(({ row }) => row === first.row).map(({ ms: at }) => at).sort((a, b) => a - b);
  let anchor = first.ms;
  for (const at of others) {
    if (pixels(at) - pixels(anchor) < near) anchor = at;
  }
  const next = others.find((at) => at > anchor);
  const rightEnd = next === undefined ? width - left : pixels(next) - near;
  const roomRight = Math.floor((rightEnd - pixels(anchor) - near) / pixelsPerLetter);
  const roomLeft = Math.floor((pixels(first.ms) - near) / pixelsPerLetter);
  const goesRight = roomRight >= first.label.length || roomRight >= roomLeft;
  const label = cut(first.label, Math.max(roomRight, roomLeft));
  return goesRight ? { ...first, ms: anchor, label } : { ...first, label, side: "left" };
}

export function deaths(run) {
  return Object.entries(run.participants).flatMap(([role, participant]) => {
    const at = participant.error_ms ?? participant.end_ms;
    if (at === null || at === undefined) return [];
    return [{ row: roles[role], ms: at, label: `${ms(at)} ms  ${shortFate(participant.error || participant.end)}` }];
  });
}

const lived = ({ error, end }) => !error && !end;

/// A stall stands beside its own bar.
export const stallLabels = (run) =>
  Object.entries(run.participants).flatMap(([role, participant]) => {
    const stall = participant.longest_stall;
    return stall && lived(participant) ? [{ row: roles[role], ms: stall.to_ms, label: `stood still for ${ms(stall.to_ms - stall.from_ms)} ms` }] : [];
  });

export function restartLabel({ restart }, row) {
  return restart.served_ms === null ? { row, ms: 0, label: "none was served" } : { row, ms: restart.served_ms, label: `served after ${ms(restart.served_ms)} ms` };
}

/// The sentence below: who knew first, when the faulter did, and who was held up.
export function reading(run) {
  const [first] = run.signals;
  const { faulter, ...victims } = run.participants;
  const parts = [first ? `${sourceLabel(first.source)} first, ${ms(first.after_ms)} ms after the launch` : "nobody saw anything"];
  const known = faulter.error_ms ?? faulter.end_ms;
  if (known !== null) parts.push(`the faulter's ${faulter.error ? "error" : "end"} after ${ms(known)} ms`);
  const survivors = Object.entries(victims).filter(([, victim]) => lived(victim));
  const dead = Object.entries(victims).filter(([, victim]) => !lived(victim));
  const short = ([role]) => `the ${roles[role].split(",")[0]}`;
  if (dead.length > 0) parts.push(`${listed(dead.map(short))} died with it`);
  const stalls = survivors.flatMap(([, { longest_stall: stall }]) => (stall ? [stall.to_ms - stall.from_ms] : []));
  if (stalls.length > 0) parts.push(`who lived (${listed(survivors.map(short))}) stood still for ${ms(Math.max(...stalls))} ms at most`);
  return `Here: ${parts.join("; ")}.`;
}
