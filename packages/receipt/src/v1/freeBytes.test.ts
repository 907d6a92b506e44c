import {
  assertQuotePolicy,
  assertReportPolicy,
  createVerifier,
  PolicyError,
  parseCollateral,
  parsePem,
  parseQuote,
  QuoteError,
} from '@countersign/attestation'
import { concatBytes, fromHex, toCanonicalJson, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { p256, p384 } from '@noble/curves/nist.js'
import { describe, expect, test } from 'vitest'
import { readSpecFile } from '../../spec/createSpecFiles.ts'
import { checkReceipt } from './checkReceipt.ts'
import { toCid } from './cid.ts'
import type { AttestationReceiptV1 } from './schema.ts'
import type { StepId } from './steps.ts'

/*
 * Which bytes of a receipt are free: what anybody can change, without a key, so that every step still passes. The page of the
 * format lists them; all of those are accepted here, and nothing else is.
 */

const text = readSpecFile('golden/receipt.json')
const collateral = new TextEncoder().encode(readSpecFile('golden/collateral.json'))
const { roots, anchors, mockEntropyKeys } = JSON.parse(readSpecFile('golden/expected.json'))
const golden = JSON.parse(text) as AttestationReceiptV1
const verifier = createVerifier({ roots })
const at = new Date(golden.signer.statement.signedAt)

/** The first step that fails, or undefined where none does. */
async function findFailure(receipt: Uint8Array): Promise<StepId | undefined> {
  const failed = Symbol('a step failed')
  let first: StepId | undefined
  const onStep = ({ id, status }: { id: StepId; status: string }) => {
    if (status !== 'fail') return
    first = id
    // There are many to try, and whatever comes after does not change the answer.
    throw failed
  }
  try {
    const check = await checkReceipt(receipt, collateral, { roots, anchors, mockEntropyKeys, verifier, onStep })
    expect(check).toMatchObject({ verdict: 'mock', isKnownCode: true })
  } catch (error) {
    if (error !== failed) throw error
  }
  return first
}

function edit(change: (receipt: AttestationReceiptV1) => void): Uint8Array {
  const receipt = structuredClone(golden)
  change(receipt)
  return toCanonicalJson(receipt)
}

describe('no byte by itself is free', () => {
  const { quoteHex } = golden.signer
  const { reportHex, certificates } = golden.coordinator.selfAttestation
  const parsedCollateral = parseCollateral(readSpecFile('golden/collateral.json'))

  /** Whether evidence is refused already by itself, which is quicker to see than in its receipt. */
  async function isRefused(verify: () => Promise<void>): Promise<boolean> {
    try {
      await verify()
      return false
    } catch (error) {
      if (error instanceof QuoteError || error instanceof PolicyError) return true
      throw error
    }
  }
  const isQuoteRefused = (hex: string) =>
    isRefused(async () =>
      assertQuotePolicy(await verifier.verifyQuote({ quote: fromHex(hex), collateral: parsedCollateral, at })),
    )
  const isReportRefused = (changes: { report?: string; ek?: string; ask?: string; ark?: string }) => {
    const { report, ek, ask, ark } = { report: reportHex, ...certificates, ...changes }
    const chain = { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) }
    return isRefused(async () =>
      assertReportPolicy(await verifier.verifyReport({ report: fromHex(report), certificates: chain, at })),
    )
  }
  const evidence: [value: string, isRefused: (hex: string) => Promise<boolean>][] = [
    [quoteHex, isQuoteRefused],
    [reportHex, (report) => isReportRefused({ report })],
    [certificates.ek, (ek) => isReportRefused({ ek })],
    [certificates.ask, (ask) => isReportRefused({ ask })],
    [certificates.ark, (ark) => isReportRefused({ ark })],
  ]

  /** Another character, of the same kind where it is a hex digit, so that it is not refused for its form alone. */
  function toNeighbour(character: string): string {
    if (/[0-9a-f]/.test(character)) return (Number.parseInt(character, 16) ^ 1).toString(16)
    return String.fromCharCode(character.charCodeAt(0) ^ 1)
  }

  async function isAccepted(position: number): Promise<boolean> {
    const replace = (whole: string, index: number) =>
      `${whole.slice(0, index)}${toNeighbour(whole[index] ?? '')}${whole.slice(index + 1)}`
    for (const [value, isEvidenceRefused] of evidence) {
      const index = position - text.indexOf(value)
      if (index >= 0 && index < value.length && (await isEvidenceRefused(replace(value, index)))) return false
    }
    return (await findFailure(new TextEncoder().encode(replace(text, position)))) === undefined
  }

  const parts = 8
  test.each(Array.from({ length: parts }, (_, part) => [part + 1]))(
    'every byte of the golden receipt changed, eighth %i',
    async (part) => {
      const accepted: number[] = []
      for (let position = part - 1; position < text.length; position += parts) {
        if (await isAccepted(position)) accepted.push(position)
      }
      expect(accepted).toEqual([])
    },
    120_000,
  )
})

const parsed = parseQuote(fromHex(golden.signer.quoteHex))
/** As it stands in the quote: the simulator ends it with a NUL, as some quoting services do. */
const pckChain = `${parsed.pckChain}\0`

/** A quote whose parts after the signed ones are replaced; every length in it is made right. */
function rebuildQuote(changes: { signature?: Uint8Array; qeReportSignature?: Uint8Array; pem?: string }): Uint8Array {
  const { signature, qeReportSignature, pem } = {
    signature: parsed.signature,
    qeReportSignature: parsed.qeReportSignature,
    pem: pckChain,
    ...changes,
  }
  const number = (value: number, size: number) => Uint8Array.from({ length: size }, (_, index) => value >> (8 * index))
  const chain = Uint8Array.from(pem, (character) => character.charCodeAt(0))
  const { qeAuthData: auth } = parsed
  const inner = concatBytes(
    concatBytes(parsed.qeReport.raw, qeReportSignature, number(auth.length, 2), auth),
    concatBytes(number(5, 2), number(chain.length, 4), chain),
  )
  const data = concatBytes(signature, parsed.attestationKey, number(6, 2), number(inner.length, 4), inner)
  return concatBytes(parsed.signed, number(data.length, 4), data)
}

const withQuote = (quote: Uint8Array) =>
  edit(({ signer }) => {
    signer.quoteHex = toHex(quote)
  })

/** r ‖ s → r ‖ n − s. */
function toOtherS(raw: Uint8Array): Uint8Array {
  const { r, s } = p256.Signature.fromBytes(raw, 'compact')
  return new p256.Signature(r, p256.Point.CURVE().n - s).toBytes('compact')
}

/** The PCK chain with n − s in the signature of one certificate; its length may change with that of the number. */
function withOtherSIn(index: number): string {
  const chain = parsePem(parsed.pckChain)
  const der = chain[index] as Uint8Array
  const length = (offset: number) => ((der[offset] ?? 0) << 8) | (der[offset + 1] ?? 0)
  // SEQUENCE (30 82 nn nn) of the signed part (30 82 nn nn), the algorithm (30 nn), and the signature in a BIT STRING (03 nn 00).
  const algorithm = 8 + length(6)
  const signature = algorithm + 2 + (der[algorithm + 1] ?? 0)
  const { r, s } = p256.Signature.fromBytes(der.subarray(signature + 3), 'der')
  const other = new p256.Signature(r, p256.Point.CURVE().n - s).toBytes('der')
  const bits = concatBytes(Uint8Array.of(3, other.length + 1, 0), other)
  const body = concatBytes(der.subarray(4, signature), bits)
  const changed = concatBytes(Uint8Array.of(0x30, 0x82, body.length >> 8, body.length & 0xff), body)
  return `${chain.with(index, changed).map(toPem).join('')}\0`
}

function toPem(der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

const withEventLog = (eventLog: string) => edit(({ signer }) => void Object.assign(signer, { eventLog }))
const toLog = (imr: number, type: number) =>
  JSON.stringify([{ imr, event_type: type, digest: type === 1 ? '00'.repeat(48) : '', event: 'a', event_payload: '' }])

const zeros = (length: number) => withQuote(concatBytes(fromHex(golden.signer.quoteHex), new Uint8Array(length)))
const quoteLength = golden.signer.quoteHex.length / 2

describe('what is free, as the page of the format lists it', () => {
  test('a quote that is put together again is the golden one', () => {
    expect(toHex(rebuildQuote({}))).toBe(golden.signer.quoteHex)
    expect(parsed.trailing).toHaveLength(0)
  })

  test.each<[string, () => Uint8Array]>([
    ['signer.mode', () => edit(({ signer }) => void Object.assign(signer, { mode: 'hardware' }))],
    ['coordinator.mode', () => edit(({ coordinator }) => void Object.assign(coordinator, { mode: 'hardware' }))],
    ['signer.quoteVerified', () => edit(({ signer }) => void Object.assign(signer, { quoteVerified: false }))],
    ['n − s of the quote’s signature', () => withQuote(rebuildQuote({ signature: toOtherS(parsed.signature) }))],
    [
      'n − s of the signature of the QE report',
      () => withQuote(rebuildQuote({ qeReportSignature: toOtherS(parsed.qeReportSignature) })),
    ],
    ['n − s of the signature of the PCK certificate', () => withQuote(rebuildQuote({ pem: withOtherSIn(0) }))],
    ['n − s of the signature of the PCK authority', () => withQuote(rebuildQuote({ pem: withOtherSIn(1) }))],
    ['a zero after the quote', () => zeros(1)],
    ['zeros after the quote, up to 64 KiB', () => zeros(65_536 - quoteLength)],
    ['no NUL at the end of the PCK chain', () => withQuote(rebuildQuote({ pem: parsed.pckChain }))],
    [
      'no line feed at the end of the PCK chain',
      () => withQuote(rebuildQuote({ pem: `${parsed.pckChain.slice(0, -1)}\0` })),
    ],
    ['an empty event log, where RTMR3 is zero', () => withEventLog('[]')],
    ['the same with white space', () => withEventLog('[ ]\n')],
  ])('%s: every step passes, under another CID', async (_, create) => {
    const changed = create()
    expect(await findFailure(changed)).toBeUndefined()
    expect(toCid(changed)).not.toBe(toCid(new TextEncoder().encode(text)))
  })
})

describe('what looks alike and is not free', () => {
  const { selfAttestation } = golden.coordinator
  const order = ed25519.Point.CURVE().n
  /** S → S + L, which lax verifiers take for the same signature. */
  const toOtherScalar = (signature: string) => {
    const scalar = BigInt(`0x${toHex(fromHex(signature.slice(64)).toReversed())}`) + order
    return `${signature.slice(0, 64)}${toHex(fromHex(scalar.toString(16).padStart(64, '0')).toReversed())}`
  }
  /** n − s in an SNP report: r and s have 72 bytes each, little-endian, at 2A0h (SEV-SNP ABI, table "ATTESTATION_REPORT"). */
  const withOtherSInReport = () => {
    const report = fromHex(selfAttestation.reportHex)
    const s = BigInt(`0x${toHex(report.slice(0x2e8, 0x330).toReversed())}`)
    const other = (p384.Point.CURVE().n - s).toString(16).padStart(144, '0')
    report.set(fromHex(other).toReversed(), 0x2e8)
    return toHex(report)
  }

  test.each<[string, StepId, () => Uint8Array]>([
    ['n − s of the signature of Intel’s root', 'quote', () => withQuote(rebuildQuote({ pem: withOtherSIn(2) }))],
    [
      'a byte after the quote that is not zero',
      'quote-policy',
      () => withQuote(concatBytes(rebuildQuote({}), Uint8Array.of(0, 1))),
    ],
    ['more than 64 KiB of quote and zeros', 'format', () => zeros(65_537 - quoteLength)],
    ['two NULs after the PCK chain', 'quote', () => withQuote(rebuildQuote({ pem: `${pckChain}\0` }))],
    ['two line feeds after the PCK chain', 'quote', () => withQuote(rebuildQuote({ pem: `${parsed.pckChain}\n\0` }))],
    ['a space after the PCK chain', 'quote', () => withQuote(rebuildQuote({ pem: `${parsed.pckChain} \0` }))],
    ['lines that end in CR LF', 'quote', () => withQuote(rebuildQuote({ pem: pckChain.replaceAll('\n', '\r\n') }))],
    [
      'a certificate twice',
      'quote',
      () => withQuote(rebuildQuote({ pem: parsed.pckChain + toPem(parsePem(parsed.pckChain)[2] as Uint8Array) })),
    ],
    [
      'n − s of the coordinator’s report, which the release covers',
      'release',
      () =>
        edit(({ coordinator }) => void Object.assign(coordinator.selfAttestation, { reportHex: withOtherSInReport() })),
    ],
    [
      'S + L of the release',
      'release',
      () => edit(({ coordinator }) => void Object.assign(coordinator, { release: toOtherScalar(coordinator.release) })),
    ],
    [
      'S + L of the sample’s signature',
      'entropy',
      () => edit(({ entropy }) => void Object.assign(entropy, { signatureHex: toOtherScalar(entropy.signatureHex) })),
    ],
    ['another mode than the two', 'format', () => edit(({ signer }) => void Object.assign(signer, { mode: 'real' }))],
    ['an event log with an event that RTMR3 does not have', 'quote', () => withEventLog(toLog(3, 0x08000001))],
    ['an event log with an entry that RTMR0 does not have', 'quote', () => withEventLog(toLog(0, 1))],
  ])('%s fails %s', async (_, step, create) => {
    expect(await findFailure(create())).toBe(step)
  })

  test('and n − s of the report is a good signature in itself', async () => {
    const { ek, ask, ark } = selfAttestation.certificates
    const certificates = { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) }
    const report = fromHex(withOtherSInReport())
    await expect(verifier.verifyReport({ report, certificates, at })).resolves.toBeDefined()
  })
})
