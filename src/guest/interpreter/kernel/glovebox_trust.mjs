// SPDX-License-Identifier: Apache-2.0
// Certificate authorities that this sandbox trusts beside the usual ones. Node.js reads the variable that names their file when it
// starts, which was before the machine was frozen.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { process } from "./glovebox_globals.mjs";

const require = createRequire(import.meta.url);
const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
let trusted = process.env.NODE_EXTRA_CA_CERTS;

// After the environment has changed. What cannot be read is trusted as little as before.
export function followTrust() {
    const file = process.env.NODE_EXTRA_CA_CERTS;
    if (!file && file === trusted) return; // the usual case: TLS is not even loaded
    trusted = file;
    try {
        const tls = require("node:tls");
        const extra = file ? (readFileSync(file, "utf8").match(certificate) ?? []) : [];
        tls.setDefaultCACertificates([...tls.getCACertificates("bundled"), ...extra]);
    } catch (error) {
        process.stderr.write(`NODE_EXTRA_CA_CERTS is not used: ${error.message}\n`);
    }
}
