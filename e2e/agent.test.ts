import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runExample } from '../examples/agent/runExample.ts'
import { startDevStack } from './startDevStack.ts'

test('examples/agent pays an x402 server until its budget ends, and each proof is verified', async () => {
  const stack = await startDevStack({ hasLog: true })
  try {
    const proofs = await runExample(stack.webUrl)
    expect(proofs.map(({ conclusion }) => conclusion)).toEqual(['accepted', 'accepted', 'accepted'])
    expect(proofs.at(-1)?.opening?.content).toMatchObject({ budget: { items: [{ before: '60000', after: '90000' }] } })
  } finally {
    await stack.stop()
  }
})

test('the agent has at most 20 lines of code without imports', () => {
  const lines = readFileSync(new URL('../examples/agent/agent.ts', import.meta.url), 'utf8').split('\n')
  const code = lines.filter((line) => !/^(import |\s*(\/\/|\/\*\*|$))/.test(line))
  expect(code.length).toBeLessThanOrEqual(20)
})
