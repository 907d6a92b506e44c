import { parsePckPlatform, parseQuote } from '@countersign/attestation'
import { createSimulator, type SimulatedRevocationOptions } from '@countersign/attestation/simulator'
import { fromHex } from '@countersign/protocol'
import { issue, issueGolden, toManifest } from '../issues.fake.ts'
import type { Manifest } from '../parseManifest.ts'
import { files, honest, judgedAt, manifest, toFiles } from './honest.fake.ts'
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
const [launch = ''] = manifest.coordinator.measurements.map((text) => text.slice(0, 96))
const { minimumTcb: ___, ...untouched } = manifest.coordinator
const withoutTcb: Manifest = { ...manifest, coordinator: untouched }
/** ALIAS_CHECK_COMPLETE is clear. */
const unchecked = await issueGolden({ report: { platformInfo: 0x05n } })
const simulator = createSimulator({ at: judgedAt })
const toList = (options: SimulatedRevocationOptions) => ({
  name: 'revocations.der',
  bytes: new Uint8Array(simulator.revocations(options)),
})
const withoutList = { ...unboundedOffline, skip: [...OFFLINE, 'coordinator-revocation'] } as const

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
    expected: failed({ config: 'not_in_manifest' }, OFFLINE),
  },
  {
    name: 'another coordinator',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ measurements: ['00'.repeat(48)] }),
    expected: failed({ 'coordinator-measurement': 'measurement_not_allowed' }, OFFLINE),
  },
  {
    name: 'another entropy key than that of the simulated satellite',
    category: 'manifest',
    ...files,
    manifest: { ...manifest, entropyKeys: ['00'.repeat(32)] },
    expected: failed({ 'entropy-key': 'not_in_manifest' }, OFFLINE),
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
  {
    name: 'no patch levels',
    category: 'manifest',
    ...files,
    manifest: withoutTcb,
    expected: { verdict: 'mock', conclusion: 'unknown-code', skip: [...OFFLINE, 'coordinator-policy'] },
  },
  {
    name: 'a coordinator’s measurement without HOST_DATA',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ measurements: [launch] }),
    expected: { verdict: 'mock', conclusion: 'unknown-code', skip: [...OFFLINE, 'coordinator-measurement'] },
  },
  {
    name: 'other HOST_DATA',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ measurements: [`${launch}:${'01'.repeat(32)}`] }),
    expected: failed({ 'coordinator-measurement': 'measurement_not_allowed' }, OFFLINE),
  },
  {
    name: 'another chip',
    category: 'manifest',
    ...files,
    manifest: withCoordinator({ chips: ['01'.repeat(64)] }),
    expected: failed({ 'coordinator-chip': 'chip_not_allowed' }, OFFLINE),
  },
  {
    name: 'a coordinator whose memory was not checked for aliases',
    category: 'hardware state',
    ...toFiles(unchecked),
    expected: failed({ 'coordinator-policy': 'alias_check_missing' }, OFFLINE),
  },
  {
    name: 'a revocation list that names nothing',
    category: 'hardware state',
    ...files,
    revocations: toList({}),
    expected: unboundedOffline,
    expectedOnPage: withoutList,
  },
  {
    name: 'a revocation list that names the coordinator’s certificate authority',
    category: 'hardware state',
    ...files,
    revocations: toList({ revoked: ['ask'] }),
    expected: failed({ 'coordinator-revocation': 'certificate_revoked' }, OFFLINE),
    expectedOnPage: withoutList,
  },
  {
    name: 'a revocation list that is out of date',
    category: 'stale',
    ...files,
    revocations: toList({ faults: { expired: true } }),
    expected: failed({ 'coordinator-revocation': 'crl_expired' }, OFFLINE),
    expectedOnPage: withoutList,
  },
]
