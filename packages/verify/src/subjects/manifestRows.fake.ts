import { concatBytes } from '@countersign/protocol'
import { assemble, canonicalBytes, toCid } from '@countersign/receipt'
import { issue, toManifest } from '../issues.fake.ts'
import type { Manifest } from '../parseManifest.ts'
import { encode, files, manifest, toFiles } from './honest.fake.ts'
import { failed, OFFLINE, type SubjectRow, unboundedOffline } from './subjectRow.fake.ts'

/** Code that RTMR3 and the event log name together, as dstack records it. */
async function issueWithEvents(payload: string) {
  const sha384 = async (bytes: Uint8Array<ArrayBuffer>) => new Uint8Array(await crypto.subtle.digest('SHA-384', bytes))
  const name = 'compose-hash'
  const prefix = encode(`\u{1}\0\0\u{8}:${name}:`)
  const event = await sha384(
    concatBytes(
      prefix,
      Uint8Array.from(payload.match(/../g) ?? [], (byte) => Number(`0x${byte}`)),
    ),
  )
  const rtmr3 = await sha384(concatBytes(new Uint8Array(48), event))
  const zero = new Uint8Array(48)
  const { records, collateral, anchors } = await issue({ quote: { rtmrs: [zero, zero, zero, rtmr3] } })
  const entry = { imr: 3, event_type: 0x08000001, digest: '', event: name, event_payload: payload }
  const receipt = assemble({ ...records, batch: { ...records.batch, eventLog: JSON.stringify([entry]) } })
  const bytes = canonicalBytes(receipt)
  const [{ rtmr3: _, ...measurement }] = anchors.measurements as [Required<(typeof anchors.measurements)[number]>]
  return { bytes, collateral, receipt, cid: toCid(bytes), anchors: { ...anchors, measurements: [measurement] } }
}

const composeHash = 'ab'.repeat(32)
const withEvents = await issueWithEvents(composeHash)
const eventsManifest = (payload: string): Manifest => {
  const known = toManifest(withEvents)
  return { ...known, enclave: { ...known.enclave, events: { 'compose-hash': [payload] } } }
}
const withEnclave = (enclave: Partial<Manifest['enclave']>): Manifest => ({
  ...manifest,
  enclave: { ...manifest.enclave, ...enclave },
})
const withCoordinator = (coordinator: Partial<Manifest['coordinator']>): Manifest => ({
  ...manifest,
  coordinator: { ...manifest.coordinator, ...coordinator },
})
const [whole = { mrTd: '' }] = manifest.enclave.measurements

/** What a manifest can ask for. */
export const manifestRows: readonly SubjectRow[] = [
  {
    name: 'events that match, in place of RTMR3',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest(composeHash),
    expected: unboundedOffline,
  },
  {
    name: 'events that do not match',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest('cd'.repeat(32)),
    expected: failed({ measurement: 'event_not_allowed' }, OFFLINE),
  },
  {
    name: 'neither events nor RTMR3',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: toManifest(withEvents),
    expected: { verdict: 'mock', conclusion: 'unknown-code', skip: [...OFFLINE, 'measurement'] },
  },
  {
    name: 'MRTD alone',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ measurements: [{ mrTd: whole.mrTd }] }),
    expected: { verdict: 'mock', conclusion: 'unknown-code', skip: [...OFFLINE, 'measurement'] },
  },
  {
    name: 'another register',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ measurements: [{ ...whole, rtmr2: 'ee'.repeat(48) }] }),
    expected: failed({ measurement: 'measurement_not_allowed' }, OFFLINE),
  },
  {
    name: 'no configuration',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ configHashes: [] }),
    expected: { verdict: 'mock', conclusion: 'unknown-code', skip: [...OFFLINE, 'config'] },
  },
  {
    name: 'another configuration',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ configHashes: ['00'.repeat(32)] }),
    expected: failed({ config: '' }, OFFLINE),
  },
  {
    name: 'another coordinator',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ measurements: ['00'.repeat(48)] }),
    expected: failed({ 'coordinator-measurement': '' }, OFFLINE),
  },
  {
    name: 'another entropy key is no matter for a simulated satellite',
    category: 'manifest',
    ...files,
    manifest: { ...manifest, entropyKeys: ['00'.repeat(32)] },
    expected: unboundedOffline,
  },
  {
    name: 'an evaluation that is just reached',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ minimumTcbEvaluationDataNumber: 20 }),
    expected: unboundedOffline,
  },
  {
    name: 'an evaluation that is not reached',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ minimumTcbEvaluationDataNumber: 21 }),
    expected: failed({ 'quote-policy': 'tcb_evaluation_too_old' }, OFFLINE),
  },
  {
    name: 'patch levels that are just reached',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ minimumTcb: { Milan: { bl: 4, snp: 24, ucode: 219 } } }),
    expected: unboundedOffline,
  },
  {
    name: 'a patch level that is not reached',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ minimumTcb: { Milan: { snp: 25 } } }),
    expected: failed({ 'coordinator-policy': 'tcb_too_old' }, OFFLINE),
  },
  {
    name: 'a processor that is not named',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ minimumTcb: { Turin: {} } }),
    expected: failed({ 'coordinator-policy': 'platform_not_allowed' }, OFFLINE),
  },
]
