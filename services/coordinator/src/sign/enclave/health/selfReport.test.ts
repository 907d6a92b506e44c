import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { createVerifier, vendorRoots } from '@countersign/attestation'
import { createSimulator, type SimulatedReportOptions } from '@countersign/attestation/simulator'
import {
  createKdsClient,
  createSimulatedReportSource,
  EvidenceError,
  type Report,
  type ReportSource,
  VendorError,
} from '@countersign/evidence'
import { computeSnpReportData, computeSnpReportDataV2, fromHex, toHex, verifyEd25519 } from '@countersign/protocol'
import { parseBlock } from '@countersign/receipt'
import { type FakeKds, type FakeKdsFault, startFakeKds } from '@countersign/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualTime } from '../../../../test/manualTime.ts'
import { createSelfReport, type SelfReportDeps } from './selfReport.ts'
import { createSnpCertificates, type SnpCertificatesDeps } from './snpCertificates.ts'
import { createSnpRevocations } from './snpRevocations.ts'

const MINUTE_MS = 60_000
const start = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at: start })
const verifier = createVerifier({ roots: [simulator.amdRoot] })
const configHash = '5c'.repeat(32)
const silent = { info() {}, warn() {} }

const instant = { latencyMs: 0, wait: async () => {} }
const working = () => createSimulatedReportSource({ simulator, ...instant })
const failing: ReportSource['getReport'] = async () => {
  throw new EvidenceError('evidence_busy', 'busy')
}

function setUp(changes: Partial<SelfReportDeps> = {}) {
  const time = createManualTime(start)
  const firmware = { calls: 0, getReport: working().getReport }
  const reportSource: ReportSource = {
    mode: 'mock',
    getReport: (reportData) => {
      firmware.calls += 1
      return firmware.getReport(reportData)
    },
  }
  const certificates = createSnpCertificates({ verifier, log: time.log })
  const selfReport = createSelfReport({ reportSource, certificates, configHash, ...time, ...changes })
  return { ...time, firmware, selfReport }
}

const none = expect.objectContaining({ name: 'CoordinatorError', code: 'attestation_invalid' })

describe('the coordinator’s report about its key', () => {
  test('binds the signing key and the configuration', async () => {
    const { selfReport } = setUp()
    await selfReport.ready()
    const { selfAttestation, expiresAt } = selfReport.current()
    const { ek, ask, ark } = selfAttestation.certificates
    const { body } = await verifier.verifyReport({
      report: fromHex(selfAttestation.reportHex),
      certificates: { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) },
      at: start,
    })
    const publicKey = fromHex(selfReport.publicKey)
    expect(body.reportData).toEqual(computeSnpReportData({ publicKey, configHash: fromHex(configHash) }))
    expect(selfAttestation).toMatchObject({
      measurement: toHex(body.measurement),
      configHash,
      fetchedAt: '2026-06-15T00:00:00.000Z',
    })
    expect(expiresAt).toBe('2026-06-15T01:00:00.000Z')
    const message = new TextEncoder().encode('message')
    expect(verifyEd25519(publicKey, await selfReport.sign(message), message)).toBe(true)
    expect(selfReport.mode).toBe('mock')
  })

  test('a second report binds both keys, and both sign', async () => {
    const { selfReport } = setUp()
    await selfReport.ready()
    const { selfAttestation, coordinator } = selfReport.current()
    const { reportHex, certificates, keys, fetchedAt, ...rest } = parseBlock('coordinator', coordinator)
    const { ek, ask, ark } = certificates
    const { body } = await verifier.verifyReport({
      report: fromHex(reportHex),
      certificates: { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) },
      at: start,
    })
    const [ed25519, mlDsa65] = [fromHex(keys.ed25519), fromHex(keys.mlDsa65)]
    expect(body.reportData).toEqual(computeSnpReportDataV2({ ed25519, mlDsa65, configHash: fromHex(configHash) }))
    expect(keys.ed25519).toBe(selfReport.publicKey)
    expect([fetchedAt, rest.configHash]).toEqual([selfAttestation.fetchedAt, configHash])
    expect(reportHex).not.toBe(selfAttestation.reportHex)
    const message = new TextEncoder().encode('message')
    const signatures = await Promise.all([selfReport.signMlDsa65(message), selfReport.signMlDsa65(message)])
    const jwk = { kty: 'AKP', alg: 'ML-DSA-65', pub: Buffer.from(mlDsa65).toString('base64url') }
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
    for (const signature of signatures) expect(verify(null, message, publicKey, signature)).toBe(true)
    expect(toHex(signatures[0])).not.toBe(toHex(signatures[1]))
  })

  test.each([0, 1])('both are replaced together: if report %i fails, the earlier pair stays', async (nth) => {
    const { selfReport, firmware, pass, nextLine } = setUp()
    await selfReport.ready()
    const first = selfReport.current()
    let calls = 0
    firmware.getReport = (reportData) => (calls++ === nth ? failing(reportData) : working().getReport(reportData))
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(selfReport.current()).toEqual(first)
    await Promise.all([nextLine(), pass(5_000)])
    const { selfAttestation, coordinator } = selfReport.current()
    expect(selfAttestation.fetchedAt).toBe('2026-06-15T00:10:05.000Z')
    expect(parseBlock('coordinator', coordinator).fetchedAt).toBe(selfAttestation.fetchedAt)
  })

  test('requests one report from the firmware at a time', async () => {
    let underWay = 0
    const { selfReport } = setUp({
      reportSource: {
        mode: 'mock',
        async getReport(reportData) {
          underWay += 1
          expect(underWay).toBe(1)
          const report = await working().getReport(reportData)
          underWay -= 1
          return report
        },
      },
    })
    await selfReport.ready()
    expect(selfReport.current().coordinator.length).toBeGreaterThan(0)
  })

  test('two coordinators have two keys; a given key is used', async () => {
    const key = generateKeyPairSync('ed25519')
    const raw = key.publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex')
    const keys = [
      setUp(),
      setUp(),
      setUp({ generateKey: (kind) => (kind === 'ed25519' ? key : generateKeyPairSync(kind)) }),
    ].map(({ selfReport }) => selfReport.publicKey)
    expect(new Set(keys).size).toBe(3)
    expect(keys[2]).toBe(raw)
  })

  test('fails before the first report', () => {
    const { selfReport } = setUp()
    expect(() => selfReport.current()).toThrow(none)
  })

  test('reading it never calls the firmware; a timer does every ten minutes', async () => {
    const { selfReport, firmware, pass, nextLine, delays } = setUp()
    await selfReport.ready()
    for (let call = 0; call < 100; call++) selfReport.current()
    expect(firmware.calls).toBe(2)
    expect(delays()).toEqual([10 * MINUTE_MS])
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(firmware.calls).toBe(4)
    expect(selfReport.current().selfAttestation.fetchedAt).toBe('2026-06-15T00:10:00.000Z')
  })

  test('if the firmware fails, the report stays until it expires, and the pauses grow', async () => {
    const { selfReport, firmware, pass, nextLine, delays, jump } = setUp()
    await selfReport.ready()
    const first = selfReport.current()
    firmware.getReport = failing
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(selfReport.current()).toEqual(first)
    for (const delay of [5_000, 10_000, 20_000, 40_000, 80_000]) {
      expect(delays()).toEqual([delay])
      await Promise.all([nextLine(), pass(delay)])
    }
    jump(60 * MINUTE_MS)
    expect(() => selfReport.current()).toThrow(none)
    firmware.getReport = working().getReport
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(selfReport.current().selfAttestation.fetchedAt > first.selfAttestation.fetchedAt).toBe(true)
  })

  test('retries if the firmware fails at the start', async () => {
    const time = createManualTime(start)
    const firmware = { getReport: failing }
    const reportSource: ReportSource = { mode: 'mock', getReport: (data) => firmware.getReport(data) }
    const certificates = createSnpCertificates({ verifier, log: silent })
    const selfReport = createSelfReport({ reportSource, certificates, configHash, ...time })
    await selfReport.ready()
    expect(() => selfReport.current()).toThrow(none)
    firmware.getReport = working().getReport
    await Promise.all([time.nextLine(), time.pass(5_000)])
    expect(selfReport.current().selfAttestation.configHash).toBe(configHash)
  })

  test.each<[string, Partial<SelfReportDeps>, object]>([
    [
      'firmware that fails, in its own words',
      { reportSource: { mode: 'mock', getReport: failing } },
      { code: 'evidence_busy', reason: 'busy' },
    ],
    [
      'a genuine report for other data',
      { reportSource: { mode: 'mock', getReport: () => working().getReport(new Uint8Array(64)) } },
      { code: 'report_data_mismatch' },
    ],
    [
      'mock evidence whose source says hardware',
      { reportSource: { mode: 'hardware', getReport: working().getReport } },
      { code: 'root_not_trusted' },
    ],
    [
      'a report that does not verify',
      { certificates: createSnpCertificates({ verifier: createVerifier({ roots: vendorRoots }), log: silent }) },
      { code: 'root_not_trusted' },
    ],
  ])('does not use and logs %s', async (_, changes, fault) => {
    const { selfReport, lines } = setUp(changes)
    await selfReport.ready()
    expect(() => selfReport.current()).toThrow(none)
    expect(lines.at(-1)).toMatchObject({ msg: 'Could not attest the coordinator', ...fault })
  })

  test.each<[string, Partial<SimulatedReportOptions>, string]>([
    ['that can be debugged', { policy: 0xb0000n }, 'debug_enabled'],
    ['at another privilege level', { vmpl: 1 }, 'vmpl_not_allowed'],
    ['under a VLEK', { signingKey: 'vlek' }, 'signing_key_not_allowed'],
    ['without the alias check', { platformInfo: 0x05n }, 'alias_check_missing'],
  ])('a guest %s is what every reader refuses: it is not attested', async (_, guest, code) => {
    const { selfReport, lines } = setUp({
      reportSource: {
        mode: 'mock',
        getReport: async (reportData) => ({ report: simulator.report({ reportData, ...guest }) }),
      },
      certificates: async ({ report }, at) => {
        const certificates = simulator.certificates({ signingKey: guest.signingKey ?? 'vcek' })
        return { certificates, verified: await verifier.verifyReport({ report, certificates, at }) }
      },
    })
    await selfReport.ready()
    expect(() => selfReport.current()).toThrow(none)
    expect(lines.at(-1)).toMatchObject({ msg: 'Could not attest the coordinator', code })
  })

  test('stop leaves no timer', async () => {
    const { selfReport, delays } = setUp()
    await selfReport.stop()
    expect(delays()).toEqual([])
    const other = setUp()
    await other.selfReport.ready()
    await other.selfReport.stop()
    expect(other.delays()).toEqual([])
  })
})

describe('certificates of a report', () => {
  let kds: FakeKds
  beforeEach(async () => {
    kds = await startFakeKds({ simulator })
  })
  afterEach(() => kds.close())

  const reportData = new Uint8Array(64).fill(7)
  const bare = (options: Partial<SimulatedReportOptions> = {}): Report => ({
    report: simulator.report({ reportData, ...options }),
  })
  const toPem = (...ders: Uint8Array[]) =>
    ders
      .map((der) => `-----BEGIN CERTIFICATE-----\n${Buffer.from(der).toString('base64')}\n-----END CERTIFICATE-----\n`)
      .join('')
  const find = (evidence: Report, deps: Partial<SnpCertificatesDeps> = {}) =>
    createSnpCertificates({ verifier, log: silent, ...deps })(evidence, start)
  const client = (timeoutMs = 5_000) => createKdsClient({ url: kds.url, timeoutMs })

  test('come from the host’s table without other requests', async () => {
    const evidence = await working().getReport(reportData)
    const { certificates } = await find(evidence, { kds: client() })
    expect(certificates.ek).toEqual(simulator.certificates().ek)
    expect(kds.requests).toEqual([])
  })

  test('come from a file in any order, for a VCEK and for a VLEK', async () => {
    const { ek, ask, ark } = simulator.certificates()
    expect((await find(bare(), { pem: toPem(ark, ek, ask) })).certificates).toEqual({ ek, ask, ark })
    const vlek = simulator.certificates({ signingKey: 'vlek' })
    const pem = toPem(ark, ek, ask, vlek.ask, vlek.ek)
    const { certificates } = await find(bare({ signingKey: 'vlek' }), { pem })
    expect(certificates).toEqual(vlek)
  })

  test('come from the KDS by chip and TCB, with one request for many reports', async () => {
    const get = createSnpCertificates({ verifier, log: silent, kds: client() })
    const { certificates } = await get(bare(), start)
    expect(certificates).toEqual(simulator.certificates())
    expect(kds.requests[0]).toMatch(/^\/vcek\/v1\/Milan\/[0-9a-f]{128}\?blSPL=4&teeSPL=0&snpSPL=24&ucodeSPL=219$/)
    await get(bare(), start)
    expect(kds.requests).toHaveLength(2)
    const updated = { bootLoader: 5, tee: 0, snp: 25, microcode: 220 }
    const later = await get(bare({ reportedTcb: updated }), start)
    expect(later.certificates).toEqual(simulator.certificates({ tcb: updated }))
    expect(kds.requests).toHaveLength(4)
  })

  test('for a version 2 report, which does not name its processor, the KDS identifies it', async () => {
    await expect(find(bare({ version: 2 }), { kds: client() })).resolves.toBeDefined()
  })

  test('makes no request for a chip that hides its id', async () => {
    await expect(find(bare({ chipId: new Uint8Array(64) }), { kds: client() })).rejects.toMatchObject({
      code: 'certificates_missing',
    })
    expect(kds.requests).toEqual([])
  })

  test.each<[FakeKdsFault, string]>([
    ['down', 'vendor_unreachable'],
    ['slow', 'vendor_unreachable'],
    ['not_found', 'vendor_refused'],
    ['too_many', 'vendor_refused'],
    ['server_error', 'vendor_refused'],
    ['garbage', 'vendor_answer_malformed'],
    ['truncated', 'vendor_answer_malformed'],
    ['wrong_chip', 'report_chip_mismatch'],
    ['wrong_signature', 'root_not_trusted'],
    ['expired', 'certificate_not_in_date'],
  ])('KDS %s: %s', async (fault, code) => {
    kds.setFault(fault)
    await expect(find(bare(), { kds: client(fault === 'slow' ? 50 : 5_000) })).rejects.toMatchObject({ code })
  })

  test('tries the file and then the KDS if the host’s table is malformed', async () => {
    const { ek, ask, ark } = simulator.certificates()
    const evidence = { ...bare(), certificates: new Uint8Array(30).fill(1) }
    await expect(find(evidence, { pem: toPem(ek, ask, ark) })).resolves.toBeDefined()
    const pem = toPem(ek, simulator.certificates({ faults: { askWrongIssuer: true } }).ask, ark)
    await expect(find(evidence, { pem, kds: client() })).resolves.toBeDefined()
    await expect(find(evidence, { pem })).rejects.toMatchObject({ code: 'certificate_chain_invalid' })
    await expect(find(evidence)).rejects.toMatchObject({ code: 'cert_table_malformed' })
  })

  test('fetches the remaining certificates from the KDS if the host has only the VCEK', async () => {
    const { certificates: table = new Uint8Array() } = await working().getReport(reportData)
    // Removes two of the three entries from the header. Their data is left over and ignored.
    const evidence = { ...bare(), certificates: new Uint8Array(table).fill(0, 24, 96) }
    await expect(find(evidence, { kds: client() })).resolves.toBeDefined()
    expect(kds.requests).toEqual(['/vcek/v1/Milan/cert_chain'])
  })

  test('rejects a PEM text with other content', async () => {
    await expect(find(bare(), { pem: toPem(new Uint8Array([1, 2, 3])) })).rejects.toMatchObject({
      code: 'certificate_malformed',
    })
    await expect(find(bare(), { pem: 'nothing' })).rejects.toMatchObject({ code: 'certificates_missing' })
  })

  test('Turin: eight bytes of chip id, and the new part', async () => {
    const asked: string[] = []
    const fetch = async (url: string) => {
      asked.push(url)
      return new Response(null, { status: 404 })
    }
    const turin = createKdsClient({ fetch })
    const tcb = { fmc: 1, bl: 2, tee: 3, snp: 4, ucode: 5 }
    const chipId = new Uint8Array(64).fill(0xab, 0, 8)
    await expect(turin.getVcek({ product: 'Turin', chipId, tcb })).rejects.toMatchObject({ code: 'vendor_refused' })
    expect(asked).toEqual([
      'https://kdsintf.amd.com/vcek/v1/Turin/abababababababab?fmcSPL=1&blSPL=2&teeSPL=3&snpSPL=4&ucodeSPL=5',
    ])
  })
})

describe('AMD’s revocation list', () => {
  const DAY_MS = 24 * 60 * MINUTE_MS
  const lists = { ok: simulator.revocations(), revoked: simulator.revocations({ revoked: ['ask'] }) }

  const createLargeList = (revoked: ('ask' | 'asvk')[]) =>
    simulator.revocations({ revoked: Array.from({ length: 1_200 }, () => revoked).flat() })

  /** A KDS whose responses the test controls. */
  function setUpList(answer: () => Promise<Uint8Array>) {
    const kds = { calls: [] as object[], answer }
    const getRevocations = (asked: object) => {
      kds.calls.push(asked)
      return kds.answer()
    }
    const time = createManualTime(start)
    const revocations = createSnpRevocations({ verifier, kds: { getRevocations }, log: time.log })
    const deps = {
      reportSource: working(),
      certificates: createSnpCertificates({ verifier, log: silent }),
      revocations,
    }
    const selfReport = createSelfReport({ ...deps, configHash, ...time })
    return { ...time, ...deps, kds, selfReport }
  }
  const refused = async () => {
    throw new VendorError('vendor_refused', 'refused')
  }

  test('is kept next to the attestation, never in it, and fetched once a day', async () => {
    const { selfReport, kds, pass, nextLine } = setUpList(async () => lists.ok)
    await selfReport.ready()
    expect(selfReport.current().revocations).toBe(toHex(lists.ok))
    expect(selfReport.current().selfAttestation).not.toHaveProperty('revocations')
    expect(kds.calls).toEqual([{ product: 'Milan', kind: 'VCEK' }])
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(kds.calls).toHaveLength(1)
    await Promise.all([nextLine(), pass(DAY_MS)])
    expect(kds.calls).toHaveLength(2)
  })

  test('is fetched again if the clock that fetched it was ahead and is set back', async () => {
    const { kds, certificates, revocations } = setUpList(async () => lists.ok)
    const judged = await certificates(await working().getReport(new Uint8Array(64)), start)
    await revocations(judged, new Date(start.getTime() + 2 * DAY_MS))
    await revocations(judged, start)
    expect(kds.calls).toHaveLength(2)
    await revocations(judged, new Date(start.getTime() + DAY_MS - 1))
    expect(kds.calls).toHaveLength(2)
  })

  test('a coordinator with revoked certificates does not attest itself', async () => {
    const { selfReport, lines } = setUpList(async () => lists.revoked)
    await selfReport.ready()
    expect(() => selfReport.current()).toThrow(none)
    expect(lines.at(-1)).toMatchObject({ msg: 'Could not attest the coordinator', code: 'certificate_revoked' })
  })

  test('a revocation ends the current attestation', async () => {
    const { selfReport, kds, pass, nextLine } = setUpList(refused)
    await selfReport.ready()
    expect(selfReport.current().revocations).toBeUndefined()
    kds.answer = async () => lists.revoked
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(() => selfReport.current()).toThrow(none)
  })

  test('a revocation stays in effect while AMD is unreachable, even if an older list is still valid', async () => {
    const { selfReport, kds, jump, pass, nextLine, lines } = setUpList(async () => lists.ok)
    await selfReport.ready()
    kds.answer = async () => lists.revoked
    jump(DAY_MS)
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    expect(() => selfReport.current()).toThrow(none)
    kds.answer = refused
    await Promise.all([nextLine(), pass(5_000)])
    await selfReport.stop()
    expect(() => selfReport.current()).toThrow(none)
    expect(lines.at(-1)).toMatchObject({ code: 'certificate_revoked' })
  })

  test('a fetched list stays in use while AMD is unreachable', async () => {
    const { selfReport, kds, jump, pass, nextLine, lines } = setUpList(async () => lists.ok)
    await selfReport.ready()
    kds.answer = refused
    jump(DAY_MS)
    await Promise.all([nextLine(), pass(10 * MINUTE_MS)])
    await selfReport.stop()
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'Could not fetch AMD’s revocation list' }))
    expect(selfReport.current().revocations).toBe(toHex(lists.ok))
  })

  test.each<[string, Uint8Array, string]>([
    ['out of date', simulator.revocations({ faults: { expired: true } }), 'crl_expired'],
    ['not yet valid', simulator.revocations({ faults: { notYetValid: true } }), 'crl_not_yet_valid'],
    ['without an end', simulator.revocations({ faults: { noNextUpdate: true } }), 'crl_without_next_update'],
    ['of another signer', simulator.revocations({ faults: { wrongSigner: true } }), 'crl_signature_invalid'],
    ['no list', new TextEncoder().encode('<html>'), 'crl_malformed'],
  ])('ignores one that is %s, and the coordinator attests itself without it', async (_, list, code) => {
    const { selfReport, lines } = setUpList(async () => list)
    await selfReport.ready()
    expect(selfReport.current()).not.toHaveProperty('revocations')
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'Could not use AMD’s revocation list', code }))
  })

  test('a list that is too large for an introduction is checked but not included', async () => {
    const large = { ok: createLargeList(['asvk']), revoked: createLargeList(['ask']) }
    expect(large.ok.length).toBeGreaterThan(32_768)
    const { selfReport, lines } = setUpList(async () => large.ok)
    await selfReport.ready()
    expect(selfReport.current()).not.toHaveProperty('revocations')
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'AMD’s revocation list is too large to use' }))
    const revoked = setUpList(async () => large.revoked)
    await revoked.selfReport.ready()
    expect(() => revoked.selfReport.current()).toThrow(none)
  })

  test('the KDS has one list per product and kind of key, read with a size limit', async () => {
    const kds = await startFakeKds({ simulator })
    try {
      const client = createKdsClient({ url: kds.url, timeoutMs: 5_000 })
      for (const kind of ['VCEK', 'VLEK'] as const) {
        expect(await client.getRevocations({ product: 'Milan', kind })).toEqual(new Uint8Array(lists.ok))
      }
      expect(kds.requests).toEqual(['/vcek/v1/Milan/crl', '/vlek/v1/Milan/crl'])
      kds.setFault('too_many')
      const asked = client.getRevocations({ product: 'Milan', kind: 'VCEK' })
      await expect(asked).rejects.toMatchObject({ name: 'VendorError', code: 'vendor_refused' })
    } finally {
      await kds.close()
    }
    const fetch = async () => new Response(new Uint8Array(65_537))
    const asked = createKdsClient({ fetch }).getRevocations({ product: 'Turin', kind: 'VCEK' })
    await expect(asked).rejects.toMatchObject({ code: 'vendor_answer_malformed' })
  })
})
