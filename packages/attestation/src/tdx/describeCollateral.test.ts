import { describe, expect, test } from 'vitest'
import type { QuoteErrorCode } from '../errors.ts'
import { createSimulator, type SimulatedCollateralFaults } from '../simulator/index.ts'
import { describeCollateral } from './describeCollateral.ts'

const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })

test('says for which platforms collateral is, and until when each part is good', () => {
  const { tcbInfo, qeIdentity, rootCrl, pckCrl } = describeCollateral(simulator.collateral())
  expect(tcbInfo).toMatchObject({ fmspc: 'f0c06f000000', pceId: '0000' })
  expect(tcbInfo.tcbLevels[0]).toMatchObject({ status: 'UpToDate', tcbDate: expect.any(Date) })
  expect(tcbInfo.tdxModules).toContain('TDX_01')
  expect(qeIdentity.mrSigner).toMatch(/^[0-9a-f]{64}$/)
  for (const { issueDate, nextUpdate } of [tcbInfo, qeIdentity]) expect(nextUpdate > issueDate).toBe(true)
  for (const { thisUpdate, nextUpdate } of [rootCrl, pckCrl]) expect(nextUpdate > thisUpdate).toBe(true)
  expect([rootCrl.revoked, pckCrl.revoked]).toEqual([0, 1])
})

test('counts what is revoked', () => {
  const { rootCrl, pckCrl } = describeCollateral(simulator.collateral({ faults: { pckRevoked: true } }))
  expect(rootCrl.revoked).toBe(0)
  expect(pckCrl.revoked).toBeGreaterThan(1)
})

test('verifies nothing: collateral that nobody signed is described like any other', () => {
  const faults = {
    tcbInfoWrongSigner: true,
    qeIdentityWrongSigner: true,
    pckCrlWrongSigner: true,
    rootCrlExpired: true,
  }
  expect(describeCollateral(simulator.collateral({ faults })).tcbInfo.fmspc).toBe('f0c06f000000')
})

describe('a part that cannot be read is refused', () => {
  test.each<[keyof SimulatedCollateralFaults, QuoteErrorCode]>([
    ['tcbInfoMissingMember', 'tcb_info_malformed'],
    ['tcbInfoForSgx', 'tcb_info_mismatch'],
    ['rootCrlEmpty', 'crl_malformed'],
    ['pckCrlEmpty', 'crl_malformed'],
  ])('%s', (fault, code) => {
    const collateral = simulator.collateral({ faults: { [fault]: true } })
    expect(() => describeCollateral(collateral)).toThrow(expect.objectContaining({ code }))
  })

  test('a quoting enclave identity that is not JSON', () => {
    const collateral = { ...simulator.collateral(), qe_identity: 'no' }
    expect(() => describeCollateral(collateral)).toThrow(expect.objectContaining({ code: 'qe_identity_malformed' }))
  })
})
