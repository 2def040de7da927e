// SPDX-License-Identifier: Apache-2.0
// Certificate authorities of the sandbox, named after the kernel has started.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel, server, folder;

before(async () => {
    folder = mkdtempSync("/tmp/js-trust-");
    execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost", "-keyout", `${folder}/key`, "-out", `${folder}/certificate`], { stdio: "ignore" });
    server = https.createServer({ key: readFileSync(`${folder}/key`), cert: readFileSync(`${folder}/certificate`) },
        (_request, response) => response.end("hello"));
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    kernel = await Kernel.start();
});
after(async () => {
    await kernel.stop();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
});

const fetched = async () =>
    (await kernel.run(`await fetch('https://localhost:${server.address().port}/', { headers: { connection: 'close' } })
        .then((answer) => answer.text(), (error) => error.cause.code)`)).result["text/plain"].slice(1, -1);
const environment = (env) => kernel.ask("enter_generation", { reseed: false, env });

test("the sandbox's authority is trusted from the moment it is named, and no longer", async () => {
    assert.equal(await fetched(), "DEPTH_ZERO_SELF_SIGNED_CERT");
    await environment({ NODE_EXTRA_CA_CERTS: `${folder}/certificate` });
    assert.equal(await fetched(), "hello");
    await environment({});
    assert.equal(await fetched(), "DEPTH_ZERO_SELF_SIGNED_CERT");
});

test("a file that is not there is said and changes nothing else", async () => {
    assert.deepEqual((await environment({ NODE_EXTRA_CA_CERTS: `${folder}/none` })).content, { status: "ok" });
    assert.equal(await fetched(), "DEPTH_ZERO_SELF_SIGNED_CERT");
});
