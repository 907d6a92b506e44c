import { expect, test } from 'vitest'
import { createRound } from '../test/beacon.ts'
import { permit } from '../test/typedData.ts'
import { createWitness } from '../test/witness.ts'
import { parseSignItemsRequest } from './parseRequest.ts'

const granted = { sid: '11'.repeat(32), grant: 'grant', keyId: '22'.repeat(16), witness: createWitness() }
const digest = `0x${'33'.repeat(32)}`
const transaction = { ...granted, kind: 'transaction', digest, txMetadata: {}, statementVersion: 1 }
const message = { ...granted, kind: 'message', content: { message: '0x00' } }
const typedData = { ...granted, kind: 'typed-data', content: permit }
const authorization = { ...granted, kind: 'authorization', authorization: {} }

test('items of every kind pass as they are, with the round of a beacon too', () => {
  const items = [transaction, { ...transaction, statementVersion: 2 }, message, typedData, authorization]
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
  ['no session', { ...message, sid: undefined }],
  ['a session of 31 bytes', { ...message, sid: '11'.repeat(31) }],
  ['a grant that is none', { ...typedData, grant: 1 }],
  ['a key id in upper case', { ...authorization, keyId: 'AA'.repeat(16) }],
  ['no sample', { ...message, witness: undefined }],
  ['a sample that is half a beacon’s', { ...message, witness: { ...createWitness(), kind: 'drand' } }],
  ['nothing', null],
  ['a list', [message]],
])('an item of the wrong shape is told apart, and does not fail the others: %s', (_, item) => {
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
