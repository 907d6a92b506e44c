import { concatBytes, fromHex, ServiceError, toHex } from '@countersign/protocol'
import { p256, p384 } from '@noble/curves/nist.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { describe, expect, test } from 'vitest'
import { createAmdPki, primeOffsets } from './amdPki.ts'
import * as simulatorModule from './index.ts'
import { createSimulator, type SimulatedQuoteOptions, simulatedRoots } from './index.ts'
import { createIntelPki } from './intelPki.ts'
import { developmentSeed } from './keys.ts'

const at = new Date('2026-06-15T12:00:00.789Z')
const simulator = createSimulator({ at })
const reportData = Uint8Array.from({ length: 64 }, (_, index) => index)

test('the exports of the subpath', () => {
  expect(Object.keys(simulatorModule).sort()).toMatchInlineSnapshot(`
    [
      "createSimulatedBeacon",
      "createSimulatedSatellite",
      "createSimulator",
      "developmentSeed",
      "simulatedEntropyKeys",
      "simulatedRoots",
      "strangerSeed",
    ]
  `)
})

describe('determinism', () => {
  test('creates the same bytes for the same seed and time', () => {
    const again = createSimulator({ at })
    expect(again.quote({ reportData })).toEqual(simulator.quote({ reportData }))
    expect(again.collateral()).toEqual(simulator.collateral())
    expect(again.report({ reportData })).toEqual(simulator.report({ reportData }))
    expect(again.certificates()).toEqual(simulator.certificates())
  })

  test('creates the same keys and certificates again', () => {
    const amd = createAmdPki(developmentSeed, primeOffsets[developmentSeed])
    expect(amd.certificates()).toEqual(simulator.certificates())
    const intel = createIntelPki(developmentSeed)
    const { pem } = readQuote(simulator.quote({ reportData }))
    expect(fromPem(pem)).toEqual([intel.pck(), intel.pckCa(), intel.root()].map((bytes) => bytes.slice()))
  })

  test('changes only the collateral with the time', () => {
    const later = createSimulator({ at: new Date('2030-01-01T00:00:00Z') })
    expect(later.intelRoot).toEqual(simulator.intelRoot)
    expect(later.quote({ reportData })).toEqual(simulator.quote({ reportData }))
    expect(later.collateral()).not.toEqual(simulator.collateral())
    expect(later.collateral({ at })).toEqual(simulator.collateral())
  })

  test('creates another platform and root for another seed', () => {
    const other = createSimulator({ seed: 'another seed 2', at })
    expect(other.intelRoot.certificateSha256).not.toBe(simulator.intelRoot.certificateSha256)
    expect(other.amdRoot.certificateSha256).not.toBe(simulator.amdRoot.certificateSha256)
    expect(other.quote({ reportData })).not.toEqual(simulator.quote({ reportData }))
  })
})

describe('roots', () => {
  test('have not changed for the public seed', () => {
    expect(simulatedRoots().map(({ vendor, mode, certificateSha256 }) => [vendor, mode, certificateSha256])).toEqual([
      ['intel', 'mock', '6968b39acb0d686a4edc8e62dec6e788b15d721a8e4cc470fefc50a4f846b814'],
      ['amd', 'mock', '826d538266ac2df156e0b5c32f5a545eac5dee4d29331b8bc38c12771fb78732'],
    ])
    expect(simulatedRoots()).toEqual([simulator.intelRoot, simulator.amdRoot])
  })

  test('are the roots in the evidence', () => {
    const { pem } = readQuote(simulator.quote({ reportData }))
    const certificates = fromPem(pem)
    expect(certificates).toHaveLength(3)
    expect(toHex(sha256(certificates[2] ?? new Uint8Array()))).toBe(simulator.intelRoot.certificateSha256)
    expect(toHex(sha256(simulator.certificates().ark))).toBe(simulator.amdRoot.certificateSha256)
    expect(toHex(simulator.certificates().ark)).toContain(simulator.amdRoot.publicKey)
  })
})

describe('quotes', () => {
  test.each([
    { options: {}, version: 4, bodyType: undefined, bodyLength: 584 },
    { options: { version: 5, body: 'td10' }, version: 5, bodyType: 2, bodyLength: 584 },
    { options: { version: 5 }, version: 5, bodyType: 3, bodyLength: 648 },
    { options: { body: 'td15' }, version: 5, bodyType: 3, bodyLength: 648 },
    { options: { status: 'TDRelaunchAdvised' }, version: 5, bodyType: 3, bodyLength: 648 },
  ] as const)('layout and signature of $options', ({ options, version, bodyType, bodyLength }) => {
    const quote = readQuote(simulator.quote({ reportData, ...options }))
    expect(quote).toMatchObject({ version, bodyType, outerType: 6, innerType: 5, trailing: new Uint8Array() })
    expect(quote.body).toHaveLength(bodyLength)
    expect(quote.body.slice(520, 584)).toEqual(reportData)
    expect(quote.pem.endsWith('-----END CERTIFICATE-----\n\0')).toBe(true)
    const key = concatBytes(Uint8Array.of(4), quote.attestationKey)
    expect(p256.verify(quote.signature, quote.signed, key, { lowS: false })).toBe(true)
    const binding = sha256(concatBytes(quote.attestationKey, quote.authentication))
    expect(quote.qeReport.slice(320)).toEqual(concatBytes(binding, new Uint8Array(32)))
  })

  test('writes every field at its offset', () => {
    const fields = {
      teeTcbSvn: [0, 16],
      mrSeam: [16, 48],
      tdAttributes: [120, 8],
      xfam: [128, 8],
      mrtd: [136, 48],
      mrConfigId: [184, 48],
      mrOwner: [232, 48],
      mrOwnerConfig: [280, 48],
      teeTcbSvn2: [584, 16],
      mrServiceTd: [600, 48],
    } as const
    for (const [name, [offset, length]] of Object.entries(fields)) {
      const value = new Uint8Array(length).fill(0xab)
      const { body } = readQuote(simulator.quote({ reportData, version: 5, [name]: value }))
      expect(body.slice(offset, offset + length), name).toEqual(value)
    }
    const rtmrs = [1, 2, 3, 4].map((byte) => new Uint8Array(48).fill(byte))
    const { body } = readQuote(simulator.quote({ reportData, rtmrs: rtmrs as never }))
    expect(body.slice(328, 520)).toEqual(concatBytes(...rtmrs))
  })

  test('bytes after the signature', () => {
    const trailing = Uint8Array.of(0, 0, 1)
    expect(readQuote(simulator.quote({ reportData, trailing })).trailing).toEqual(trailing)
  })

  test('rejects impossible options', () => {
    const quote = (options: Partial<SimulatedQuoteOptions>) => () => simulator.quote({ reportData, ...options })
    expect(codeOf(quote({ reportData: new Uint8Array(63) }))).toBe('invalid_report_data')
    expect(codeOf(quote({ mrtd: new Uint8Array(47) }))).toBe('simulator_option_invalid')
    expect(codeOf(quote({ version: 4, body: 'td15' }))).toBe('simulator_option_invalid')
    expect(codeOf(quote({ version: 4, status: 'TDRelaunchAdvised' }))).toBe('simulator_option_invalid')
    expect(codeOf(quote({ moduleVersion: 0, status: 'TDRelaunchAdvised' }))).toBe('simulator_option_invalid')
  })
})

describe('collateral', () => {
  const collateral = simulator.collateral()

  test('texts are canonical: PEM of 64 columns, lower-case hex, JSON as it would be written again', () => {
    const { pck_crl_issuer_chain, tcb_info_issuer_chain, qe_identity_issuer_chain } = collateral
    for (const chain of [pck_crl_issuer_chain, tcb_info_issuer_chain, qe_identity_issuer_chain]) {
      expect(chain).toMatch(
        /^(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/]{64}\n)*[A-Za-z0-9+/]{1,64}={0,2}\n-----END CERTIFICATE-----\n){2}$/,
      )
    }
    expect(collateral.pck_crl).toMatch(/^([0-9a-f]{2})+$/)
    expect(collateral.root_ca_crl).toMatch(/^([0-9a-f]{2})+$/)
    expect(JSON.stringify(JSON.parse(collateral.tcb_info))).toBe(collateral.tcb_info)
    expect(JSON.stringify(JSON.parse(collateral.qe_identity))).toBe(collateral.qe_identity)
  })

  test('is issued a day before and valid for 30 days', () => {
    const dates = { issueDate: '2026-06-14T12:00:00Z', nextUpdate: '2026-07-14T12:00:00Z' }
    expect(JSON.parse(collateral.tcb_info)).toMatchObject(dates)
    expect(JSON.parse(collateral.qe_identity)).toMatchObject(dates)
  })

  test('edits texts before signing them', () => {
    const edited = simulator.collateral({ editTcbInfo: (text) => text.replace('"TDX"', '"XDT"') })
    expect(edited.tcb_info).toContain('"id":"XDT"')
    const { point } = readKey(fromPem(edited.tcb_info_issuer_chain)[0])
    const message = new TextEncoder().encode(edited.tcb_info)
    expect(p256.verify(fromHex(edited.tcb_info_signature), message, point, { lowS: false })).toBe(true)
  })

  test('there is one level per status, in descending order', () => {
    const { tcbLevels, tcbEvaluationDataNumber } = JSON.parse(collateral.tcb_info)
    expect(tcbLevels.map((level: { tcbStatus: string }) => level.tcbStatus)).toEqual([
      'UpToDate',
      'SWHardeningNeeded',
      'ConfigurationNeeded',
      'ConfigurationAndSWHardeningNeeded',
      'OutOfDate',
      'OutOfDateConfigurationNeeded',
      'Revoked',
    ])
    expect(tcbEvaluationDataNumber).toBe(20)
  })
})

describe('reports', () => {
  test.each([
    { version: 2, signingKey: 'vcek' },
    { version: 3, signingKey: 'vcek' },
    { version: 5, signingKey: 'vcek' },
    { version: 3, signingKey: 'vlek' },
  ] as const)('version $version is signed by its $signingKey', ({ version, signingKey }) => {
    const report = simulator.report({ reportData, version, signingKey })
    expect(report).toHaveLength(1184)
    expect(report.slice(0x50, 0x90)).toEqual(reportData)
    const { point } = readKey(simulator.certificates({ signingKey }).ek)
    const signature = concatBytes(report.slice(0x2a0, 0x2d0).reverse(), report.slice(0x2e8, 0x318).reverse())
    expect(p384.verify(signature, report.subarray(0, 0x2a0), point, { lowS: false })).toBe(true)
  })

  test('creates a key for each chip and TCB', () => {
    const chipId = new Uint8Array(64).fill(9)
    const tcb = { bootLoader: 3, tee: 0, snp: 8, microcode: 115 }
    const report = simulator.report({ reportData, chipId, reportedTcb: tcb })
    const { point } = readKey(simulator.certificates({ chipId, tcb }).ek)
    const signature = concatBytes(report.slice(0x2a0, 0x2d0).reverse(), report.slice(0x2e8, 0x318).reverse())
    expect(p384.verify(signature, report.subarray(0, 0x2a0), point, { lowS: false })).toBe(true)
    expect(readKey(simulator.certificates().ek).point).not.toEqual(point)
  })

  test('the guest policy', () => {
    const policyOf = (report: Uint8Array) => new DataView(report.slice().buffer).getBigUint64(8, true)
    expect(policyOf(simulator.report({ reportData }))).toBe(0x30000n)
    expect(policyOf(simulator.report({ reportData, policy: 5n }))).toBe(5n)
  })

  test('rejects report data of another length', () => {
    expect(codeOf(() => simulator.report({ reportData: new Uint8Array(65) }))).toBe('invalid_report_data')
  })
})

/** Reads a quote by the lengths it states, without judging it. */
function readQuote(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const version = view.getUint16(0, true)
  const bodyType = version === 5 ? view.getUint16(48, true) : undefined
  const bodyStart = version === 5 ? 54 : 48
  const bodyEnd = bodyStart + (version === 5 ? view.getUint32(50, true) : 584)
  const start = bodyEnd + 4
  const end = start + view.getUint32(bodyEnd, true)
  const qeStart = start + 128 + 6
  const authenticationStart = qeStart + 448 + 2
  const innerStart = authenticationStart + view.getUint16(qeStart + 448, true)
  expect(qeStart + view.getUint32(start + 130, true)).toBe(end)
  expect(innerStart + 6 + view.getUint32(innerStart + 2, true)).toBe(end)
  return {
    version,
    bodyType,
    body: bytes.slice(bodyStart, bodyEnd),
    signed: bytes.slice(0, bodyEnd),
    signature: bytes.slice(start, start + 64),
    attestationKey: bytes.slice(start + 64, start + 128),
    outerType: view.getUint16(start + 128, true),
    qeReport: bytes.slice(qeStart, qeStart + 384),
    authentication: bytes.slice(authenticationStart, innerStart),
    innerType: view.getUint16(innerStart, true),
    pem: new TextDecoder().decode(bytes.subarray(innerStart + 6, end)),
    trailing: bytes.slice(end),
  }
}

function fromPem(text: string): Uint8Array[] {
  const blocks = text.match(/(?<=BEGIN CERTIFICATE-----\n)[^-]*/g) ?? []
  return blocks.map((block) => Uint8Array.from(atob(block), (character) => character.charCodeAt(0)))
}

/** The first uncompressed point of an elliptic curve in a certificate. */
function readKey(certificate: Uint8Array = new Uint8Array()): { point: Uint8Array } {
  const match = /2a8648ce3d0201(?:06082a8648ce3d030107034200(04.{128})|06052b81040022036200(04.{192}))/.exec(
    toHex(certificate),
  )
  return { point: fromHex(match?.[1] ?? match?.[2] ?? '') }
}

function codeOf(call: () => unknown): string | undefined {
  try {
    call()
  } catch (error) {
    if (error instanceof ServiceError) return error.code
    throw error
  }
  return undefined
}
