import { describe, expect, test } from 'vitest'
import type { QuoteErrorCode } from '../errors.ts'
import { createSimulator, type SimulatedCollateralFaults } from '../simulator/index.ts'
import { describeCollateral } from './describeCollateral.ts'

const simulator = createSimulator({ at: new Date('2026-06-15T00:00:00Z') })

test('returns the platforms of collateral, and when each part expires', () => {
  const { tcbInfo, qeIdentity, rootCrl, pckCrl } = describeCollateral(simulator.collateral())
  expect(tcbInfo).toMatchObject({ fmspc: 'f0c06f000000', pceId: '0000' })
  expect(tcbInfo.tcbLevels[0]).toMatchObject({ status: 'UpToDate', tcbDate: expect.any(Date) })
  expect(tcbInfo.tdxModules).toContain('TDX_01')
  expect(qeIdentity.mrSigner).toMatch(/^[0-9a-f]{64}$/)
  for (const { issueDate, nextUpdate } of [tcbInfo, qeIdentity]) expect(nextUpdate > issueDate).toBe(true)
  for (const { thisUpdate, nextUpdate } of [rootCrl, pckCrl]) expect(nextUpdate > thisUpdate).toBe(true)
  expect([rootCrl.revoked, pckCrl.revoked]).toEqual([0, 1])
})

test('counts the revoked certificates', () => {
  const { rootCrl, pckCrl } = describeCollateral(simulator.collateral({ faults: { pckRevoked: true } }))
  expect(rootCrl.revoked).toBe(0)
  expect(pckCrl.revoked).toBeGreaterThan(1)
})

test('describes unsigned collateral too', () => {
  const faults = {
    tcbInfoWrongSigner: true,
    qeIdentityWrongSigner: true,
    pckCrlWrongSigner: true,
    rootCrlExpired: true,
  }
  expect(describeCollateral(simulator.collateral({ faults })).tcbInfo.fmspc).toBe('f0c06f000000')
})

describe('rejects a part that it cannot read', () => {
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
