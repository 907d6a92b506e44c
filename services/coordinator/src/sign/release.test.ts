import { createEnclaveSettings, toHex } from '@countersign/protocol'
import { createReceiptSimulator } from '@countersign/receipt/simulator'
import { expect, test } from 'vitest'
import { createFakeSelfReport } from '../../test/ports.ts'
import { createReleaser, type Releasable, type VerifiedBatch } from './checkBatch.ts'

const { records, collateral } = await createReceiptSimulator().issue({ signedAt: new Date('2026-06-15T12:00:00.000Z') })

function createBatch({ zeros = 0 } = {}): Releasable {
  const { bootId, sequence, previous, quoteHex, config } = records.batch
  return {
    bootId,
    sequence,
    previous,
    config,
    eventLog: undefined,
    leaves: ['22'.repeat(32)],
    settings: createEnclaveSettings([{ kind: 'unsigned' }]),
    quote: Buffer.from(quoteHex + '00'.repeat(zeros), 'hex'),
    collateral: { bytes: collateral, hash: '11'.repeat(32) },
  }
}

/** As the verifier returns it. */
const toVerified = (batch: Releasable, begun?: VerifiedBatch['begun']): VerifiedBatch => ({
  ...batch,
  mode: 'mock',
  tcbStatus: 'UpToDate',
  begun,
  measurement: { mrTd: '', rtmr0: '', rtmr1: '', rtmr2: '', rtmr3: '' },
})

function setUp() {
  const selfReport = createFakeSelfReport()
  const made: string[] = []
  const releaser = createReleaser({
    ...selfReport,
    async signMlDsa65(message) {
      made.push(toHex(message))
      return selfReport.signMlDsa65(message)
    },
  })
  return { made, releaser, coordinator: selfReport.current().coordinator }
}

test('uses the release that was started during verification, and signs it once', async () => {
  const { made, releaser, coordinator } = setUp()
  const begun = releaser.begin(createBatch())
  const batch = toVerified(createBatch(), begun)
  expect(await releaser.release(batch, coordinator)).toBe(await begun.release)
  expect(await releaser.release(batch, coordinator)).toBe(await begun.release)
  expect(made).toHaveLength(1)
})

test('the release of a quote with trailing zeros is that of the trimmed quote', async () => {
  const { made, releaser, coordinator } = setUp()
  const begun = releaser.begin(createBatch({ zeros: 8 }))
  const batch = toVerified(createBatch(), begun)
  const released = await releaser.release(batch, coordinator)
  expect(released).not.toBe(await begun.release)
  expect(await releaser.release(batch, coordinator)).toBe(released)
  expect(made).toHaveLength(2)
})

test('names the new report if the coordinator’s report has changed', async () => {
  const { made, releaser } = setUp()
  const begun = releaser.begin(createBatch())
  const next = new TextEncoder().encode('another report')
  const released = await releaser.release(toVerified(createBatch(), begun), next)
  expect(released.coordinator).toBe(next)
  expect(new Set(made).size).toBe(2)
})

test('a release that fails is reported to its caller', async () => {
  const { releaser, coordinator } = setUp()
  const large = { ...createBatch(), collateral: { bytes: new Uint8Array(300_000), hash: '11'.repeat(32) } }
  const begun = releaser.begin(large)
  await expect(releaser.release(toVerified(large, begun), coordinator)).rejects.toThrow(/bytes|large/)
})
