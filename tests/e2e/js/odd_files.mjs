// SPDX-License-Identifier: Apache-2.0
// Reads files whose length is not what stat says, with e2b from npm: odd_files.mjs SANDBOX PATH…
import { createRequire } from 'node:module'
const require = createRequire(process.cwd() + '/')
const { Sandbox } = require('e2b')

const [id, ...paths] = process.argv.slice(2)
const sandbox = await Sandbox.connect(id)
for (const path of paths) {
  const text = await sandbox.files.read(path)
  const bytes = await sandbox.files.read(path, { format: 'bytes' })
  const packed = await sandbox.files.read(path, { gzip: true })
  let streamed = 0
  for await (const piece of await sandbox.files.read(path, { format: 'stream' })) streamed += piece.length
  for (const length of [text.length, bytes.length, packed.length, streamed])
    if (!length) throw new Error(`${path} came back empty`)
  console.log(JSON.stringify(text.slice(0, 1000)))
}
