import { vendorRoots } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import { expect, test } from 'vitest'
import type { Config } from './config.ts'
import { createHardware } from './hardware.ts'

const clock = { now: () => Date.parse('2026-06-15T12:00:00Z') }
const create = (quoteSource: Config['quoteSource']) =>
  createHardware({ quoteSource, rootSecret: { kind: 'file', path: '' } } as Config, clock)

test('real enclaves accept only real peers, and simulated ones only simulated peers', async () => {
  expect((await create({ kind: 'dstack' })).peerRoots).toEqual(vendorRoots)
  const { peerRoots } = await create({ kind: 'mock', latencyMs: 0 })
  expect(peerRoots).toEqual(simulatedRoots().filter(({ vendor }) => vendor === 'intel'))
})

test('a simulated enclave accepts real and simulated callers', async () => {
  expect((await create({ kind: 'configfs' })).callerRoots).toEqual(vendorRoots)
  expect((await create({ kind: 'mock', latencyMs: 0 })).callerRoots).toHaveLength(vendorRoots.length + 2)
})

test('another kind of root secret needs no collateral and makes no request', async () => {
  const { fetchCollateral } = await create({ kind: 'configfs' })
  await expect(fetchCollateral({ fmspc: '00906ed50000', ca: 'platform' })).rejects.toThrow('no collateral is needed')
})
