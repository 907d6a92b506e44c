import { type Collateral, createVerifier, parseCollateral, vendorRoots } from '@countersign/attestation'
import { createSimulator, type SimulatedCollateralOptions } from '@countersign/attestation/simulator'
import { createPcsClient } from '@countersign/evidence'
import { ServiceError } from '@countersign/protocol'
import { type FakePcs, type FakePcsDocument, type FakePcsFault, startFakePcs } from '@countersign/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualTime } from '../../../../test/manualTime.ts'
import {
  type CollateralStoreDeps,
  createCollateralStore,
  createPlatformReader,
  createSimulatedCollateralStore,
} from './collateralStore.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const start = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at: start })
const quote = simulator.quote({ reportData: new Uint8Array(64) })
const readPlatform = createPlatformReader()
const platform = readPlatform(quote)

const stale = expect.objectContaining({ name: 'CoordinatorError', code: 'collateral_stale' })

/** A store over a source that a test can change and whose calls it counts. */
function setUp(changes: Partial<CollateralStoreDeps> = {}) {
  const time = createManualTime(start)
  const source = { calls: 0, answer: async (): Promise<Collateral> => issue() }
  const issue = (options: SimulatedCollateralOptions = {}) =>
    simulator.collateral({ at: new Date(time.clock.now()), ...options })
  const store = createCollateralStore({
    fetchCollateral: () => {
      source.calls += 1
      return source.answer()
    },
    roots: [simulator.intelRoot],
    ...time,
    ...changes,
  })
  return { ...time, source, issue, store, current: () => store.current(platform) }
}

const fail = async () => {
  throw new ServiceError('down', 'down')
}

/** Lets work without timers finish. */
async function settle() {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

test('reads the platform from the quote’s PCK certificate and rejects malformed quotes', () => {
  expect(platform).toEqual({ fmspc: 'f0c06f000000', ca: 'platform' })
  expect(() => readPlatform(new Uint8Array(100))).toThrow(expect.objectContaining({ code: 'attestation_invalid' }))
  expect(() =>
    readPlatform(simulator.quote({ reportData: new Uint8Array(64), faults: { chainSwapped: true } })),
  ).toThrow(expect.objectContaining({ code: 'attestation_invalid' }))
})

describe('expiry times', () => {
  test('lists nothing before the first fetch, then each platform, including the simulated one', async () => {
    const { store, current, clock, source } = setUp()
    expect(store.listLapses()).toEqual([])
    await current()
    const expected = [{ platform: 'f0c06f000000 platform', lapsesAt: start.getTime() + 29 * DAY_MS }]
    expect(store.listLapses()).toEqual(expected)
    const simulated = createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock })
    expect(simulated.listLapses()).toEqual([])
    await simulated.current(platform)
    expect(simulated.listLapses()).toEqual(expected)
    source.answer = fail
    expect(store.listLapses()).toEqual(expected)
  })

  test('a platform without collateral has no expiry', async () => {
    const { store, current, source } = setUp()
    source.answer = fail
    await expect(current()).rejects.toEqual(stale)
    expect(store.listLapses()).toEqual([])
  })
})

describe('valid collateral', () => {
  test('is in canonical form, named by its hash, and verifies the quote', async () => {
    const { current } = setUp()
    const { bytes, hash } = await current()
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    const collateral = parseCollateral(Buffer.from(bytes).toString())
    const verifier = createVerifier({ roots: [simulator.intelRoot] })
    await expect(verifier.verifyQuote({ quote, collateral, at: start })).resolves.toMatchObject({ version: 4 })
  })

  test('is fetched once for concurrent callers, and not again while it is fresh', async () => {
    const { current, source, jump } = setUp()
    await Promise.all(Array.from({ length: 50 }, current))
    jump(HOUR_MS)
    await current()
    expect(source.calls).toBe(1)
  })

  test('is refreshed in the background every day without callers', async () => {
    const { current, source, pass, delays } = setUp()
    const first = await current()
    expect(delays()).toEqual([DAY_MS])
    pass(DAY_MS)
    await settle()
    expect(source.calls).toBe(2)
    expect((await current()).hash).not.toBe(first.hash)
    expect(source.calls).toBe(2)
  })

  test('is refreshed before it expires, regardless of its age', async () => {
    const { current, delays } = setUp({ maxAgeMs: 1000 * DAY_MS, refreshBeforeMs: 28.5 * DAY_MS })
    await current()
    expect(delays()).toEqual([DAY_MS / 2])
  })

  test('is returned without waiting for a due refresh', async () => {
    const { current, source, jump } = setUp()
    const first = await current()
    source.answer = () => new Promise(() => {})
    jump(2 * DAY_MS)
    expect(await current()).toEqual(first)
    expect(source.calls).toBe(2)
  })

  test('a clock that is set back after a failure does not delay the next attempt', async () => {
    const { source, current, jump } = setUp()
    const { answer } = source
    jump(400 * DAY_MS)
    source.answer = fail
    await expect(current()).rejects.toEqual(stale)
    jump(-400 * DAY_MS)
    source.answer = answer
    await expect(current()).resolves.toBeDefined()
  })

  test('collateral fetched by a clock that was ahead is not treated as new when it is set back', async () => {
    const { source, issue, current, jump } = setUp()
    source.answer = async () => issue({ at: start })
    jump(5 * DAY_MS)
    await current()
    jump(-5 * DAY_MS)
    await current()
    await settle()
    expect(source.calls).toBe(2)
    await current()
    expect(source.calls).toBe(2)
  })

  test('stays valid through failures until it expires, then returns collateral_stale', async () => {
    const { current, source, pass, jump, lines } = setUp()
    const first = await current()
    source.answer = fail
    pass(DAY_MS)
    await settle()
    expect(await current()).toEqual(first)
    expect(lines.at(-1)).toMatchObject({ msg: 'Could not fetch collateral', code: 'down' })
    jump(28 * DAY_MS)
    expect(await current()).toEqual(first)
    jump(1)
    await expect(current()).rejects.toEqual(stale)
  })

  test('warns at each failed attempt after half of the refresh time, and not before', async () => {
    const told: unknown[] = []
    const { current, source, issue, jump } = setUp({ onLapsing: (of, lapsesAt) => void told.push([of, lapsesAt]) })
    await current()
    source.answer = fail
    const lapsesAt = new Date(start.getTime() + 29 * DAY_MS)
    for (const days of [22, 3.4]) {
      jump(days * DAY_MS)
      await current()
      await settle()
    }
    expect(told).toEqual([])
    jump(0.2 * DAY_MS)
    await current()
    await settle()
    expect(told).toEqual([[platform, lapsesAt]])
    source.answer = async () => issue()
    jump(HOUR_MS)
    await current()
    await settle()
    expect(told).toHaveLength(1)
  })

  test('is fetched as soon as the source is back', async () => {
    const { current, source, issue, jump } = setUp()
    source.answer = fail
    await expect(current()).rejects.toEqual(stale)
    source.answer = async () => issue()
    jump(5_000)
    await expect(current()).resolves.toHaveProperty('hash')
  })

  test('retries a failing source with growing pauses', async () => {
    const { current, source, jump } = setUp()
    source.answer = fail
    for (let call = 0; call < 20; call++) await expect(current()).rejects.toEqual(stale)
    expect(source.calls).toBe(1)
    jump(5_000)
    await expect(current()).rejects.toEqual(stale)
    jump(5_000)
    await expect(current()).rejects.toEqual(stale)
    expect(source.calls).toBe(2)
    for (let call = 0; call < 10; call++) {
      jump(600_000)
      await expect(current()).rejects.toEqual(stale)
    }
    expect(source.calls).toBe(12)
  })

  test('does not poll in a loop if the source’s collateral is always about to expire', async () => {
    const { current, source, delays } = setUp({ refreshBeforeMs: 365 * DAY_MS })
    await current()
    expect(delays()).toEqual([60_000])
    await current()
    await current()
    expect(source.calls).toBe(1)
  })

  test('does not fetch in the background for a platform that never had collateral', async () => {
    const { current, source, delays } = setUp()
    source.answer = fail
    await expect(current()).rejects.toEqual(stale)
    expect(delays()).toEqual([])
  })

  test('quotes that name many platforms do not displace the one in use', async () => {
    const { store, current, source, issue } = setUp()
    await current()
    source.answer = fail
    for (let index = 0; index < 100; index++) {
      const fmspc = index.toString(16).padStart(12, '0')
      await expect(store.current({ fmspc, ca: 'platform' })).rejects.toEqual(stale)
    }
    source.answer = async () => issue()
    await expect(current()).resolves.toHaveProperty('hash')
  })

  test('stop leaves no timer and ends the running fetch', async () => {
    const { store, current, source, pass, delays } = setUp()
    await current()
    let finish = (_: Collateral) => {}
    source.answer = () => new Promise((resolve) => (finish = resolve))
    pass(DAY_MS)
    const stopped = store.stop()
    finish(simulator.collateral())
    await stopped
    expect(delays()).toEqual([])
  })
})

describe('never replaces valid collateral', () => {
  test.each<[string, SimulatedCollateralOptions, string]>([
    ['TCB info signed by another key', { faults: { tcbInfoWrongSigner: true } }, 'tcb_info_signature_invalid'],
    ['TCB info changed after signing', { faults: { tcbInfoTampered: true } }, 'tcb_info_signature_invalid'],
    ['TCB info signed by the PCK CA', { faults: { tcbInfoSignedByPckCa: true } }, 'certificate_chain_invalid'],
    ['TCB info under another root', { faults: { tcbInfoForeignChain: true } }, 'root_not_trusted'],
    ['TCB info for SGX', { faults: { tcbInfoForSgx: true } }, 'tcb_info_mismatch'],
    ['TCB info of other platforms', { faults: { tcbInfoOtherFmspc: true } }, 'tcb_info_mismatch'],
    ['TCB info without a member', { faults: { tcbInfoMissingMember: true } }, 'tcb_info_malformed'],
    ['TCB info that has lapsed', { faults: { tcbInfoExpired: true } }, 'collateral_stale'],
    ['TCB info of tomorrow', { faults: { tcbInfoNotYetValid: true } }, 'collateral_stale'],
    [
      'a QE identity signed by another key',
      { faults: { qeIdentityWrongSigner: true } },
      'qe_identity_signature_invalid',
    ],
    ['a QE identity changed after signing', { faults: { qeIdentityTampered: true } }, 'qe_identity_signature_invalid'],
    ['a QE identity under another root', { faults: { qeIdentityForeignChain: true } }, 'root_not_trusted'],
    ['a QE identity that has lapsed', { faults: { qeIdentityExpired: true } }, 'collateral_stale'],
    ['a PCK list signed by another key', { faults: { pckCrlWrongSigner: true } }, 'crl_signature_invalid'],
    ['a PCK list of the root', { faults: { pckCrlOtherIssuer: true } }, 'crl_signature_invalid'],
    ['a PCK list under another root', { faults: { pckCrlForeignChain: true } }, 'root_not_trusted'],
    ['a PCK list that has lapsed', { faults: { pckCrlExpired: true } }, 'collateral_stale'],
    ['no PCK list', { faults: { pckCrlEmpty: true } }, 'crl_malformed'],
    ['a root list signed by another key', { faults: { rootCrlWrongSigner: true } }, 'crl_signature_invalid'],
    ['a root list that has lapsed', { faults: { rootCrlExpired: true } }, 'collateral_stale'],
    ['no root list', { faults: { rootCrlEmpty: true } }, 'crl_malformed'],
    ['a signing certificate of another name', { faults: { tcbSigningWrongName: true } }, 'certificate_chain_invalid'],
    ['a signing certificate that has lapsed', { faults: { tcbSigningExpired: true } }, 'collateral_stale'],
    ['an earlier evaluation of the TCB', { tcbEvaluationDataNumber: 19 }, 'collateral_stale'],
  ])('%s', async (_, options, code) => {
    const { current, source, issue, pass, lines } = setUp()
    const good = await current()
    source.answer = async () => issue(options)
    pass(DAY_MS)
    await settle()
    expect(source.calls).toBe(2)
    expect(lines.at(-1)).toMatchObject({ msg: 'Could not fetch collateral', code })
    expect(await current()).toEqual(good)
  })

  test('genuine collateral under another root', async () => {
    const { current } = setUp({ roots: vendorRoots })
    await expect(current()).rejects.toEqual(stale)
  })

  test('a genuine revocation replaces it', async () => {
    const { current, source, issue, pass } = setUp()
    const good = await current()
    source.answer = async () => issue({ faults: { pckRevoked: true } })
    pass(DAY_MS)
    await settle()
    const { bytes, hash } = await current()
    expect(hash).not.toBe(good.hash)
    const verifier = createVerifier({ roots: [simulator.intelRoot] })
    const collateral = parseCollateral(Buffer.from(bytes).toString())
    await expect(verifier.verifyQuote({ quote, collateral, at: new Date(start.getTime() + DAY_MS) })).rejects.toThrow(
      expect.objectContaining({ code: 'certificate_revoked' }),
    )
  })
})

describe('collateral stored across a restart', () => {
  const toBytes = (options?: SimulatedCollateralOptions) => Buffer.from(JSON.stringify(simulator.collateral(options)))

  test('is used immediately while the source is down, and refreshed as soon as possible', async () => {
    const saved: Uint8Array[] = []
    const cache = { load: async () => toBytes(), save: async (_: unknown, bytes: Uint8Array) => void saved.push(bytes) }
    const { current, source, issue, pass } = setUp({ cache })
    source.answer = fail
    await expect(current()).resolves.toHaveProperty('hash')
    expect(source.calls).toBe(0)
    source.answer = async () => issue({ tcbEvaluationDataNumber: 21 })
    pass(1000)
    await settle()
    const { bytes } = await current()
    expect(saved).toEqual([bytes])
  })

  test.each<[string, () => Promise<Uint8Array | undefined>]>([
    ['none', async () => undefined],
    ['no JSON', async () => Buffer.from('no')],
    ['no UTF-8', async () => Buffer.from([0xff, 0xfe])],
    ['lapsed', async () => toBytes({ faults: { tcbInfoExpired: true } })],
    ['signed by another key', async () => toBytes({ faults: { tcbInfoWrongSigner: true } })],
    ['a cache that fails', fail],
  ])('%s: it is fetched', async (_, load) => {
    const { current, source } = setUp({ cache: { load, save: fail } })
    await expect(current()).resolves.toHaveProperty('hash')
    expect(source.calls).toBe(1)
  })
})

test('reads the cache again while the source is down if it failed once or was filled later', async () => {
  const answers: (() => Promise<Uint8Array | undefined>)[] = [fail, async () => undefined]
  const kept = async () => Buffer.from(JSON.stringify(simulator.collateral()))
  const cache = { load: () => (answers.shift() ?? kept)(), save: fail }
  const { current, source, jump } = setUp({ cache })
  source.answer = fail
  await expect(current()).rejects.toEqual(stale)
  jump(60_000)
  await expect(current()).rejects.toEqual(stale)
  jump(60_000)
  await expect(current()).resolves.toHaveProperty('hash')
  expect(source.calls).toBe(2)
})

describe('from a PCS over HTTP', () => {
  let pcs: FakePcs
  beforeEach(async () => {
    pcs = await startFakePcs({ simulator, now: start.getTime.bind(start) })
  })
  afterEach(() => pcs.close())

  test('returns the signed texts byte for byte', async () => {
    const collateral = await createPcsClient({ url: pcs.url }).fetchCollateral(platform)
    expect(collateral).toEqual(simulator.collateral())
    expect(pcs.requests.sort()).toEqual([
      '/sgx/certification/v4/pckcrl?ca=platform&encoding=der',
      '/sgx/certification/v4/rootcacrl',
      '/tdx/certification/v4/qe/identity',
      '/tdx/certification/v4/tcb?fmspc=F0C06F000000',
    ])
  })

  test.each<[FakePcsDocument, FakePcsFault]>([
    ['tcb', 'down'],
    ['qe', 'wrong_signature'],
    ['tcb', 'stale'],
    ['pckCrl', 'missing_header'],
    ['rootCrl', 'truncated'],
  ])('%s %s: collateral_stale, and good again when the fault has gone', async (document, fault) => {
    const time = createManualTime(start)
    const { fetchCollateral } = createPcsClient({ url: pcs.url })
    const store = createCollateralStore({ fetchCollateral, roots: [simulator.intelRoot], ...time })
    pcs.setFault(fault, document)
    await expect(store.current(platform)).rejects.toEqual(stale)
    pcs.setFault(undefined)
    time.jump(5_000)
    await expect(store.current(platform)).resolves.toHaveProperty('hash')
    await store.stop()
  })
})

describe('for simulated hardware', () => {
  test('is created every day, verifies at any time, and only for the simulated platform', async () => {
    const time = createManualTime(start)
    const store = createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), ...time })
    const verifier = createVerifier({ roots: [simulator.intelRoot] })
    const first = await store.current(platform)
    expect(await store.current(platform)).toEqual(first)
    time.jump(100 * DAY_MS)
    const later = await store.current(platform)
    expect(later.hash).not.toBe(first.hash)
    const collateral = parseCollateral(Buffer.from(later.bytes).toString())
    await expect(verifier.verifyQuote({ quote, collateral, at: new Date(time.clock.now()) })).resolves.toBeDefined()
    await expect(store.current({ ...platform, fmspc: '000000000000' })).rejects.toEqual(stale)
    await expect(store.current({ ...platform, ca: 'processor' })).rejects.toEqual(stale)
  })
})
