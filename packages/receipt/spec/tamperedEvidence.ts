import { parsePem, parseReport } from '@countersign/attestation'
import {
  createSimulator,
  type SimulatedCertificateFaults,
  type SimulatedQuoteOptions,
  type SimulatedReportOptions,
} from '@countersign/attestation/simulator'
import { concatBytes, fromHex, toHex } from '@countersign/protocol'
import type { Anchors, AttestationReceiptV1, StepId } from '@countersign/receipt'
import type { ReceiptSimulator, SimulatedIssueOptions } from '@countersign/receipt/simulator'
import { sha384 } from '@noble/hashes/sha2.js'
import { createQuoteForms, toPem } from '../test/quoteForms.ts'
import type { Tampering } from './tampered.ts'

const SEPT_VE_DISABLE = 28
/** Little-endian, as in a quote. */
const attributes = (...bits: number[]) => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(
    0,
    bits.reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n),
    true,
  )
  return bytes
}

const RUNTIME_EVENT = 0x08000001
const toEntry = (event: string, payload: string) => {
  return { imr: 3, event_type: RUNTIME_EVENT, digest: '', event, event_payload: payload }
}
const listed = { name: 'compose-hash', payload: 'c0'.repeat(32) }
/** With a colon at the start of its payload, an event with a longer name can have the same digest. */
const hidden = { name: 'compose-hash', payload: `3a${'ee'.repeat(32)}` }
/** In UTF-8, a lone surrogate is encoded like this character. */
const replacement = { name: '\ufffd', payload: '00' }

/** Evidence that breaks a rule of evidence.md. The simulated hardware signed most of it. */
export async function createEvidenceTamperings(
  { issue }: ReceiptSimulator,
  golden: AttestationReceiptV1,
  options: SimulatedIssueOptions,
): Promise<Tampering[]> {
  const setIn = (part: 'signer' | 'coordinator', members: object) =>
    Object.entries(members).map(([name, value]) => ({ path: [part, name], value }))

  const quoted = async (name: string, step: StepId, changes: Partial<SimulatedIssueOptions>, eventLog?: unknown[]) => {
    const { quoteHex, measurement } = (await issue({ ...options, ...changes })).receipt.signer
    const log = eventLog === undefined ? {} : { eventLog: toText(eventLog) }
    return { name, changes: setIn('signer', { quoteHex, measurement, ...log }), step }
  }
  const inState = (name: string, ...bits: number[]) =>
    quoted(name, 'quote-policy', { quote: { tdAttributes: attributes(...bits) } })
  const attested = async (name: string, step: StepId, changes: Partial<SimulatedIssueOptions>) => {
    const { selfAttestation } = (await issue({ ...options, ...changes })).receipt.coordinator
    return { name, changes: setIn('coordinator', { selfAttestation }), step }
  }

  const { rebuild, parsed } = createQuoteForms(fromHex(golden.signer.quoteHex))
  const { mrTd, reportData } = parsed.body
  const simulator = createSimulator({ at: options.signedAt })
  /** Over the golden batch, with the golden registers. */
  const requoted = (name: string, step: StepId, quote: Partial<SimulatedQuoteOptions>, members: object = {}) => {
    const quoteHex = toHex(simulator.quote({ mrtd: mrTd, reportData, ...quote }))
    return { name, changes: setIn('signer', { quoteHex, ...members }), step }
  }
  const [pck = new Uint8Array(), ...authorities] = parsePem(parsed.pckChain)
  const withPck = (name: string, der: Uint8Array) => {
    const pem = [der, ...authorities].map(toPem).join('')
    return { name, changes: setIn('signer', { quoteHex: toHex(rebuild({ pem })) }), step: 'quote' as const }
  }
  const { selfAttestation } = golden.coordinator
  const { measurement, reportData: bound } = parseReport(fromHex(selfAttestation.reportHex))
  const reported = (name: string, step: StepId, report: Partial<SimulatedReportOptions>) => {
    const value = toHex(simulator.report({ measurement, reportData: bound, ...report }))
    return { name, changes: [{ path: ['coordinator', 'selfAttestation', 'reportHex'], value }], step }
  }
  const certified = (name: string, faults: SimulatedCertificateFaults) => {
    const value = toHex(simulator.certificates({ faults }).ek)
    const path = ['coordinator', 'selfAttestation', 'certificates', 'ek']
    return { name, changes: [{ path, value }], step: 'coordinator-report' as const }
  }
  const chain = parsed.pckChain.slice(0, -1)
  const twice = { events: [listed, hidden] }
  const [once, digest] = [{ events: [listed] }, toHex(new Uint8Array(48))]
  const entry = toEntry(listed.name, listed.payload)
  const { digest: _, ...withoutDigest } = entry
  const longLines = chain.replaceAll('\n', '').replace(/-{5}(?:BEGIN|END) CERTIFICATE-{5}/g, '\n$&\n')
  return [
    withPck('a length in the PCK certificate that is not in its shortest form', withLongLength(pck)),
    withPck('a PCK certificate whose two algorithm fields differ', withOtherAlgorithm(pck)),
    withPck('a byte after the PCK certificate', concatBytes(pck, new Uint8Array(1))),
    {
      name: 'a PCK chain whose base64 is not in lines of 64 columns',
      changes: setIn('signer', { quoteHex: toHex(rebuild({ pem: longLines.replaceAll('\n\n', '\n').slice(1) })) }),
      step: 'quote',
    },
    {
      name: 'a PCK chain that ends in NUL without a line feed',
      changes: [{ path: ['signer', 'quoteHex'], value: toHex(rebuild({ pem: `${chain}\0` })) }],
      step: 'quote',
    },

    await quoted('a second compose-hash given by its digest', 'quote', twice, [
      entry,
      { imr: 3, event_type: 1, digest: hashRuntimeEvent(hidden), event: '', event_payload: '' },
    ]),
    await quoted('a second compose-hash under a name with a colon', 'quote', twice, [
      entry,
      toEntry('compose-hash:', hidden.payload.slice(2)),
    ]),
    await quoted('another digest beside a run-time event', 'quote', once, [{ ...entry, digest }]),
    await quoted('a run-time event without the member digest', 'quote', once, [withoutDigest]),

    await quoted('a member twice in an entry of the event log', 'quote', once, [
      JSON.stringify(entry).replace('{', '{"imr":0,'),
    ]),
    await quoted('a lone surrogate in the name of an event', 'quote', { events: [replacement] }, [
      JSON.stringify(toEntry(replacement.name, replacement.payload)).replace(replacement.name, '\\ud800'),
    ]),

    requoted('a debuggable quoting enclave', 'quote', { faults: { qeDebug: true } }),
    requoted('a QE report with data after the hash', 'quote', { faults: { qeReportDataTail: true } }),
    requoted('another signer of the TDX module', 'quote', { faults: { moduleWrongMrSigner: true } }),
    requoted('SEAMATTRIBUTES that are not zero', 'quote', { faults: { moduleAttributesSet: true } }),
    requoted('a version of the TDX module that TCB info does not have', 'quote', { moduleVersion: 9 }),
    requoted('a revoked quoting enclave', 'quote', { qeStatus: 'Revoked' }),
    requoted('a platform below every TCB level', 'quote', { status: 'NotSupported' }),
    requoted(
      'an outdated TDX module on a platform that needs hardening',
      'quote-policy',
      { status: 'SWHardeningNeeded', moduleStatus: 'OutOfDate' },
      { tcbStatus: 'OutOfDate' },
    ),
    requoted('an undefined bit of XFAM', 'quote-policy', { xfam: fromHex('e702060000000080') }),
    requoted('a service TD', 'quote-policy', { version: 5, mrServiceTd: new Uint8Array(48).fill(1) }),

    await inState('a debuggable enclave', SEPT_VE_DISABLE, 0),
    await inState('an undefined attribute', SEPT_VE_DISABLE, 1),
    await inState('SEPT_VE_DISABLE clear'),
    await inState('a migratable enclave', SEPT_VE_DISABLE, 29),
    await inState('an enclave that is a platform agent (TPA)', SEPT_VE_DISABLE, 62),
    await inState('an enclave with performance counters (PERFMON)', SEPT_VE_DISABLE, 63),

    certified('a VCEK of another TCB', { otherTcb: true }),
    certified('a VCEK of another chip', { otherChip: true }),
    reported('padding of the report’s signature that is not zero', 'coordinator-report', {
      faults: { signaturePaddingSet: true },
    }),
    reported('a CPUID of another product', 'coordinator-report', { cpuid: { family: 0x1a, model: 2, stepping: 1 } }),
    reported('a report of VMPL 1', 'coordinator-policy', { vmpl: 1 }),
    reported('a report of version 2, without an alias check', 'coordinator-policy', { version: 2 }),
    {
      name: 'a sample of a source that does not sign',
      changes: [
        { path: ['entropy', 'publicKey'], value: '00'.repeat(32) },
        { path: ['entropy', 'signatureHex'], value: '00'.repeat(64) },
      ],
      step: 'entropy',
    },

    reported('an undefined bit of the coordinator’s guest policy', 'coordinator-policy', {
      policy: (1n << 17n) | (1n << 26n),
    }),
    reported('the highest bit of the coordinator’s guest policy', 'coordinator-policy', {
      policy: (1n << 17n) | (1n << 63n),
    }),
    await attested('a coordinator’s report signed by a VLEK', 'coordinator-policy', {
      report: { signingKey: 'vlek' },
      certificates: { signingKey: 'vlek' },
    }),
  ]
}

/** SHA-384(u32le type ‖ ":" ‖ name ‖ ":" ‖ payload). */
function hashRuntimeEvent({ name, payload }: typeof listed): string {
  const prefix = new TextEncoder().encode(`\u{1}\0\0\u{8}:${name}:`)
  return toHex(sha384(concatBytes(prefix, fromHex(payload))))
}

/** Entries that are text stay as they are. */
function toText(entries: unknown[]): string {
  return `[${entries.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry))).join()}]`
}

/** SEQUENCE 30 82 nn nn → 30 83 00 nn nn. */
function withLongLength(der: Uint8Array): Uint8Array {
  return concatBytes(Uint8Array.of(0x30, 0x83, 0), der.subarray(2))
}

/** ECDSA with SHA-256 outside the signed part: 30 0a … → 30 0c … 05 00, which adds NULL parameters. */
function withOtherAlgorithm(der: Uint8Array): Uint8Array {
  const signed = 8 + (((der[6] ?? 0) << 8) | (der[7] ?? 0))
  const body = concatBytes(
    concatBytes(der.subarray(4, signed), Uint8Array.of(0x30, 0x0c)),
    concatBytes(der.subarray(signed + 2, signed + 12), Uint8Array.of(5, 0), der.subarray(signed + 12)),
  )
  return concatBytes(Uint8Array.of(0x30, 0x82, body.length >> 8, body.length & 0xff), body)
}

/** A change after which every step still passes. Some need other anchors. */
export type Variant = { name: string; changes: Tampering['changes']; anchors?: Partial<Anchors> }

/** Evidence in other valid forms (evidence.md, section 12). */
export async function createVariants(
  { issue }: ReceiptSimulator,
  golden: AttestationReceiptV1,
  options: SimulatedIssueOptions,
): Promise<Variant[]> {
  const { rebuild, parsed, withOtherSIn } = createQuoteForms(fromHex(golden.signer.quoteHex))
  const { mrTd, reportData } = parsed.body
  const simulator = createSimulator({ at: options.signedAt })
  const withQuote = (name: string, quote: Uint8Array): Variant => ({
    name,
    changes: [{ path: ['signer', 'quoteHex'], value: toHex(quote) }],
  })
  const requoted = (name: string, quote: Partial<SimulatedQuoteOptions>) =>
    withQuote(name, simulator.quote({ mrtd: mrTd, reportData, ...quote }))

  const events = ['compose-hash', 'app-id', 'key-provider'].map((name, index) => ({ name, payload: `c${index}` }))
  const dstack = await issue({ ...options, events })
  const { signer } = dstack.receipt
  const later = await issue({ ...options, report: { version: 5 } })
  const { selfAttestation, release } = later.receipt.coordinator
  return [
    requoted('a quote of version 5 with TD report 1.0', { version: 5, body: 'td10' }),
    requoted('a quote of version 5 with TD report 1.5', { version: 5, body: 'td15' }),
    requoted('a quote of TDX 1.0, whose module has version 0', { moduleVersion: 0 }),
    withQuote('n − s in the PCK authority’s certificate', rebuild({ pem: withOtherSIn(1) })),
    withQuote('a PCK chain that ends in its last hyphen', rebuild({ pem: parsed.pckChain.slice(0, -1) })),
    {
      name: 'an event log of dstack',
      changes: (['quoteHex', 'measurement', 'eventLog'] as const).map((member) => ({
        path: ['signer', member],
        value: signer[member],
      })),
      anchors: {
        measurements: dstack.anchors.measurements.map(({ rtmr3, ...others }) => others),
        events: Object.fromEntries(events.map(({ name, payload }) => [name, [payload]])),
      },
    },
    {
      name: 'a report of version 5',
      changes: [
        { path: ['coordinator', 'selfAttestation', 'reportHex'], value: selfAttestation.reportHex },
        { path: ['coordinator', 'release'], value: release },
      ],
    },
  ]
}
