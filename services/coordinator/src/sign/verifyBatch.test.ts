import { createVerifier } from '@countersign/attestation'
import { createEnclaveSettings, hashLeaf, type SignedBatch, toHex } from '@countersign/protocol'
import { assemble, canonicalBytes, checkReceipt, toCid } from '@countersign/receipt'
import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { expect, test } from 'vitest'
import { createFakeSelfReport } from '../../test/ports.ts'
import { createBatchVerifier, createReleaser } from './checkBatch.ts'
import { createPlatformReader } from './enclave/collateral/collateralStore.ts'

const signedAt = new Date('2026-06-15T12:00:00.000Z')
const simulator = createReceiptSimulator()
const { records, collateral, anchors, cid, bytes } = await simulator.issue({ signedAt })
const { roots, mockEntropyKeys } = simulator

/** The enclave's response, with bytes appended to its quote. */
function toBatch(trailing: string): SignedBatch {
  const { bootId, sequence, previous, quoteHex } = records.batch
  const leaves = [toHex(hashLeaf(records.statement))]
  return { bootId, sequence, previous, leaves, quote: `${quoteHex}${trailing}` }
}

function createTestVerifier() {
  const stored = { bytes: collateral, hash: '00'.repeat(32) }
  return createBatchVerifier({
    verifier: createVerifier({ roots }),
    policy: {},
    collateral: {
      current: async () => ({ ...stored, collateral: JSON.parse(new TextDecoder().decode(collateral)) }),
    },
    readPlatform: createPlatformReader(),
    releaser: createReleaser(createFakeSelfReport()),
  })
}

const terms = { config: records.batch.config, settings: createEnclaveSettings([{ kind: 'unsigned' }]) }
const use = { at: { first: signedAt.getTime(), last: signedAt.getTime() }, isReleased: false }

function verify(batch: SignedBatch) {
  return createTestVerifier()(batch, terms, use)
}

test('calls that share a quote share its verification, even with copies of the batch', async () => {
  const verifyBatch = createTestVerifier()
  const first = verifyBatch(toBatch(''), terms, use)
  expect(verifyBatch(toBatch(''), { ...terms }, { ...use, isReleased: true })).toBe(first)
  await first
  expect(verifyBatch(toBatch(''), terms, use)).toBe(first)
})

const batch = toBatch('')
test.each<[string, Parameters<ReturnType<typeof createTestVerifier>>]>([
  ['leaf', [{ ...batch, leaves: ['00'.repeat(32)] }, terms, use]],
  ['leaf more', [{ ...batch, leaves: [...batch.leaves, '00'.repeat(32)] }, terms, use]],
  ['quote', [toBatch('01'), terms, use]],
  ['event log', [{ ...batch, eventLog: '{}' }, terms, use]],
  ['boot', [{ ...batch, bootId: '00'.repeat(16) }, terms, use]],
  ['number', [{ ...batch, sequence: batch.sequence + 1 }, terms, use]],
  ['batch before', [{ ...batch, previous: '11'.repeat(32) }, terms, use]],
  ['configuration', [batch, { ...terms, config: { ...terms.config, version: '9' } }, use]],
  ['time', [batch, terms, { ...use, at: { ...use.at, last: use.at.last + 365 * 86_400_000 } }]],
])('verifies again for another %s, and does not remember a rejection', async (_, parameters) => {
  const verifyBatch = createTestVerifier()
  const good = await verifyBatch(batch, terms, use)
  const refused = verifyBatch(...parameters)
  await expect(refused).rejects.toMatchObject({
    code: expect.stringMatching(/^(attestation_invalid|collateral_stale)$/),
  })
  expect(verifyBatch(...parameters)).not.toBe(refused)
  await expect(verifyBatch(...parameters)).rejects.toThrow()
  expect(await verifyBatch(batch, terms, use)).toBe(good)
})

test('verifies again for another log', async () => {
  const verifyBatch = createTestVerifier()
  const [first, second] = await Promise.all(
    [undefined, 'log'].map((logKey) => verifyBatch(batch, terms, { ...use, logKey })),
  )
  expect([first?.logKey, second?.logKey]).toEqual([undefined, 'log'])
})

test.each([0, 1, 4096])('a quote with %i trailing zero bytes gives the same receipt, byte for byte', async (zeros) => {
  const { quote } = await verify(toBatch('00'.repeat(zeros)))
  const made = canonicalBytes(assemble({ ...records, batch: { ...records.batch, quoteHex: toHex(quote) } }))
  expect(toCid(made)).toBe(cid)
  expect(made).toEqual(bytes)
})

test.each(['01', '0001', '0100'])('rejects trailing bytes other than zero: %s', async (trailing) => {
  await expect(verify(toBatch(trailing))).rejects.toMatchObject({
    code: 'attestation_invalid',
    details: 'trailing_bytes',
  })
})

test('an earlier receipt with zeros after its quote verifies as before', async () => {
  const quoteHex = `${records.batch.quoteHex}${'00'.repeat(4096)}`
  const old = canonicalBytes(assemble({ ...records, batch: { ...records.batch, quoteHex } }))
  const check = await checkReceipt(old, collateral, { roots, mockEntropyKeys, anchors, cid: toCid(old) })
  expect(check).toMatchObject({ verdict: 'mock', isKnownCode: true })
  expect(toCid(old)).not.toBe(cid)
})
