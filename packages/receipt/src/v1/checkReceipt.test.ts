import {
  createSimulatedBeacon,
  createSimulatedSatellite,
  createSimulator,
  strangerSeed,
} from '@countersign/attestation/simulator'
import { ServiceError, toCanonicalJson } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSpecFiles, GOLDEN_SIGNED_AT, readSpecFile } from '../../spec/createSpecFiles.ts'
import { type Tampering, tamper } from '../../spec/tampered.ts'
import type { Variant } from '../../spec/tamperedEvidence.ts'
import { failures, service, statusOf } from '../../test/checkReceipt.ts'
import { anchorSteps, requiredSteps, type Step, type StepId } from '../check/steps.ts'
import { type CheckReceiptOptions, checkReceipt } from '../checkReceipt.ts'
import { toCid } from '../cid.ts'
import { createReceiptSimulator } from '../simulator/index.ts'

const honest = await service.issue({ signedAt: GOLDEN_SIGNED_AT, treeSize: 5, leafIndex: 2, batchSequence: 3 })
const options: CheckReceiptOptions = {
  roots: service.roots,
  anchors: honest.anchors,
  mockEntropyKeys: service.mockEntropyKeys,
}

function check(changes: Partial<CheckReceiptOptions> = {}, bytes = honest.bytes, collateral = honest.collateral) {
  return checkReceipt(bytes, collateral, { ...options, ...changes })
}

/** The same evidence, for a reader who takes the simulated roots and the satellite for real ones. */
const asHardware: Partial<CheckReceiptOptions> = {
  roots: service.roots.map((root) => ({ ...root, mode: 'hardware' as const })),
  mockEntropyKeys: [],
}

/** Not dstack's secret, which would need events that simulated hardware doesn't record. */
const attested = await service.issue({
  signedAt: GOLDEN_SIGNED_AT,
  config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` },
})
const asAttested = { ...asHardware, anchors: attested.anchors }

describe('an honest receipt', () => {
  test('passes every required step, but simulated hardware makes it MOCK', async () => {
    const result = await check({ cid: honest.cid })
    expect(result).toMatchObject({ verdict: 'mock', isMock: true, isKnownCode: true, cid: honest.cid })
    for (const id of [...requiredSteps, 'cid'] as const) expect([id, statusOf(result, id)]).toEqual([id, 'pass'])
  })

  test.each([
    [
      'Intel root',
      {
        roots: service.roots.map((root) => ({ ...root, mode: root.vendor === 'intel' ? 'mock' : 'hardware' })),
        mockEntropyKeys: [],
      },
    ],
    [
      'AMD root',
      {
        roots: service.roots.map((root) => ({ ...root, mode: root.vendor === 'amd' ? 'mock' : 'hardware' })),
        mockEntropyKeys: [],
      },
    ],
    ['satellite', { ...asHardware, mockEntropyKeys: service.mockEntropyKeys }],
  ] as [string, Partial<CheckReceiptOptions>][])('one mock part makes the whole MOCK: %s', async (_, changes) => {
    expect(await check(changes)).toMatchObject({ verdict: 'mock', isMock: true })
  })

  test('is checked as issued: the wall clock does not matter', async () => {
    const old = await service.issue({ signedAt: new Date('2022-03-04T05:06:07.890Z') })
    expect(await check({ anchors: old.anchors }, old.bytes, old.collateral)).toMatchObject({ verdict: 'mock' })
  })
})

describe('the golden files', () => {
  test('equal the output of the code', async () => {
    for (const [path, text] of await createSpecFiles()) expect([path, readSpecFile(path)]).toEqual([path, text])
  })

  const tamperings: Tampering[] = JSON.parse(readSpecFile('golden/tampered.json'))

  test('have at least 30 tampered variants, with one for every step that only the receipt can fail', () => {
    expect(tamperings.length).toBeGreaterThanOrEqual(30)
    const covered = new Set(tamperings.map(({ step }) => step))
    const byReader: StepId[] = [...anchorSteps, 'coordinator-policy', 'time']
    expect(requiredSteps.filter((id) => !covered.has(id) && !byReader.includes(id))).toEqual([])
  })

  test.each(tamperings.map((tampering) => [tampering.name, tampering.step, tampering] as const))(
    '%s is caught by %s',
    async (_, step, tampering) => {
      const result = await check({}, toCanonicalJson(tamper(honest.receipt, tampering)))
      expect(result.verdict).toBe('failed')
      expect(failures(result)[0]).toBe(step)
    },
  )
})

const variants: Variant[] = JSON.parse(readSpecFile('golden/variants.json'))

test.each(variants.map((variant) => [variant.name, variant] as const))('accepts %s', async (_, variant) => {
  const anchors = { ...honest.anchors, ...variant.anchors }
  const result = await check({ anchors }, toCanonicalJson(tamper(honest.receipt, variant)))
  expect([failures(result), result.verdict]).toEqual([[], 'mock'])
  expect(result.isKnownCode).toBe(true)
})

describe('another service’s anchors are not the reader’s', () => {
  test.each([
    ['measurements', 'measurement'],
    ['configHashes', 'config'],
    ['coordinatorMeasurements', 'coordinator-measurement'],
    ['coordinatorConfigHashes', 'coordinator-config'],
    ['entropyKeys', 'entropy-key'],
  ] as const)('without %s the step %s is skipped, and the code is unknown', async (anchor, step) => {
    for (const value of [undefined, []]) {
      const result = await check({
        ...asHardware,
        anchors: { ...honest.anchors, [anchor]: value } as typeof honest.anchors,
      })
      expect(result).toMatchObject({ verdict: 'unknown-code', isKnownCode: false })
      expect(statusOf(result, step)).toBe('skip')
    }
  })

  test('accepts the key of a simulated source only if the reader names no key', async () => {
    const runCheck = (entropyKeys: string[]) => check({ anchors: { ...honest.anchors, entropyKeys } })
    const [none, other] = [await runCheck([]), await runCheck(['00'.repeat(32)])]
    expect([none.verdict, statusOf(none, 'entropy-key')]).toEqual(['mock', 'pass'])
    expect([other.verdict, ...failures(other)]).toEqual(['failed', 'entropy-key'])
  })

  test('ignores the receipt’s claims about itself: mode and quoteVerified change nothing', async () => {
    const claim = structuredClone(honest.receipt)
    claim.signer.mode = 'hardware'
    claim.coordinator.mode = 'hardware'
    expect(await check({}, toCanonicalJson(claim))).toMatchObject({ verdict: 'mock', isMock: true })
    claim.signer.quoteVerified = false
    expect(await check({}, toCanonicalJson(claim))).toMatchObject({ verdict: 'mock', isKnownCode: true })
    const genuine = structuredClone(attested.receipt)
    genuine.signer.quoteVerified = false
    const result = await check(asAttested, toCanonicalJson(genuine), attested.collateral)
    expect(result).toMatchObject({ verdict: 'unbounded', isMock: false })
  })

  test.each([
    ['other code', { quote: { mrtd: new Uint8Array(48).fill(1) } }, 'measurement'],
    [
      'other code in a later register',
      { quote: { rtmrs: [0, 0, 0, 9].map((byte) => new Uint8Array(48).fill(byte)) as never } },
      'measurement',
    ],
    ['a root secret in a file', { config: { rootSecret: 'file' } }, 'config'],
    [
      'another identity provider',
      { config: { issuers: [{ issuer: 'https://evil.example', audience: 'a', jwksOrigin: 'https://evil.example' }] } },
      'config',
    ],
    ['another satellite', { satelliteSeed: 'evil' }, 'entropy-key'],
    ['another coordinator', { report: { measurement: new Uint8Array(48).fill(2) } }, 'coordinator-measurement'],
  ] as const)('an attacker’s genuine machine with %s is not verified', async (_, changes, step) => {
    const attack = await service.issue({ signedAt: GOLDEN_SIGNED_AT, ...changes })
    for (const reader of [{}, asHardware]) {
      const result = await check(reader, attack.bytes, attack.collateral)
      expect(result.verdict).toBe('failed')
      expect(failures(result)).toEqual([step])
    }
  })

  test('a whole service on another root is not verified', async () => {
    const attack = await createReceiptSimulator(strangerSeed).issue({ signedAt: GOLDEN_SIGNED_AT })
    const result = await check({}, attack.bytes, attack.collateral)
    expect(failures(result)).toEqual(expect.arrayContaining(['quote', 'coordinator-report']))
  })
})

describe('policy', () => {
  test('rejects an out-of-date platform unless its status is accepted', async () => {
    const issue = await service.issue({ signedAt: GOLDEN_SIGNED_AT, quote: { status: 'OutOfDate' } })
    expect(failures(await check({}, issue.bytes, issue.collateral))).toEqual(['quote-policy'])
    const policy = { signer: { statuses: ['UpToDate', 'OutOfDate'] as const } }
    expect(await check({ policy }, issue.bytes, issue.collateral)).toMatchObject({ verdict: 'mock' })
  })
})

describe('missing evidence', () => {
  test('without collateral nothing is verified, and nothing has failed', async () => {
    const result = await checkReceipt(honest.bytes, undefined, options)
    expect(result.verdict).toBe('incomplete')
    expect(statusOf(result, 'quote')).toBe('skip')
  })

  test('bytes that are not a receipt fail at the first step and go no further', async () => {
    for (const bytes of [
      new Uint8Array(),
      new Uint8Array(300_000),
      new TextEncoder().encode('{}'),
      new TextEncoder().encode('null'),
    ]) {
      const result = await check({}, bytes)
      expect(result).toMatchObject({ verdict: 'failed', receipt: undefined })
      expect(result.steps.map(({ id }) => id)).toEqual(['format', 'cid'])
    }
  })

  test('another CID than requested fails', async () => {
    expect(failures(await check({ cid: toCid(new Uint8Array()) }))).toEqual(['cid'])
  })
})

describe('progress', () => {
  test('reports each step as it finishes, in order', async () => {
    const reported: Step[] = []
    const { steps } = await check({ onStep: (step) => reported.push(step) })
    expect(reported).toEqual(steps)
    expect(reported).toHaveLength(29)
  })

  test('passes on the caller’s errors instead of turning them into outcomes', async () => {
    const onStep = () => {
      throw new ServiceError('internal', 'the caller failed')
    }
    await expect(check({ onStep })).rejects.toThrow('the caller failed')
  })
})

describe('time bracket: entropy ≤ signing ≤ event, within 5 s', () => {
  test.each([
    [-5_000, 'pass'],
    [-5_001, 'fail'],
    [0, 'pass'],
    [65_000, 'pass'],
    [65_001, 'fail'],
  ] as const)('a sample %d ms old: %s', async (sampleAgeMs, status) => {
    const issue = await service.issue({ signedAt: GOLDEN_SIGNED_AT, sampleAgeMs })
    expect(statusOf(await check({}, issue.bytes, issue.collateral), 'time')).toBe(status)
  })
})

describe('re-evaluation', () => {
  const later = new Date('2028-06-15T12:00:00.000Z')
  const simulator = createSimulator({ at: later })
  const fresh = toCanonicalJson(simulator.collateral())

  test('with fresh collateral two years later, the receipt passes and the step names the old status', async () => {
    const result = await check({ reevaluation: { at: later, collateral: fresh } })
    expect(result.verdict).toBe('mock')
    expect(result.steps.at(-1)).toMatchObject({
      id: 'reevaluation',
      status: 'pass',
      detail: expect.stringContaining('UpToDate when issued'),
    })
  })

  test('reports a platform that is out of date since then, with its advisories', async () => {
    const editTcbInfo = (text: string) =>
      text.replace('"tcbStatus":"UpToDate"', '"tcbStatus":"OutOfDate","advisoryIDs":["INTEL-SA-99999"]')
    const levels = toCanonicalJson(simulator.collateral({ editTcbInfo: (text) => editLevels(text, editTcbInfo) }))
    const result = await check({ reevaluation: { at: later, collateral: levels } })
    expect(failures(result)).toEqual(['reevaluation'])
    expect(result.steps.at(-1)?.detail).toContain('OutOfDate (UpToDate when issued); advisories: INTEL-SA-99999')
  })

  test('a platform revoked since then fails now, and still passes as issued', async () => {
    const collateral = toCanonicalJson(simulator.collateral({ faults: { pckRevoked: true } }))
    const result = await check({ reevaluation: { at: later, collateral } })
    expect(failures(result)).toEqual(['reevaluation'])
    expect(statusOf(result, 'quote')).toBe('pass')
  })

  test('rejects stale collateral', async () => {
    const result = await check({ reevaluation: { at: later, collateral: honest.collateral } })
    expect(result.steps.at(-1)).toMatchObject({ status: 'fail', code: 'tcb_info_not_in_date' })
  })

  /** The platform's list is the last one in the text. */
  function editLevels(text: string, edit: (part: string) => string): string {
    const start = text.lastIndexOf('"tcbLevels":')
    return text.slice(0, start) + edit(text.slice(start))
  }
})

test('an unsigned sample fails its step, and the sentence gives the reason', async () => {
  const { bytes, collateral, anchors } = await service.issue({
    signedAt: GOLDEN_SIGNED_AT,
    unsignedSource: 'orbitport/aptosorbital',
  })
  const result = await check({ anchors }, bytes, collateral)
  expect(result.verdict).toBe('failed')
  expect(failures(result)).toEqual(['entropy'])
  expect(result.steps.find(({ id }) => id === 'entropy')?.detail).toBe(
    'The sample is not signed: orbitport/aptosorbital does not sign, so its origin and time can’t be checked.',
  )
})

test('verifiers know the keys of the simulated satellite and beacon as mock', () => {
  expect(service.mockEntropyKeys).toEqual([createSimulatedSatellite().publicKey, createSimulatedBeacon().beacon.key])
})
