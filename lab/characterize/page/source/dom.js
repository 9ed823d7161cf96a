// SPDX-License-Identifier: Apache-2.0

/// An element with attributes and children; text is never read as markup.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.flat());
  return made;
}

/// What is wider than a narrow screen scrolls by itself there; a keyboard reaches it, too.
const scrolling = (wide) => element("div", { class: "scrolls", tabindex: "0" }, wide);

export function table(heads, rows, attributes = {}) {
  const head = element("thead", {}, element("tr", {}, heads.map((text) => element("th", { scope: "col" }, text))));
  return scrolling(element("table", attributes, head, element("tbody", {}, rows)));
}

export const row = (cells, attributes = {}) =>
  element("tr", attributes, cells.map((cell) => (cell instanceof Element && cell.matches("th, td") ? cell : element("td", {}, cell))));

/// The head stays with what leads to the first figure, and with that.
export function section(title, explanation, ...children) {
  const opening = children.findIndex((child) => child.matches("figure")) + 1;
  const head = [element("h2", {}, title), element("p", { class: "explanation" }, explanation)];
  return element("section", {}, element("div", { class: "head" }, head, children.slice(0, opening)), ...children.slice(opening));
}

/// A drawing with its title, and below it a sentence that reads one thing out of it; kept on one page of paper.
export const figure = (title, drawing, reading, attributes) =>
  element("figure", attributes, element("figcaption", {}, title), scrolling(drawing), element("p", { class: "reading" }, reading));

/// A legend of coloured squares: [{label, color}, …].
export const legend = (entries) =>
  element("p", { class: "legend" }, entries.map(({ label, color }) =>
    element("span", {}, element("i", { style: `background:${color}` }), label)));
