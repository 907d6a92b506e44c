import type { LogEntry } from '@countersign/log'
import { expect, test } from 'vitest'
import { matchEntries } from './matchEntries.ts'

const keyId = '0a'.repeat(16)
const origin = 'log.example/enclave-a'

test('more entries without a receipt than a call may have arguments are all said', () => {
  const count = 150_000
  const boot: LogEntry = { kind: 'boot', bootId: 'b0'.repeat(16), configHash: 'c0'.repeat(32), timeMs: 0 }
  const signatures = Array.from({ length: count }, (_, at): [number, LogEntry] => [
    at + 1,
    { kind: 'signature', keyId, leaf: at.toString(16).padStart(64, '0'), timeMs: 1 },
  ])
  const log = {
    ...{ origin, note: '', size: count + 1, tiles: [], tail: [], keyIds: [keyId] },
    ...{ entries: new Map([[0, boot], ...signatures]), cosignedAt: new Date(0), ahead: new Map(), isStale: false },
  }
  const { findings } = matchEntries({
    ...{ logs: [log], isWhole: true, keyIds: new Set([keyId]), receipts: new Map(), unread: 0, mined: new Set() },
    isDue: () => true,
  })
  expect(findings).toHaveLength(count)
  expect(findings.at(-1)).toMatchObject({ kind: 'hidden', index: count })
})
