// SPDX-License-Identifier: Apache-2.0
// The code interpreter with @e2b/code-interpreter from npm: languages, contexts, callbacks and errors.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
const require = createRequire(process.cwd() + '/')
const { Sandbox } = require('@e2b/code-interpreter')

const sandbox = await Sandbox.create({ envs: { TEAM: 'red' } })
try {
  const seen = []
  const options = { onStdout: (m) => seen.push(['out', m.line, m.error]), onStderr: (m) => seen.push(['err', m.line, m.error]),
                    onResult: (r) => seen.push(['result', r.text]), onError: (e) => seen.push(['error', e.name]) }
  const first = await sandbox.runCode("import os, sys; print(os.environ['TEAM'], flush=True); print('e', file=sys.stderr); 20 + 22", options)
  assert.equal(first.text, '42')
  assert.equal(first.executionCount, 1)
  assert.deepEqual(seen.splice(0).sort(), [['err', 'e\n', true], ['out', 'red\n', false], ['result', '42']])
  const failed = await sandbox.runCode('null.x', { ...options, language: 'js' })
  assert.equal(failed.error.name, 'TypeError')
  assert.deepEqual(seen, [['error', 'TypeError']])

  const typed = await sandbox.runCode('const n: number = await Promise.resolve(41); n + 1', { language: 'ts' })
  assert.equal(typed.text, '42')
  const lent = await sandbox.runCode('echo $TEAM', { language: 'bash', envs: { TEAM: 'green' } })
  assert.deepEqual(lent.logs, { stdout: ['green\n'], stderr: [] })

  const context = await sandbox.createCodeContext({ language: 'bash', cwd: '/tmp' })
  assert.deepEqual((await sandbox.runCode('x=1; pwd', { context })).logs.stdout, ['/tmp\n'])
  assert.ok((await sandbox.listCodeContexts()).some((c) => c.id === context.id && c.cwd === '/tmp'))
  await sandbox.restartCodeContext(context)
  assert.deepEqual((await sandbox.runCode('echo ${x-gone}', { context })).logs.stdout, ['gone\n'])
  await sandbox.removeCodeContext(context)
  await assert.rejects(sandbox.runCode('1', { context }), /not found/)
  await assert.rejects(sandbox.runCode('1', { context, language: 'python' }), /not both/)

  await assert.rejects(sandbox.runCode('while True: pass', { timeoutMs: 2000 }), { name: 'TimeoutError' })
  assert.equal((await sandbox.runCode('1 + 1', { timeoutMs: 10000 })).text, '2')
} finally {
  await sandbox.kill()
}
console.log('all well')
process.exit() // timers of the client would keep Node.js for another minute
