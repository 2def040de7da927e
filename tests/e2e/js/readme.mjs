// SPDX-License-Identifier: Apache-2.0
// The README's example with @e2b/code-interpreter from npm.
import { createRequire } from 'node:module'
const require = createRequire(process.cwd() + '/')
const { Sandbox } = require('@e2b/code-interpreter')

const sandbox = await Sandbox.create()
try {
  await sandbox.runCode('x = 20')
  const execution = await sandbox.runCode('x + 22')
  const done = await sandbox.commands.run('echo from $USER')
  if (done.stdout !== 'from user\n') throw new Error(`unexpected output ${JSON.stringify(done.stdout)}`)
  await sandbox.files.write('/tmp/note', 'hello')
  if ((await sandbox.files.read('/tmp/note')) !== 'hello') throw new Error('the file did not come back')
  console.log(execution.text)
} finally {
  if (!(await sandbox.kill())) throw new Error('kill returned false')
}
if (await sandbox.isRunning()) throw new Error('still running after kill')
