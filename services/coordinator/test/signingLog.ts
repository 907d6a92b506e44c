import {
  appendLeaves,
  arrangeCheckpoint,
  assertCosigned,
  computeFrontierRoot,
  emptyFrontier,
  encodeLogEntry,
  formatCheckpoint,
  hashLogEntry,
  openNote,
  parseCheckpoint,
  parseNote,
  signNote,
  toVkey,
  type VerifiedSignature,
} from '@countersign/log'
import {
  type AppendedEntries,
  createEnclaveSettings,
  type LoggedItemsResponse,
  type ReleaseRequest,
  type ReleaseResponse,
  type SignedBatch,
  type SignedStatement,
  type SignItem,
  type SignItemError,
  toEnclaveVersion,
  toHex,
} from '@countersign/protocol'
import { createSigner } from '../../../packages/log/test/logs.ts'
import { CoordinatorError } from '../src/errors.ts'
import type { LogService } from '../src/log/logService.ts'
import type { EnclaveTerms } from '../src/sign/enclave/keyEnclave.ts'
import type { Claim } from '../src/store/logs.ts'
import { type createSigningEnclave, TEST_BOOT } from './signingEnclave.ts'

export const ORIGIN = 'log.example/one'
const log = createSigner(ORIGIN)
const witnesses = ['one', 'two', 'three'].map((name) => createSigner(name, 'cosignature-ed25519'))
/** In the order of the settings. */
export const witnessKeys = witnesses.map(({ key }) => toHex(key.publicKey)).sort()

type LoggedAnswer = LoggedItemsResponse & EnclaveTerms
type Held = { signed: SignedStatement; batch: SignedBatch; index: number; state: 'held' | 'released' | 'acknowledged' }

/** Adds a log to an enclave: entries, checkpoints, and statements that wait for a quorum of two of three. */
export function addLog(enclave: ReturnType<typeof createSigningEnclave>) {
  const entropy = enclave.settings.entropy
  const settings = createEnclaveSettings(entropy, [], { origins: [ORIGIN], witnesses: witnessKeys, quorum: 2 })
  enclave.settings = settings
  enclave.config = { ...enclave.config, version: toEnclaveVersion('0.1.0', settings) }
  let frontier = emptyFrontier
  const held = new Map<string, Held>()
  const fake = {
    logKey: toVkey(log.key),
    held,
    /** Dropped leaves. */
    dropped: [] as string[],
    requests: [] as ReleaseRequest[],
    /** The boot that each call of `signItems` names. */
    boots: [] as (string | undefined)[],
    /** Items to reject, by their index in a call. */
    refuse: (_item: SignItem, _policies: readonly string[] | undefined): SignItemError | undefined => undefined,
    /** Changes the response to a call or to a release. */
    tamperSigned: (answer: LoggedAnswer) => answer,
    tamperReleased: (answer: ReleaseResponse) => answer,
    /** Runs before a release is checked. May throw. */
    beforeRelease: async (_request: ReleaseRequest) => {},
    /** The requested items of all calls. */
    asked: () => fake.requests.flatMap(({ leaves = [] }) => leaves),
    acknowledged: () => [...held].filter(([, { state }]) => state === 'acknowledged').map(([leaf]) => leaf),
    /** Boots to avoid for a while. */
    avoided: [] as string[],
    avoid: (bootId: string) => void fake.avoided.push(bootId),
    signItems,
    release,
  }

  async function signItems(
    items: readonly SignItem[],
    policies?: readonly string[],
    bootId?: string,
  ): Promise<LoggedAnswer> {
    fake.boots.push(bootId)
    const refusals = items.map((item) => fake.refuse(item, policies))
    const answer = await enclave.signItems(items.filter((_, index) => refusals[index] === undefined))
    const from = frontier.size
    const entries: string[] = []
    const placed = answer.results.map((result) => {
      if ('error' in result) return result
      const { batch, leafIndex, ...signed } = result
      const signedBatch = answer.batches[batch] as SignedBatch
      const leaf = signedBatch?.leaves[leafIndex] ?? ''
      const timeMs = Date.parse(signed.statement.signedAt)
      const entry = { kind: 'signature', keyId: signed.statement.keyId, leaf, timeMs } as const
      held.set(leaf, { signed, batch: signedBatch, index: frontier.size, state: 'held' })
      frontier = appendLeaves(frontier, [hashLogEntry(entry)])
      entries.push(toHex(encodeLogEntry(entry)))
      return { batch, leafIndex }
    })
    const { config } = answer
    const batches = answer.batches.map(({ quote: _, eventLog: __, ...batch }) => batch)
    const appended = entries.length === 0 ? null : { origin: ORIGIN, from, entries, states: [], checkpoint: signHead() }
    const results = refusals.map((refusal) => refusal ?? (placed.shift() as (typeof placed)[number]))
    const logs = { own: [ORIGIN], keys: [fake.logKey] }
    return fake.tamperSigned({ batches, results, log: appended, config, settings, logs })
  }

  function signHead(): string {
    const root = computeFrontierRoot(frontier)
    return signNote(formatCheckpoint({ origin: ORIGIN, size: frontier.size, root, extensions: [] }), [log])
  }

  async function release(request: ReleaseRequest): Promise<ReleaseResponse> {
    fake.requests.push(request)
    await fake.beforeRelease(request)
    const { checkpoint, cosignatures = [], leaves = [], drop = [], acknowledge = [] } = request
    for (const leaf of acknowledge) {
      const one = held.get(leaf)
      if (one?.state === 'released') one.state = 'acknowledged'
    }
    for (const leaf of drop) {
      if (held.get(leaf)?.state !== 'held') continue
      held.delete(leaf)
      fake.dropped.push(leaf)
    }
    let size = 0
    if (checkpoint !== undefined) {
      const note = checkpoint + cosignatures.map((line) => `${line}\n`).join('')
      size = assertCosigned(note, { log: log.key, policy: { witnesses: witnessKeys, quorum: 2 } }).checkpoint.size
    }
    const used = new Set<SignedBatch>()
    const statements = leaves.map((leaf) => {
      const one = held.get(leaf)
      if (one === undefined || one.index >= size) return null
      one.state = 'released'
      used.add(one.batch)
      return one.signed
    })
    const quotes = [...used].map(({ sequence, quote }) => ({ sequence, quote }))
    return fake.tamperReleased({ statements, quotes })
  }

  return fake
}

type Cosign = Parameters<LogService['cosign']>[0]

/** The log of a boot that has signed nothing. */
const EMPTY = signNote(
  formatCheckpoint({ origin: ORIGIN, size: 0, root: computeFrontierRoot(emptyFrontier), extensions: [] }),
  [log],
)

/** A log service whose witnesses cosign immediately. Several services may share it, like coordinators share a database. */
export function createFakeLogService() {
  let newest = EMPTY
  const claims = new Map<string, string>()
  const fake = {
    /** Its calls in order. */
    calls: [] as string[],
    claims,
    recorded: [] as { appended: AppendedEntries; claims: readonly Claim[]; bootId: string }[],
    cosigns: [] as Cosign[],
    givenUp: [] as string[],
    /** The boots with an open log, by origin. */
    boots: new Map([[ORIGIN, TEST_BOOT]]),
    /** Runs before each call. May throw, or never end. */
    beforeRecord: async () => {},
    beforeCosign: async (_parameters: Cosign) => {},
    beforeGiveUp: async () => {},
  }
  const logService: LogService = {
    async record(appended, { claims: wanted, bootId }) {
      fake.calls.push('record')
      await fake.beforeRecord()
      fake.recorded.push({ appended, claims: wanted, bootId })
      newest = appended.checkpoint
      const lost = new Set<string>()
      for (const { walletId, digest, leaf } of wanted) {
        const key = `${walletId} ${digest}`
        if (claims.has(key)) lost.add(leaf)
        else claims.set(key, leaf)
      }
      return { lost }
    },
    async cosign(parameters) {
      fake.calls.push('cosign')
      fake.cosigns.push(parameters)
      await fake.beforeCosign(parameters)
      return { size: parseCheckpoint(parseNote(newest).text).size, note: cosign(newest) }
    },
    findState: async () => undefined,
    findBoot: (origin) => fake.boots.get(origin),
    async releaseClaims(given) {
      const leaves = given.map(({ leaf }) => leaf)
      fake.calls.push('giveUp')
      fake.givenUp.push(...leaves)
      await fake.beforeGiveUp()
      for (const [key, leaf] of claims) if (leaves.includes(leaf)) claims.delete(key)
    },
    findMissing: () => [],
    countWitnesses: () => [],
    isOpen: () => true,
    stop: async () => {},
  }
  return Object.assign(fake, logService)
}

/** Two of the three. */
function cosign(checkpoint: string): string {
  const signers = witnesses.slice(0, 2).map((witness) => ({ ...witness, timestampS: 1_781_524_800 }))
  const { text, verified } = openNote(checkpoint, [log.key])
  const cosigned = openNote(
    signNote(text, signers),
    signers.map(({ key }) => key),
  )
  const cosignatures = cosigned.verified.map((one) => ({
    ...one,
    witness: toHex(one.key.publicKey),
    timestampS: one.timestampS ?? 0,
  }))
  return arrangeCheckpoint(text, { log: verified[0] as VerifiedSignature, cosignatures })
}

export const unavailable = () => new CoordinatorError('log_unavailable', 'the log is not available')
