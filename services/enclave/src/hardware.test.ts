import { vendorRoots } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import { expect, test } from 'vitest'
import type { Config } from './config.ts'
import { createHardware } from './hardware.ts'

const clock = { now: () => Date.parse('2026-06-15T12:00:00Z') }
const create = (quoteSource: Config['quoteSource']) =>
  createHardware({ quoteSource, rootSecret: { kind: 'file', path: '' } } as Config, clock)

test('real enclaves believe real peers alone, simulated ones simulated peers alone', async () => {
  expect((await create({ kind: 'dstack' })).peerRoots).toEqual(vendorRoots)
  const { peerRoots } = await create({ kind: 'mock', latencyMs: 0 })
  expect(peerRoots).toEqual(simulatedRoots().filter(({ vendor }) => vendor === 'intel'))
})

test('callers may be real or simulated where the enclave is simulated', async () => {
  expect((await create({ kind: 'configfs' })).callerRoots).toEqual(vendorRoots)
  expect((await create({ kind: 'mock', latencyMs: 0 })).callerRoots).toHaveLength(vendorRoots.length + 2)
})

test('a root secret of another kind needs no collateral, and asks nobody for it', async () => {
  const { fetchCollateral } = await create({ kind: 'configfs' })
  await expect(fetchCollateral({ fmspc: '00906ed50000', ca: 'platform' })).rejects.toThrow('no collateral is needed')
})
