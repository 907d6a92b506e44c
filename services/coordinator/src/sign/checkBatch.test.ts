import { randomBytes } from 'node:crypto'
import { createVerifier, parseQuote, vendorRoots } from '@countersign/attestation'
import { createSimulator, simulatedRoots } from '@countersign/attestation/simulator'
import {
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  hashTree,
  type SignedBatch,
  toHex,
} from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigningEnclave } from '../../test/signingEnclave.ts'
import { alice, createGrant, createTransfer, NOW } from '../../test/signService.ts'
import { checkBatch, hashLeaves, type SigningTimes } from './checkBatch.ts'
import { toSignItem } from './contents.ts'
import type { EnclavePolicy } from './enclave/keyEnclave.ts'

const DAY_MS = 86_400_000
const simulator = createSimulator({ at: new Date(NOW) })
const collateral = simulator.collateral()
const verifier = createVerifier({ roots: simulatedRoots() })

const createEnclave = () =>
  createSigningEnclave({ clock: { now: () => NOW }, coordinatorKey: 'c0'.repeat(32), wallets: [alice] })
const createItem = (nonce: number) =>
  toSignItem(createTransfer(nonce), { sample: createGrant().witness, receiptVersion: 1 })

describe('checkBatch', () => {
  type Input = { batch: SignedBatch; config: EnclaveConfig; policy: EnclavePolicy; at: SigningTimes }

  async function check(
    change: (input: Input) => Partial<Input> = () => ({}),
    { quote = {}, roots }: { quote?: Parameters<typeof simulator.quote>[0] | object; roots?: typeof vendorRoots } = {},
  ) {
    const enclave = createEnclave()
    enclave.quote = quote
    const { batches, config } = await enclave.signItems([createItem(0), createItem(1)])
    const input: Input = { batch: batches[0] as SignedBatch, config, policy: {}, at: { first: NOW, last: NOW } }
    const { batch, policy, at, ...changed } = { ...input, ...change(input) }
    return checkBatch(
      { verifier: roots === undefined ? verifier : createVerifier({ roots }), policy, at },
      { batch, config: changed.config, collateral },
    )
  }

  test('returns mode, status and measurement of a valid quote', async () => {
    expect(await check()).toEqual({
      mode: 'mock',
      tcbStatus: 'UpToDate',
      measurement: {
        mrTd: expect.stringMatching(/^[0-9a-f]{96}$/),
        rtmr0: expect.any(String),
        rtmr1: expect.any(String),
        rtmr2: expect.any(String),
        rtmr3: expect.any(String),
      },
      quote: expect.any(Uint8Array),
    })
  })

  test.each([0, 1, 4096])('removes %i trailing zero bytes of a quote', async (length) => {
    const { quote } = await check(undefined, { quote: { trailing: new Uint8Array(length) } })
    expect(parseQuote(new Uint8Array(quote)).trailing).toHaveLength(0)
    expect(toHex(quote)).toBe(toHex((await check()).quote))
  })

  test('accepts a configuration of the policy', async () => {
    const configHashes = [toHex(hashEnclaveConfig(createEnclave().config))]
    await expect(check(() => ({ policy: { configHashes } }))).resolves.toBeDefined()
  })

  const withBatch = (changes: Partial<SignedBatch>) => (input: Input) => ({ batch: { ...input.batch, ...changes } })
  test.each<[string, (input: Input) => Partial<Input>]>([
    ['another leaf', ({ batch }) => ({ batch: { ...batch, leaves: ['00'.repeat(32), ...batch.leaves.slice(1)] } })],
    ['a leaf more', ({ batch }) => ({ batch: { ...batch, leaves: [...batch.leaves, '00'.repeat(32)] } })],
    ['leaves in another order', ({ batch }) => ({ batch: { ...batch, leaves: batch.leaves.toReversed() } })],
    ['no leaves', withBatch({ leaves: [] })],
    ['another boot', withBatch({ bootId: '00'.repeat(16) })],
    ['another number', withBatch({ sequence: 1 })],
    ['another batch before', withBatch({ previous: '11'.repeat(32) })],
    ['a leaf that is no hex', withBatch({ leaves: ['x'] })],
    ['no quote', withBatch({ quote: '00' })],
    ['an invalid event log', withBatch({ eventLog: '{}' })],
    ['another configuration than quoted', ({ config }) => ({ config: { ...config, version: '9' } })],
    ['an invalid configuration', ({ config }) => ({ config: { ...config, version: 1 as never } })],
    ['a configuration outside the policy', () => ({ policy: { configHashes: ['00'.repeat(32)] } })],
    ['code outside the policy', () => ({ policy: { measurements: [{ mrTd: '00'.repeat(48) }] } })],
    ['a platform outside the policy', () => ({ policy: { platforms: [{ fmspc: '000000000000' }] } })],
    ['an event that the policy asks for', () => ({ policy: { events: { 'compose-hash': ['00'] } } })],
    ['collateral below the floor', () => ({ policy: { minimumTcbEvaluationDataNumber: 1_000_000 } })],
    ['a policy with an empty list', () => ({ policy: { measurements: [] } })],
  ])('%s: attestation_invalid', async (_, change) => {
    await expect(check(change)).rejects.toMatchObject({ code: 'attestation_invalid' })
  })

  test.each<[string, object]>([
    ['a debug TD', { tdAttributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) }],
    ['an old platform', { status: 'OutOfDate' }],
    ['a revoked platform', { status: 'Revoked' }],
    ['a signature of a stray key', { faults: { quoteWrongSigner: true } }],
    ['a chain of another root', { faults: { pckForeignRoot: true } }],
    ['a bit changed after signing', { faults: { reportDataFlipped: true } }],
    ['bytes after it that are not zero', { trailing: Uint8Array.of(0, 0, 1) }],
    ['another platform than the collateral’s', { faults: { pckOtherFmspc: true } }],
  ])('a quote of %s: attestation_invalid', async (_, quote) => {
    await expect(check(undefined, { quote })).rejects.toMatchObject({ code: 'attestation_invalid' })
  })

  test('a mock quote does not verify under the hardware’s roots', async () => {
    await expect(check(undefined, { roots: vendorRoots })).rejects.toMatchObject({ code: 'attestation_invalid' })
  })

  test('one result covers all times that it is valid for', async () => {
    const times: number[] = []
    const counting: typeof verifier = {
      ...verifier,
      verifyQuote: (parameters) => {
        times.push(parameters.at.getTime())
        return verifier.verifyQuote(parameters)
      },
    }
    const enclave = createEnclave()
    const { batches, config } = await enclave.signItems([createItem(0)])
    const batch = batches[0] as SignedBatch
    const { notAfter } = (await verifier.verifyQuote({ quote: fromHex(batch.quote), collateral, at: new Date(NOW) }))
      .validity
    const checkUntil = (last: number) =>
      checkBatch({ verifier: counting, policy: {}, at: { first: NOW, last } }, { batch, config, collateral })
    await checkUntil(notAfter)
    expect(times).toEqual([NOW])
    await expect(checkUntil(notAfter + 1)).rejects.toMatchObject({ code: 'collateral_stale' })
    expect(times).toEqual([NOW, NOW, notAfter + 1])
  })

  test('returns collateral_stale for expired collateral', async () => {
    await expect(check(() => ({ at: { first: NOW, last: NOW + 60 * DAY_MS } }))).rejects.toMatchObject({
      code: 'collateral_stale',
    })
  })

  test('returns attestation_invalid for the quote of another batch', async () => {
    const enclave = createEnclave()
    enclave.limit = 1
    const { batches, config } = await enclave.signItems([createItem(0), createItem(1)])
    const [first, second] = batches as [SignedBatch, SignedBatch]
    const batch = { ...first, quote: second.quote }
    const at = { first: NOW, last: NOW }
    await expect(checkBatch({ verifier, policy: {}, at }, { batch, config, collateral })).rejects.toMatchObject({
      code: 'attestation_invalid',
      details: 'report_data_mismatch',
    })
  })
})

test.each([...Array.from({ length: 33 }, (_, index) => index + 1), 64, 255, 256])(
  'the tree of %i leaves is that of the protocol',
  (size) => {
    const leaves = Array.from({ length: size }, () => randomBytes(32))
    expect(hashLeaves(leaves.map(toHex))).toBe(toHex(hashTree(leaves)))
  },
)

test.each<[string, string[]]>([
  ['no leaves', []],
  ['a leaf that is no hex', ['11'.repeat(32), 'xx'.repeat(32)]],
  ['a leaf in upper case', ['AA'.repeat(32)]],
  ['a leaf that is too short', ['11'.repeat(32), '11'.repeat(31)]],
  ['a leaf that is too long', ['11'.repeat(33), '11'.repeat(32)]],
])('%s: attestation_invalid', (_, leaves) => {
  expect(() => hashLeaves(leaves)).toThrow(expect.objectContaining({ code: 'attestation_invalid' }))
})
