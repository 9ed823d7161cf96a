// SPDX-License-Identifier: Apache-2.0
// Manifests on standard input: each is to be one that Kubernetes' own schema takes. Prints them as JSON, one a line.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseAllDocuments } from "yaml";

const require = createRequire(import.meta.url);
let failed = false;
for (const document of parseAllDocuments(readFileSync(0, "utf8"))) {
  const manifest = document.toJS();
  if (manifest === null) continue;
  try {
    if (document.errors.length > 0) throw document.errors[0];
    const models = require(`kubernetes-models/${manifest.apiVersion}`);
    new models[manifest.kind](manifest).validate();
    console.log(JSON.stringify(manifest));
  } catch (error) {
    console.error(`${manifest.apiVersion} ${manifest.kind}: ${error.message}`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
