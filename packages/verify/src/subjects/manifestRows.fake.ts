import { parsePckPlatform, parseQuote } from '@countersign/attestation'
import { fromHex } from '@countersign/protocol'
import { issue, toManifest } from '../issues.fake.ts'
import type { Manifest } from '../parseManifest.ts'
import { files, honest, manifest, toFiles } from './honest.fake.ts'
import { failed, OFFLINE, type SubjectRow, unboundedOffline } from './subjectRow.fake.ts'

/** Code that RTMR3 and the event log name together, as dstack records it. */
const payloads = { 'app-id': 'aa'.repeat(20), 'compose-hash': 'ab'.repeat(32), 'key-provider': '6b6d73' }
const withEvents = await issue({ events: Object.entries(payloads).map(([name, payload]) => ({ name, payload })) })
/** All but RTMR3, and these events. */
const eventsManifest = (named: Readonly<Record<string, string>>): Manifest => {
  const { enclave, ...others } = toManifest(withEvents)
  const measurements = enclave.measurements.map(({ rtmr3: _, ...measurement }) => measurement)
  const events = Object.fromEntries(Object.entries(named).map(([name, payload]) => [name, [payload]]))
  return { ...others, enclave: { ...enclave, measurements, events } }
}
const { 'key-provider': _, ...withoutProvider } = payloads
const { fmspc, ppid } = parsePckPlatform(parseQuote(fromHex(honest.receipt.signer.quoteHex)).pckChain)
const unknownCode = { verdict: 'mock', conclusion: 'unknown-code', skip: [...OFFLINE, 'measurement'] } as const
const withEnclave = (enclave: Partial<Manifest['enclave']>): Manifest => ({
  ...manifest,
  enclave: { ...manifest.enclave, ...enclave },
})
const withCoordinator = (coordinator: Partial<Manifest['coordinator']>): Manifest => ({
  ...manifest,
  coordinator: { ...manifest.coordinator, ...coordinator },
})
const [whole = { mrTd: '' }] = manifest.enclave.measurements
const { mrConfigId: __, ...withoutConfigId } = whole

/** What a manifest can ask for. */
export const manifestRows: readonly SubjectRow[] = [
  {
    name: 'events that match, in place of RTMR3',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest(payloads),
    expected: unboundedOffline,
  },
  {
    name: 'events that do not match',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest({ ...payloads, 'compose-hash': 'cd'.repeat(32) }),
    expected: failed({ measurement: 'event_not_allowed' }, OFFLINE),
  },
  {
    name: 'neither events nor RTMR3',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest({}),
    expected: unknownCode,
  },
  {
    name: 'events without the key provider, in place of RTMR3',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest(withoutProvider),
    expected: unknownCode,
  },
  {
    name: 'another key provider',
    category: 'manifest',
    ...toFiles(withEvents),
    manifest: eventsManifest({ ...payloads, 'key-provider': '6c6f63616c' }),
    expected: failed({ measurement: 'event_not_allowed' }, OFFLINE),
  },
  {
    name: 'MRTD alone',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ measurements: [{ mrTd: whole.mrTd }] }),
    expected: unknownCode,
  },
  {
    name: 'MRCONFIGID left open',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ measurements: [withoutConfigId] }),
    expected: unknownCode,
  },
  {
    name: 'another MRCONFIGID',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ measurements: [{ ...whole, mrConfigId: 'ee'.repeat(48) }] }),
    expected: failed({ measurement: 'measurement_not_allowed' }, OFFLINE),
  },
  {
    name: 'another MROWNER',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ measurements: [{ ...whole, mrOwner: 'ee'.repeat(48) }] }),
    expected: failed({ measurement: 'measurement_not_allowed' }, OFFLINE),
  },
  {
    name: 'a listed machine, by its PPID',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ platforms: [{ fmspc: '00806f050000' }, { ppid }] }),
    expected: unboundedOffline,
  },
  {
    name: 'a listed kind of machine',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ platforms: [{ fmspc }] }),
    expected: unboundedOffline,
  },
  {
    name: 'a machine that is not listed',
    category: 'manifest',
    ...files,
    manifest: withEnclave({ platforms: [{ ppid: '00'.repeat(16) }] }),
    expected: failed({ platform: 'platform_not_allowed' }, OFFLINE),
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
