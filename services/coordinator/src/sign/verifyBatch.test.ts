import { createVerifier } from '@countersign/attestation'
import { createEnclaveSettings, hashLeaf, type SignedBatch, toHex } from '@countersign/protocol'
import { assemble, canonicalBytes, checkReceipt, toCid } from '@countersign/receipt'
import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { expect, test } from 'vitest'
import { createPlatformReader } from '../collateral/platformReader.ts'
import { createFakeSelfReport } from '../ports.fake.ts'
import { createReleaser } from './release.ts'
import { createBatchVerifier } from './verifyBatch.ts'

const signedAt = new Date('2026-06-15T12:00:00.000Z')
const simulator = createReceiptSimulator()
const { records, collateral, anchors, cid, bytes } = await simulator.issue({ signedAt })
const { roots, mockEntropyKeys } = simulator

/** What the enclave answers, with something after its quote. */
function toBatch(trailing: string): SignedBatch {
  const { bootId, sequence, previous, quoteHex } = records.batch
  const leaves = [toHex(hashLeaf(records.statement))]
  return { bootId, sequence, previous, leaves, quote: `${quoteHex}${trailing}` }
}

function verify(batch: SignedBatch) {
  const stored = { bytes: collateral, hash: '00'.repeat(32) }
  const verifyBatch = createBatchVerifier({
    verifier: createVerifier({ roots }),
    policy: {},
    collateral: {
      current: async () => ({ ...stored, collateral: JSON.parse(new TextDecoder().decode(collateral)) }),
    },
    readPlatform: createPlatformReader(),
    releaser: createReleaser(createFakeSelfReport()),
  })
  const terms = { config: records.batch.config, settings: createEnclaveSettings([{ kind: 'unsigned' }]) }
  return verifyBatch(batch, terms, { at: { first: signedAt.getTime(), last: signedAt.getTime() }, isReleased: false })
}

test.each([0, 1, 4096])('a quote with %i zero bytes after it gives the same receipt, to the byte', async (zeros) => {
  const { quote } = await verify(toBatch('00'.repeat(zeros)))
  const made = canonicalBytes(assemble({ ...records, batch: { ...records.batch, quoteHex: toHex(quote) } }))
  expect(toCid(made)).toBe(cid)
  expect(made).toEqual(bytes)
})

test.each(['01', '0001', '0100'])('bytes after a quote that are not zero are refused: %s', async (trailing) => {
  await expect(verify(toBatch(trailing))).rejects.toMatchObject({
    code: 'attestation_invalid',
    details: 'trailing_bytes',
  })
})

test('a receipt from before, with zeros after its quote, is judged as it always was', async () => {
  const quoteHex = `${records.batch.quoteHex}${'00'.repeat(4096)}`
  const old = canonicalBytes(assemble({ ...records, batch: { ...records.batch, quoteHex } }))
  const check = await checkReceipt(old, collateral, { roots, mockEntropyKeys, anchors, cid: toCid(old) })
  expect(check).toMatchObject({ verdict: 'mock', isKnownCode: true })
  expect(toCid(old)).not.toBe(cid)
})
