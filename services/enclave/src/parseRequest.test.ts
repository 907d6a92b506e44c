import { MAX_NOTE_SIGNATURES } from '@countersign/log'
import { logRequest, releaseRequest, vaultRequest } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createRound } from '../test/beacon.ts'
import { permit } from '../test/typedData.ts'
import { createWitness } from '../test/witness.ts'
import { parseRequest, parseSignItemsRequest } from './parseRequest.ts'

const withCode = (code: string) => expect.objectContaining({ name: 'EnclaveError', code })
const granted = { sid: '11'.repeat(32), grant: 'grant', keyId: '22'.repeat(16), witness: createWitness() }
const digest = `0x${'33'.repeat(32)}`
const transaction = { ...granted, kind: 'transaction', digest, txMetadata: {}, statementVersion: 1 }
const message = { ...granted, kind: 'message', content: { message: '0x00' } }
const typedData = { ...granted, kind: 'typed-data', content: permit }
const authorization = { ...granted, kind: 'authorization', authorization: {} }
const address = { ...granted, kind: 'address' }
const approval = {
  approver: 0,
  authenticatorData: '44'.repeat(37),
  clientDataJSON: '7b7d',
  signature: '55'.repeat(70),
  expiresMs: 1,
}
const vault = { policy: '66'.repeat(32), rule: 0, approvals: [approval] }
const stamp = { issuedMs: 1, signature: '77'.repeat(64) }

test('parses items of every kind unchanged, including a beacon’s round', () => {
  const items = [
    ...[transaction, { ...transaction, statementVersion: 2 }, message, typedData, authorization, address],
    ...[
      { ...transaction, statementVersion: 2, vault },
      { ...message, vault },
      { ...typedData, vault },
    ],
    ...[
      { ...message, vault: { policy: vault.policy, rule: 254 } },
      { ...message, stamp },
      { ...address, stamp },
      { ...address, vault: { policy: vault.policy } },
    ],
  ]
  expect(parseSignItemsRequest({ items })).toEqual({ items })
  const beacons = items.map((item) => ({ ...item, witness: createRound(Date.UTC(2026, 5, 15)) }))
  expect(parseSignItemsRequest({ items: beacons })).toEqual({ items: beacons })
})

test.each<[string, unknown]>([
  ['no kind', { ...transaction, kind: undefined }],
  ['a kind that every object has', { ...transaction, kind: 'toString' }],
  ['a bare hash', { ...granted, kind: 'digest', digest }],
  ['a kind that is a list', { ...transaction, kind: ['transaction'] }],
  ['a transaction without a version', { ...transaction, statementVersion: undefined }],
  ['a transaction of version 3', { ...transaction, statementVersion: 3 }],
  ['a transaction of version "2"', { ...transaction, statementVersion: '2' }],
  ['a transaction with a digest of 31 bytes', { ...transaction, digest: digest.slice(0, -2) }],
  ['a transaction with a content', { ...transaction, content: {} }],
  ['a message with a digest', { ...message, digest }],
  ['a message with a version', { ...message, statementVersion: 2 }],
  ['a message with more than itself', { ...message, content: { message: '0x00', digest } }],
  ['a message that is not inside', { ...message, content: '0x00' }],
  ['typed data with a digest', { ...typedData, digest }],
  ['typed data without content', { ...granted, kind: 'typed-data' }],
  ['an authorization with content', { ...authorization, content: {} }],
  ['an address with content', { ...address, content: {} }],
  ['an address with approvals', { ...address, vault }],
  ['a vault’s transaction of version 1', { ...transaction, vault }],
  ['a vault’s message without a rule', { ...message, vault: { policy: vault.policy } }],
  ['a vault’s transaction without a rule', { ...transaction, statementVersion: 2, vault: { policy: vault.policy } }],
  ['an address with a rule', { ...address, vault: { policy: vault.policy, rule: 0 } }],
  ['rule 255', { ...message, vault: { ...vault, rule: 255 } }],
  ['a rule that is text', { ...message, vault: { ...vault, rule: '0' } }],
  ['a stamp of 63 bytes', { ...message, stamp: { ...stamp, signature: '77'.repeat(63) } }],
  ['a stamp without a time', { ...message, stamp: { signature: stamp.signature } }],
  ['a stamp with more', { ...message, stamp: { ...stamp, key: '00' } }],
  ['a vault that is null', { ...message, vault: null }],
  ['a vault without a policy', { ...message, vault: { approvals: [approval] } }],
  ['a policy of 31 bytes', { ...message, vault: { policy: '66'.repeat(31) } }],
  ['a policy in upper case', { ...message, vault: { policy: 'AA'.repeat(32) } }],
  ['a policy itself', { ...message, vault: { policy: {} } }],
  ['a vault with more', { ...message, vault: { ...vault, address: digest } }],
  ['approvals that are no list', { ...message, vault: { ...vault, approvals: approval } }],
  ['approvals that are null', { ...message, vault: { ...vault, approvals: null } }],
  ['an approver twice', { ...message, vault: { ...vault, approvals: [approval, approval] } }],
  ['an approval with more', { ...message, vault: { ...vault, approvals: [{ ...approval, rpId: 'a' }] } }],
  ['an approval in base64', { ...message, vault: { ...vault, approvals: [{ ...approval, signature: 'zz' }] } }],
  ['no session', { ...message, sid: undefined }],
  ['a session of 31 bytes', { ...message, sid: '11'.repeat(31) }],
  ['an invalid grant', { ...typedData, grant: 1 }],
  ['a key id in upper case', { ...authorization, keyId: 'AA'.repeat(16) }],
  ['no sample', { ...message, witness: undefined }],
  ['a sample that is half a beacon’s', { ...message, witness: { ...createWitness(), kind: 'drand' } }],
  ['nothing', null],
  ['a list', [message]],
])('a malformed item fails alone: %s', (_, item) => {
  const json = JSON.parse(JSON.stringify({ items: [message, item] }))
  expect(parseSignItemsRequest(json)).toEqual({ items: [message, undefined] })
})

test.each([
  ['transaction', { ...transaction, txMetadata: 'DEEP' }],
  ['message', { ...message, content: { message: 'DEEP' } }],
  ['typed data', { ...typedData, content: { ...permit, message: 'DEEP' } }],
  ['authorization', { ...authorization, authorization: 'DEEP' }],
])('%s nested thousands deep is of the wrong shape: it could not be handed to the key worker', (_, item) => {
  const toItems = (depth: number) =>
    JSON.parse(JSON.stringify({ items: [item] }).replace('"DEEP"', '['.repeat(depth) + ']'.repeat(depth)))
  expect(parseSignItemsRequest(toItems(20)).items).not.toEqual([undefined])
  for (const depth of [25, 5_000, 100_000])
    expect(parseSignItemsRequest(toItems(depth))).toEqual({ items: [undefined] })
})

test('policies are texts, at most as many as items', () => {
  const items = [message, message]
  const policies = ['{}', 'é'.repeat(8_192)]
  expect(parseSignItemsRequest({ items, policies })).toEqual({ items, policies })
  const wrong = [null, '{}', {}, [1], [{}], ['', '', ''], ['a'.repeat(16_385)], ['é'.repeat(8_193)]]
  for (const one of wrong) {
    expect(() => parseSignItemsRequest({ items, policies: one })).toThrow(withCode('invalid_request'))
  }
})

test.each<[string, unknown]>([
  ['nothing', null],
  ['no policy', { sid: granted.sid, grant: 'grant' }],
  ['a policy that is no text', { sid: granted.sid, grant: 'grant', policy: {} }],
  ['an invalid grant', { sid: granted.sid, grant: 1, policy: '{}' }],
  ['a session of 31 bytes', { sid: '11'.repeat(31), grant: 'grant', policy: '{}' }],
  ['a vault that is not known', { sid: granted.sid, grant: 'grant', policy: '{}', isKnown: false }],
  ['an owner', { sid: granted.sid, grant: 'grant', policy: '{}', owner: '11'.repeat(32) }],
])('a vault is not derived from %s', (_, request) => {
  expect(() => parseRequest(vaultRequest, request)).toThrow(withCode('invalid_request'))
})

const hash = '77'.repeat(32)
const start = { origin: 'log.example/a', checkpoint: 'note', hashes: [hash] }

test('a log is started, repeated, or both', () => {
  for (const request of [{}, { from: 0 }, { start }, { start: { ...start, checkpoint: null, hashes: [] }, from: 5 }])
    expect(parseRequest(logRequest, request)).toEqual(request)
})

test.each<[string, unknown]>([
  ['nothing', null],
  ['a member that is unknown', { size: 1 }],
  ['half an index', { from: 0.5 }],
  ['an index below zero', { from: -1 }],
  ['an index in words', { from: '1' }],
  ['an invalid start', { start: null }],
  ['a start without a checkpoint', { start: { origin: 'a', hashes: [] } }],
  ['a start with more', { start: { ...start, size: 1 } }],
  ['an origin that is no text', { start: { ...start, origin: 1 } }],
  ['a checkpoint that is no text', { start: { ...start, checkpoint: {} } }],
  ['hashes that are no list', { start: { ...start, hashes: hash } }],
  ['a hash of 31 bytes', { start: { ...start, hashes: [hash.slice(2)] } }],
  ['more hashes than a tree has', { start: { ...start, hashes: Array(54).fill(hash) } }],
])('%s is no request to a log', (_, request) => {
  expect(() => parseRequest(logRequest, request)).toThrow(withCode('invalid_request'))
})

const bootId = '88'.repeat(16)

test('a release has leaves, and both or neither of checkpoint and cosignatures', () => {
  const leaves = Array.from({ length: 4_096 }, (_, at) => at.toString(16).padStart(64, '0'))
  for (const request of [
    { bootId },
    { bootId, drop: [hash], acknowledge: [] },
    { bootId, checkpoint: 'note', cosignatures: [], leaves, drop: leaves, acknowledge: leaves },
  ])
    expect(parseRequest(releaseRequest, request)).toEqual(request)
})

test.each<[string, unknown]>([
  ['nothing', null],
  ['no boot', { leaves: [] }],
  ['a boot of 15 bytes', { bootId: bootId.slice(2) }],
  ['a checkpoint without cosignatures', { bootId, checkpoint: 'note' }],
  ['cosignatures without a checkpoint', { bootId, cosignatures: [] }],
  ['a checkpoint that is no text', { bootId, checkpoint: 1, cosignatures: [] }],
  ['cosignatures that are one text', { bootId, checkpoint: 'note', cosignatures: 'line' }],
  ['a cosignature that is no text', { bootId, checkpoint: 'note', cosignatures: [1] }],
  [
    'more cosignatures than a note has',
    { bootId, checkpoint: 'note', cosignatures: Array(MAX_NOTE_SIGNATURES).fill('') },
  ],
  ['leaves that are no list', { bootId, leaves: hash }],
  ['a leaf of 31 bytes', { bootId, leaves: [hash.slice(2)] }],
  ['a leaf in upper case', { bootId, drop: ['AA'.repeat(32)] }],
  ['too many leaves', { bootId, acknowledge: Array(4_097).fill(hash) }],
  ['a leaf that is named twice', { bootId, leaves: [hash, hash] }],
  ['a member that is unknown', { bootId, all: true }],
])('%s is no release', (_, request) => {
  expect(() => parseRequest(releaseRequest, request)).toThrow(withCode('invalid_request'))
})
