import { expect, test } from 'vitest'
import type { InspectedProof } from '../store/inspect.ts'
import { explain } from './explain.ts'

const NOW = 1_800_000_000_000
const proof: InspectedProof = {
  slug: 'AAAAAAAAAAAAAAAAAAAAAA',
  status: 'pending_pin',
  createdAt: NOW - 90_000,
  pinAttempts: 0,
  failure: null,
  ipfsCid: null,
  publication: undefined,
}
const publication = { nonce: 7, status: 'pending', transactions: ['0xaa', '0xbb'] as const }

test.each<[Partial<InspectedProof>, RegExp]>([
  [{}, /waits 90 s for its first pin; is a worker running\?/],
  [{ pinAttempts: 3, failure: 'pin_refused' }, /3 times in 90 s: .*IPFS_API_TOKEN/],
  [{ pinAttempts: 3, failure: 'something new' }, /something new/],
  [{ status: 'pin_failed', pinAttempts: 12, failure: 'pin_unavailable' }, /12 attempts.*receipt AAAA/],
  [{ status: 'pending_onchain', createdAt: NOW - 7_200_000, ipfsCid: 'bafk' }, /pinned, and waits 2 h/],
  [{ status: 'pending_onchain', ipfsCid: 'bafk', publication }, /nonce 7 \(pending\), 2 signed, the last 0xbb/],
  [{ status: 'onchain_failed', ipfsCid: 'bafk', failure: 'publish_cancelled' }, /nonce was used up.*bafk/],
  [{ status: 'complete', createdAt: NOW - 600_000 }, /complete, 10 min old/],
])('%o: %s', (changes, sentence) => {
  expect(explain({ ...proof, ...changes }, NOW)).toMatch(sentence)
})
