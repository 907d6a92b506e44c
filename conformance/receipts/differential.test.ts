import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { compareVerifiers } from './compareVerifiers.ts'
import { ownCommand, pythonCommand } from './startVerifier.ts'

const COUNT = 200
const indices = Array.from({ length: COUNT }, (_, index) => index)

const isInstalled =
  existsSync('/usr/bin/python3') &&
  spawnSync('/usr/bin/python3', ['-c', 'import cryptography, Cryptodome.Hash.keccak']).status === 0

if (isInstalled) {
  test('the Python verifier agrees with ours on changed receipts', async () => {
    const differences: object[] = []
    const { outcomes, unchecked } = await compareVerifiers({
      commands: [ownCommand, pythonCommand],
      seed: 1,
      indices,
      onDifference: ({ index, answers }) => differences.push({ index, answers }),
    })
    expect(differences).toEqual([])
    expect(unchecked).toBe(0)
    expect(outcomes.size).toBeGreaterThan(15)
  })
} else {
  console.log('skipped the Python verifier: python3-cryptography or python3-pycryptodome is missing')
}

test('finds a verifier that is wrong about one receipt, and draws the same receipts again', async () => {
  const wrong = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id } = JSON.parse(line)
    console.log(JSON.stringify({ id, ...(id === 3 ? { verdict: 'verified', steps: {} } : { error: 'x' }) }))
  })`
  const right = wrong.replace('id === 3', 'false')
  const found: { index: number; request: object }[] = []
  for (let turn = 0; turn < 2; turn++) {
    await compareVerifiers({
      commands: [right, wrong].map((text) => [process.execPath, '-e', text]) as [string[], string[]],
      seed: 1,
      indices: indices.slice(0, 5),
      onDifference: ({ index, request }) => found.push({ index, request }),
    })
  }
  expect(found.map(({ index }) => index)).toEqual([3, 3])
  expect(found[0]).toEqual(found[1])
})
