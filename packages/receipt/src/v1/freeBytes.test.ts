import { hash } from 'node:crypto'
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
import { p384 } from '@noble/curves/nist.js'
import { describe, expect, test } from 'vitest'
import { readSpecFile } from '../../spec/createSpecFiles.ts'
import { createFreeForms, createQuoteForms, toPem } from '../../test/quoteForms.ts'
import { canonicalBytes } from '../canonicalCodec.ts'
import type { StepId } from '../check/steps.ts'
import { checkReceipt } from '../checkReceipt.ts'
import { toCid } from '../cid.ts'
import { createReceiptSimulator } from '../simulator/index.ts'
import { assemble } from './assemble.ts'
import type { AttestationReceiptV1 } from './schema.ts'

/*
 * The free bytes of a receipt: anyone can change them without a key and every step still passes. All forms on the page of the format must be
 * accepted here, and no others.
 */

const text = readSpecFile('golden/receipt.json')
const collateral = new TextEncoder().encode(readSpecFile('golden/collateral.json'))
const { roots, anchors, mockEntropyKeys } = JSON.parse(readSpecFile('golden/expected.json'))
const golden = JSON.parse(text) as AttestationReceiptV1
const verifier = createVerifier({ roots })
const at = new Date(golden.signer.statement.signedAt)

const goldenContext = { roots, anchors, mockEntropyKeys, verifier, collateral }

/** The first failing step, if any. */
async function findFailure(receipt: Uint8Array, context: typeof goldenContext = goldenContext) {
  const failed = Symbol('a step failed')
  let first: StepId | undefined
  const onStep = ({ id, status }: { id: StepId; status: string }) => {
    if (status !== 'fail') return
    first = id
    // There are many changes to test, and later steps can't make the receipt valid again.
    throw failed
  }
  try {
    const check = await checkReceipt(receipt, context.collateral, { ...context, onStep })
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

describe('no single byte is free', () => {
  const { quoteHex } = golden.signer
  const { reportHex, certificates } = golden.coordinator.selfAttestation
  const parsedCollateral = parseCollateral(readSpecFile('golden/collateral.json'))

  /** Whether the evidence is already rejected without the receipt, which is faster to check than the receipt. */
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

  /** Another character. Hex digits stay hex digits, so that it isn't rejected only for its form. */
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

  test('rejects a change at every 31st byte of the golden receipt; `npm run sweep -- --target receipt` changes each', async () => {
    const accepted: number[] = []
    for (let position = 0; position < text.length; position += 31) {
      if (await isAccepted(position)) accepted.push(position)
    }
    expect(accepted).toEqual([])
  })
})

const quote = fromHex(golden.signer.quoteHex)
const { parsed, pckChain, rebuild, withOtherSIn } = createQuoteForms(quote)

const withQuote = (quote: Uint8Array) =>
  edit(({ signer }) => {
    signer.quoteHex = toHex(quote)
  })

const withEventLog = (eventLog: string) => edit(({ signer }) => void Object.assign(signer, { eventLog }))
const toLog = (imr: number, type: number) =>
  JSON.stringify([{ imr, event_type: type, digest: type === 1 ? '00'.repeat(48) : '', event: 'a', event_payload: '' }])

const zeros = (length: number) => withQuote(concatBytes(quote, new Uint8Array(length)))
const quoteLength = quote.length

describe('accepts every free form on the page of the format', () => {
  test('splitting and assembling a quote gives the golden one', () => {
    expect(toHex(rebuild({}))).toBe(golden.signer.quoteHex)
    expect(parsed.trailing).toHaveLength(0)
  })

  test.each<[string, () => Uint8Array]>([
    ['signer.mode', () => edit(({ signer }) => void Object.assign(signer, { mode: 'hardware' }))],
    ['coordinator.mode', () => edit(({ coordinator }) => void Object.assign(coordinator, { mode: 'hardware' }))],
    ['signer.quoteVerified', () => edit(({ signer }) => void Object.assign(signer, { quoteVerified: false }))],
    ...createFreeForms(quote).map(([name, form]): [string, () => Uint8Array] => [name, () => withQuote(form)]),
    ['an empty event log, where RTMR3 is zero', () => withEventLog('[]')],
    ['the same with white space', () => withEventLog('[ ]\n')],
  ])('%s: every step passes, under another CID', async (_, create) => {
    const changed = create()
    expect(await findFailure(changed)).toBeUndefined()
    expect(toCid(changed)).not.toBe(toCid(new TextEncoder().encode(text)))
  })
})

describe('an event log is measured only by its hashes', () => {
  const sha384 = (...parts: Uint8Array[]) => new Uint8Array(hash('sha384', concatBytes(...parts), 'buffer'))
  const zero = new Uint8Array(48)
  const digest = sha384(Uint8Array.of(1))
  const name = 'compose-hash'
  const payload = 'ab'.repeat(32)
  const runtimeDigest = sha384(Uint8Array.of(1, 0, 0, 8), new TextEncoder().encode(`:${name}:`), fromHex(payload))
  const boot = { imr: 0, event_type: 1, digest: toHex(digest), event: 'firmware', event_payload: '' }
  const runtime = { imr: 3, event_type: 0x08000001, digest: '', event: name, event_payload: payload }

  const rtmrs = [sha384(zero, digest), zero, zero, sha384(zero, runtimeDigest)] as const
  const issued = createReceiptSimulator().issue({ signedAt: at, quote: { rtmrs } })

  async function runCheck(eventLog: unknown, spell = JSON.stringify) {
    const issue = await issued
    const { batch } = issue.records
    const log = eventLog === undefined ? {} : { eventLog: spell(eventLog) }
    const context = { ...goldenContext, anchors: issue.anchors, collateral: issue.collateral }
    return findFailure(canonicalBytes(assemble({ ...issue.records, batch: { ...batch, ...log } })), context)
  }

  test.each<[string, unknown]>([
    ['as it is', [boot, runtime]],
    ['in another order of registers', [runtime, boot]],
    ['with the digest of a runtime event', [boot, { ...runtime, digest: toHex(runtimeDigest) }]],
    ['with a further member', [{ ...boot, note: 'hello' }, runtime]],
    [
      'with another type, name and payload than the digest',
      [{ ...boot, event_type: 2, event: 'x', event_payload: '00' }, runtime],
    ],
    ['without the entries of RTMR0', [runtime]],
    ['left out', undefined],
  ])('free: %s', async (_, log) => {
    expect(await runCheck(log)).toBeUndefined()
  })

  test('accepts other white space', async () => {
    expect(await runCheck([boot, runtime], (log) => JSON.stringify(log, undefined, 2))).toBeUndefined()
  })

  test.each<[string, unknown]>([
    ['another payload', [boot, { ...runtime, event_payload: 'cd'.repeat(32) }]],
    ['another name', [boot, { ...runtime, event: 'compose-hash2' }]],
    ['another digest', [{ ...boot, digest: toHex(sha384(Uint8Array.of(2))) }, runtime]],
    ['another digest of a runtime event', [boot, { ...runtime, digest: toHex(digest) }]],
    ['no runtime event', [boot]],
    ['a runtime event twice', [boot, runtime, runtime]],
  ])('not free: %s', async (_, log) => {
    expect(await runCheck(log)).toBe('quote')
  })
})

test('the three endings of a PCK chain differ in length, so no single byte turns one into another', () => {
  const isRead = (ending: string) => {
    try {
      parsePem(parseQuote(Uint8Array.from(rebuild({ pem: `${parsed.pckChain.slice(0, -1)}${ending}` }))).pckChain)
      return true
    } catch (error) {
      if (error instanceof QuoteError) return false
      throw error
    }
  }
  const bytes = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code))
  const endings = ['', ...bytes, ...bytes.flatMap((first) => ['\0', '\n', first].map((second) => `${first}${second}`))]
  expect(new Set(endings.filter(isRead))).toEqual(new Set(['', '\n', '\n\0']))
})

describe('similar forms that are not free', () => {
  const { selfAttestation } = golden.coordinator
  const order = ed25519.Point.CURVE().n
  /** S → S + L, which lax verifiers accept as the same signature. */
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
    ['n − s of the signature of Intel’s root', 'quote', () => withQuote(rebuild({ pem: withOtherSIn(2) }))],
    [
      'a byte after the quote that is not zero',
      'quote-policy',
      () => withQuote(concatBytes(rebuild({}), Uint8Array.of(0, 1))),
    ],
    ['more than 64 KiB of quote and zeros', 'format', () => zeros(65_537 - quoteLength)],
    [
      'a NUL without a line feed after the PCK chain',
      'quote',
      () => withQuote(rebuild({ pem: `${parsed.pckChain.slice(0, -1)}\0` })),
    ],
    ['two NULs after the PCK chain', 'quote', () => withQuote(rebuild({ pem: `${pckChain}\0` }))],
    ['two line feeds after the PCK chain', 'quote', () => withQuote(rebuild({ pem: `${parsed.pckChain}\n\0` }))],
    ['a space after the PCK chain', 'quote', () => withQuote(rebuild({ pem: `${parsed.pckChain} \0` }))],
    ['lines that end in CR LF', 'quote', () => withQuote(rebuild({ pem: pckChain.replaceAll('\n', '\r\n') }))],
    [
      'a certificate twice',
      'quote',
      () => withQuote(rebuild({ pem: parsed.pckChain + toPem(parsePem(parsed.pckChain)[2] as Uint8Array) })),
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

  test('n − s of the report is a valid signature by itself', async () => {
    const { ek, ask, ark } = selfAttestation.certificates
    const certificates = { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) }
    const report = fromHex(withOtherSInReport())
    await expect(verifier.verifyReport({ report, certificates, at })).resolves.toBeDefined()
  })
})
