// SPDX-License-Identifier: Apache-2.0
// node build.mjs SOURCE_FOLDER OUT_FOLDER: report.js, with the licences of everything in it, and report.css.
// Runs where node_modules is; needs no network.
import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [sources, out] = process.argv.slice(2);

/// The packages that the bundle took files from.
function packagesOf(metafile) {
  const names = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) names.add(match[1]);
  }
  return [...names].sort();
}

function noticeOf(name) {
  const folder = join("node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file && !license) throw new Error(`${name} says nothing of its licence`);
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : license;
  return `${name} ${version} (${license})\n${text}`;
}

const bundle = await build({
  entryPoints: [join(resolve(sources), "main.js")],
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: "es2020",
  legalComments: "inline",
  metafile: true,
  write: false,
  // The sources lie elsewhere than node_modules.
  nodePaths: [resolve("node_modules")],
});
const notices = packagesOf(bundle.metafile).map(noticeOf).join("\n\n");
if (!existsSync(out)) throw new Error(`no folder ${out}`);
// "</script" and "*/" would end what they stand in.
const safe = (text) => text.replaceAll("</script", "<\\/script");
const banner = `/*!\nThis page holds code of these packages.\n\n${notices.replaceAll("*/", "* /")}\n*/\n`;
writeFileSync(join(out, "report.js"), safe(banner + bundle.outputFiles[0].text));
writeFileSync(join(out, "report.css"), readFileSync(join(sources, "style.css"), "utf8"));
