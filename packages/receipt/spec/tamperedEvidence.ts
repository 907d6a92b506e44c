import { concatBytes, fromHex, toHex } from '@countersign/protocol'
import type { AttestationReceiptV1, StepId } from '@countersign/receipt'
import type { ReceiptSimulator, SimulatedIssueOptions } from '@countersign/receipt/simulator'
import { sha384 } from '@noble/hashes/sha2.js'
import { createQuoteForms } from '../test/quoteForms.ts'
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
/** Begins with a colon, so that an event with a longer name could have the same digest. */
const hidden = { name: 'compose-hash', payload: `3a${'ee'.repeat(32)}` }

/**
 * Variants of the golden receipt whose evidence the simulated silicon signed. It is genuine under the simulated roots, and must still fail.
 * Only the quote, its event log and its registers differ, or the coordinator's attestation, which the release then no longer covers.
 */
export async function createEvidenceTamperings(
  { issue }: ReceiptSimulator,
  golden: AttestationReceiptV1,
  options: SimulatedIssueOptions,
): Promise<Tampering[]> {
  const setIn = (part: 'signer' | 'coordinator', members: object) =>
    Object.entries(members).map(([name, value]) => ({ path: [part, name], value }))

  const quoted = async (name: string, step: StepId, changes: Partial<SimulatedIssueOptions>, eventLog?: unknown[]) => {
    const { quoteHex, measurement } = (await issue({ ...options, ...changes })).receipt.signer
    const log = eventLog === undefined ? {} : { eventLog: JSON.stringify(eventLog) }
    return { name, changes: setIn('signer', { quoteHex, measurement, ...log }), step }
  }
  const inState = (name: string, ...bits: number[]) =>
    quoted(name, 'quote-policy', { quote: { tdAttributes: attributes(...bits) } })
  const attested = async (name: string, step: StepId, changes: Partial<SimulatedIssueOptions>) => {
    const { selfAttestation } = (await issue({ ...options, ...changes })).receipt.coordinator
    return { name, changes: setIn('coordinator', { selfAttestation }), step }
  }

  const { rebuild, parsed } = createQuoteForms(fromHex(golden.signer.quoteHex))
  const chain = parsed.pckChain.slice(0, -1)
  const twice = { events: [listed, hidden] }
  const [once, digest] = [{ events: [listed] }, toHex(new Uint8Array(48))]
  const entry = toEntry(listed.name, listed.payload)
  const { digest: _, ...withoutDigest } = entry
  return [
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

    await inState('a debuggable enclave', SEPT_VE_DISABLE, 0),
    await inState('an undefined attribute', SEPT_VE_DISABLE, 1),
    await inState('SEPT_VE_DISABLE clear'),
    await inState('a migratable enclave', SEPT_VE_DISABLE, 29),
    await inState('an enclave that is a platform agent (TPA)', SEPT_VE_DISABLE, 62),
    await inState('an enclave with performance counters (PERFMON)', SEPT_VE_DISABLE, 63),

    await attested('an undefined bit of the coordinator’s guest policy', 'coordinator-policy', {
      report: { policy: (1n << 17n) | (1n << 26n) },
    }),
    await attested('the highest bit of the coordinator’s guest policy', 'coordinator-policy', {
      report: { policy: (1n << 17n) | (1n << 63n) },
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
