// SPDX-License-Identifier: Apache-2.0
// node look_at_page.mjs NODE_MODULES_FOLDER PAGE: opens the page in a browser without a window, and prints as
// JSON what somebody would see of it. FIREBREAK_CHROMIUM names a browser that is not in PATH.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, page] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "package.json"))("playwright-core");

function browserPath() {
  if (process.env.FIREBREAK_CHROMIUM) return process.env.FIREBREAK_CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const paths = (process.env.PATH ?? "").split(delimiter).flatMap((folder) => names.map((name) => join(folder, name)));
  return paths.find(existsSync);
}

/// Runs inside the page.
function look() {
  const main = (document.querySelector("main") ?? document.body).getBoundingClientRect();
  const reachesOut = (thing) => {
    const { left, right } = thing.getBoundingClientRect();
    return left < main.left - 1 || right > main.right + 1;
  };
  const marksOf = (svg) => {
    const marks = {};
    for (const group of svg.querySelectorAll("g[aria-label]"))
      marks[group.getAttribute("aria-label")] = group.querySelectorAll("rect, path, circle, line, text").length;
    return marks;
  };
  return {
    title: document.title,
    sections: [...document.querySelectorAll("h2")].map((head) => head.textContent),
    kinds: [...document.querySelectorAll("table.taxonomy tr[data-kind]")].map((row) => row.dataset.kind),
    figures: [...document.querySelectorAll("figure")].map((figure) => ({
      of: Object.keys(figure.dataset)[0],
      reading: figure.querySelector(".reading")?.textContent ?? "",
      marks: marksOf(figure.querySelector("svg")),
    })),
    // Numbers that were none when they were drawn or written.
    broken: [...document.querySelectorAll("svg *")].filter((mark) => [...mark.attributes].some(({ value }) => value.includes("NaN"))).length,
    cut_off: [...document.querySelectorAll("td, th, p, svg text")].filter(reachesOut).map((thing) => thing.textContent),
  };
}

/// Runs inside the page, on a narrow screen: what does not fit there and cannot be scrolled to, and how small text is.
function lookNarrow() {
  const screen = document.documentElement.clientWidth;
  const scrollers = [...document.querySelectorAll("*")].filter((one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX));
  const reachesOut = ({ left, right }) => left < -1 || right > screen + 1;
  const isReachable = (thing) => scrollers.some((one) => one.contains(thing) && !reachesOut(one.getBoundingClientRect()));
  /// Beside or above what its scroller can show.
  const isCut = (thing) => {
    const scroller = scrollers.find((one) => one !== thing && one.contains(thing));
    if (!scroller) return false;
    const box = thing.getBoundingClientRect();
    const all = scroller.getBoundingClientRect();
    const left = box.left - all.left + scroller.scrollLeft;
    const top = box.top - all.top + scroller.scrollTop;
    return left < -1 || top < -1 || left + box.width > scroller.scrollWidth + 1 || top + box.height > scroller.scrollHeight + 1;
  };
  const texts = [...document.querySelectorAll("h1, h2, p, li, td, th, dt, dd, figcaption, pre, svg text")].filter(({ textContent }) => textContent.trim());
  return {
    screen,
    page: document.scrollingElement.scrollWidth,
    outside: [...document.body.querySelectorAll("*")]
      .filter((one) => reachesOut(one.getBoundingClientRect()) && !isReachable(one)).map((one) => `${one.tagName}: ${one.textContent.slice(0, 60)}`),
    cut: texts.filter(isCut).map(({ textContent }) => textContent.slice(0, 60)),
    too_small: [...document.querySelectorAll("svg text")].filter((one) => one.textContent.trim() && one.getBoundingClientRect().height < 8)
      .map(({ textContent }) => textContent),
  };
}

const executablePath = browserPath();
if (!executablePath) {
  console.error("no browser: install the package chromium (./dev test does), or set FIREBREAK_CHROMIUM");
  process.exit(1);
}
const asRoot = process.getuid() === 0;
const browser = await chromium.launch({ executablePath, args: asRoot ? ["--no-sandbox"] : [] });
try {
  const tab = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  const requests = [];
  const complaints = [];
  tab.on("request", (request) => requests.push(request.url()));
  tab.on("console", (message) => complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(String(error)));
  await tab.goto(pathToFileURL(resolve(page)).href, { waitUntil: "load" });
  const seen = await tab.evaluate(look);
  await tab.setViewportSize({ width: 390, height: 844 });
  const narrow = await tab.evaluate(lookNarrow);
  if (process.env.FIREBREAK_PICTURE) await tab.screenshot({ path: process.env.FIREBREAK_PICTURE, fullPage: true });
  const addresses = requests.filter((address) => !address.startsWith("data:"));
  console.log(JSON.stringify({ ...seen, narrow, requests: addresses, complaints }));
} finally {
  await browser.close();
}
