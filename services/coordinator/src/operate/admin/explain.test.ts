import { expect, test } from 'vitest'
import type { InspectedProof } from '../../store/proofs.ts'
import type { InspectedWebhook } from '../../store/webhooks.ts'
import { explain, explainWebhook } from './explain.ts'

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
  [{}, /has waited 90 s for its first pin; is a worker running\?/],
  [{ pinAttempts: 3, failure: 'pin_refused' }, /3 failed pins in 90 s: .*IPFS_API_TOKEN/],
  [{ pinAttempts: 3, failure: 'something new' }, /something new/],
  [{ status: 'pin_failed', pinAttempts: 12, failure: 'pin_unavailable' }, /12 attempts.*receipt AAAA/],
  [
    { status: 'pin_failed', pinAttempts: 1, failure: 'receipt_too_large' },
    /1 attempts: .*no pinner or verifier accepts it$/,
  ],
  [{ status: 'pending_onchain', createdAt: NOW - 7_200_000, ipfsCid: 'bafk' }, /pinned, has waited 2 h/],
  [{ status: 'pending_onchain', ipfsCid: 'bafk', publication }, /nonce 7 \(pending\), 2 transaction\(s\), last 0xbb/],
  [{ status: 'onchain_failed', ipfsCid: 'bafk', failure: 'publish_cancelled' }, /was cancelled.*bafk/],
  [{ status: 'complete', createdAt: NOW - 600_000 }, /complete, 10 min old/],
])('%o: %s', (changes, sentence) => {
  expect(explain({ ...proof, ...changes }, NOW)).toMatch(sentence)
})

const webhook: InspectedWebhook = {
  id: 'msg_1',
  type: 'proof.complete',
  receiver: 'https://receiver.example',
  isActive: true,
  status: 'pending',
  attempts: 0,
  failure: null,
  createdAt: NOW - 90_000,
  dueAt: NOW + 30_000,
}

test.each<[Partial<InspectedWebhook>, RegExp]>([
  [{}, /^has waited 90 s for its first attempt; is a worker running\?$/],
  [{ isActive: false }, /the settings no longer list this receiver/],
  [{ attempts: 3, failure: 'status_500' }, /^3 failed attempts in 90 s, next in 30 s: status_500$/],
  [{ attempts: 3, failure: 'redirected' }, /set WEBHOOK_URL/],
  [{ status: 'dead', attempts: 40, failure: 'timed_out', dueAt: null }, /dead after 40 attempts.*--retry msg_1$/],
  [
    { status: 'dead', attempts: 40, failure: 'timed_out', dueAt: null, isActive: false },
    /dead.*the settings no longer list this receiver$/,
  ],
  [{ status: 'delivered', attempts: 1, dueAt: null }, /^delivered, 90 s old$/],
])('a webhook that is %o: %s', (changes, sentence) => {
  expect(explainWebhook({ ...webhook, ...changes }, NOW)).toMatch(sentence)
})
