import { expect, test } from 'vitest'
import { createFakeClock } from '../../test/ports.ts'
import { toBlock } from './assembleReceipt.ts'
import { PinError } from './ipfs/pinError.ts'
import type { Block } from './ipfs/pinner.ts'
import { pinPolicy } from './pin.ts'

const HASH = 'ab'.repeat(32)
const bytes = new TextEncoder().encode('{"version":1}')

function setUp({ held = bytes, failure = undefined as Error | undefined } = {}) {
  const [pinned, completed]: [Block[], string[]] = [[], []]
  const deps = {
    store: {
      findPolicy: async (hash: string) => (hash === HASH ? bytes : undefined),
      completePolicy: async ({ hash }: { hash: string }) => void completed.push(hash),
    },
    pinner: {
      async pin(block: Block) {
        if (failure !== undefined) throw failure
        pinned.push(block)
      },
      read: async () => held,
    },
    clock: createFakeClock(),
  }
  return { run: (hash = HASH) => pinPolicy(deps, hash), pinned, completed }
}

test('pins a policy, reads it back and completes it', async () => {
  const { run, pinned, completed } = setUp()
  expect(await run()).toBe('pinned')
  expect([pinned, completed]).toEqual([[toBlock(bytes)], [HASH]])
})

test('skips a completed or unknown policy', async () => {
  const { run, pinned, completed } = setUp()
  expect(await run('cd'.repeat(32))).toBe('skipped')
  expect([pinned, completed]).toEqual([[], []])
})

test('does not complete a policy that cannot be pinned or returns other bytes', async () => {
  const lost = setUp({ failure: new PinError('pin_unavailable', {}) })
  await expect(lost.run()).rejects.toThrow(PinError)
  const changed = setUp({ held: new TextEncoder().encode('{"version":2}') })
  await expect(changed.run()).rejects.toEqual(expect.objectContaining({ code: 'pin_mismatch' }))
  expect([lost.completed, changed.completed]).toEqual([[], []])
})
