import { parseQuote, verifyEventLog } from '@countersign/attestation'
import { findCosignatures, parseNote, parseVkey } from '@countersign/log'
import { fromHex, ServiceError, toHex } from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { describeError, VerifierError } from '../errors.ts'
import type { VerifierStep } from '../steps.ts'
import type { Outcome } from '../verify.ts'
import { type AppComposeReading, readAppCompose } from './readAppCompose.ts'
import { openReleaseLog, type ReadReleaseFile, readReleaseLog } from './releaseLog.ts'
import type { ReleaseRecord } from './releaseRecord.ts'

/** The key of this project's log of releases. There is no release yet. */
const RELEASE_KEY: string | undefined = undefined

const IMAGE_NAME = 'enclave'

const TITLES = {
  'event-log': 'The quote covers the hash of app-compose.json',
  'app-compose': 'The file app-compose.json has this hash',
  template: 'It runs one image, and the rest of the file is that of a release',
  image: 'A release record names this image',
  'release-log': 'The record is in the signed log of releases',
  'release-key': 'You trust the key of this log',
  'release-witnesses': 'Your witnesses cosigned this log',
  rebuild: 'The commit gives this image',
  guest: 'dstack’s guest image is known',
  coordinator: 'The coordinator’s source is known',
} as const

/** A link between a receipt and the source code. `skip`: not checked. */
export type SourceLink = {
  id: keyof typeof TITLES
  title: string
  status: VerifierStep['status']
  detail: string
  /** Of a failure. */
  code?: string
}

export type SourceTrace = {
  links: readonly SourceLink[]
  /** The first release with this image, if no link failed. */
  source: (Pick<ReleaseRecord, 'release' | 'commit' | 'tree' | 'recordedAt'> & { digest: string }) | undefined
  /** Variables of the enclave. They are settings, which the step `config` checks. */
  settings: readonly { name: string; value: string }[]
}

export type TraceSourceDeps = {
  /** Searches for `app-compose.json` by its SHA-256 in hex. The bytes are checked here. */
  findAppCompose(hash: string): Promise<{ bytes: Uint8Array | undefined; problems: readonly string[] }>
  /** Undefined if the reader named no log. */
  readReleaseFile: ReadReleaseFile | undefined
}

export type TraceSourceRequest = {
  /** A verifier key. Default: this project's, or without a release the one that comes with the log. */
  releaseKey?: string | undefined
  /** Ed25519 keys of the reader's witnesses, in hex. All of them must have cosigned. */
  witnesses: readonly string[]
}

class Unchecked extends Error {}

/** Faults of a server or a disk say nothing about the source. */
const UNAVAILABLE: readonly string[] = ['fetch_failed', 'file_unreadable']
const NEEDED = ['quote', 'report-data', 'quote-policy'] as const

/**
 * Follows the links from a verified receipt to the commit of the enclave's code. Assumes that the operator, the gateways and the server of
 * the log are malicious.
 */
export async function traceSource(
  deps: TraceSourceDeps,
  outcome: Pick<Outcome, 'steps' | 'view' | 'conclusion'>,
  { releaseKey = RELEASE_KEY, witnesses }: TraceSourceRequest,
): Promise<SourceTrace> {
  const links: SourceLink[] = []
  const statusOf = (id: VerifierStep['id']) => outcome.steps.find((step) => step.id === id)?.status
  async function run<Value>(
    id: SourceLink['id'],
    check: () => Promise<[string, Value]> | [string, Value],
  ): Promise<Value | undefined> {
    const link = { id, title: TITLES[id] }
    try {
      const [detail, value] = await check()
      links.push({ ...link, status: 'pass', detail })
      return value
    } catch (error) {
      if (!(error instanceof ServiceError) && !(error instanceof Unchecked)) throw error
      const isSkip = error instanceof Unchecked || UNAVAILABLE.includes(error.code)
      const detail = error instanceof ServiceError ? describeError(error).message : error.message
      links.push({
        ...link,
        status: isSkip ? 'skip' : 'fail',
        detail,
        ...(error instanceof ServiceError && !isSkip && { code: error.code }),
      })
      return undefined
    }
  }

  const hash = await run('event-log', async () => {
    const { signer } = needs(outcome.view, 'The receipt is incomplete.')
    const missing = NEEDED.find((id) => statusOf(id) !== 'pass')
    if (missing !== undefined) throw new Unchecked(`The step ${missing} did not pass.`)
    const eventLog = needs(signer.eventLog, 'The receipt has no event log, so it doesn’t come from a dstack guest.')
    const events = await verifyEventLog(parseQuote(fromHex(signer.quoteHex)).body, eventLog)
    const payloads = events.get('compose-hash') ?? []
    const [payload = ''] = payloads
    // The guest records it once. A program in the guest can record more.
    if (payloads.length !== 1 || !/^[0-9a-f]{64}$/.test(payload))
      throw rejected(`${payloads.length} events compose-hash, expected one of 32 bytes`)
    return [`RTMR3 of the quote has the event compose-hash ${payload}.`, payload]
  })

  const app = await run('app-compose', async () => {
    const wanted = needs(hash, 'Its hash is unknown.')
    const { bytes, problems } = await deps.findAppCompose(wanted)
    const advice = 'Ask the operator for the file and pass it with --compose, or name a gateway that has it'
    const file = needs(bytes, `${[advice, ...problems].join('; ')}.`)
    const found = toHex(sha256(file))
    if (found !== wanted) throw rejected(`the file has the hash ${found}, the event ${wanted}`)
    return [`${file.length} bytes with the SHA-256 ${found}.`, file]
  })

  const log = await readLog(deps, { releaseKey })
  const read = await run('template', () => {
    const reading = readAppCompose(needs(app, 'There is no file to read.'))
    const { image, digest, template, settings } = reading
    const { records } = needsLog(log)
    const same = records.filter(({ compose }) => compose === template)
    if (same.length === 0) throw rejected(`none of the ${records.length} release records has its template ${template}`)
    const [first] = same as [ReleaseRecord, ...ReleaseRecord[]]
    return [
      `Runs only ${image}@sha256:${digest}, with ${settings.length} settings. The rest of the file is that of release ${first.release}.`,
      reading,
    ]
  })

  const record = await run('image', () => {
    const { digest, template } = needs(read, 'The image is unknown.')
    const isSame = (image: ReleaseRecord['images'][number]) =>
      image.name === IMAGE_NAME && image.digest === `sha256:${digest}`
    const named = needsLog(log).records.filter(({ images }) => images.some(isSame))
    const found = named.find(({ compose }) => compose === template)
    if (found === undefined) {
      throw rejected(
        named.length === 0
          ? `sha256:${digest} is in no release record`
          : 'a release record has this image, but another template',
      )
    }
    return [`Release ${found.release}, commit ${found.commit}, recorded at ${found.recordedAt}.`, found]
  })

  await run('release-log', () => {
    if (log instanceof Error) throw log
    const { records, key } = log
    return [`All ${records.length} records give the root of the checkpoint, which ${key.name}+${key.id} signed.`, 0]
  })
  await run('release-key', () => {
    const { vkey, isFromLog } = needsLog(log)
    if (isFromLog) throw new Unchecked(`The key came with the log. Compare it with another source: ${vkey}`)
    return [`You named ${vkey}.`, 0]
  })
  await run('release-witnesses', () => {
    const { note } = needsLog(log)
    const names = note.signatures.slice(1).map(({ name }) => name)
    const others =
      names.length === 0 ? 'has no cosignatures' : `also has unchecked lines by ${[...new Set(names)].join(', ')}`
    if (witnesses.length === 0) throw new Unchecked(`You named no witness. The checkpoint ${others}.`)
    const cosignatures = findCosignatures(note, witnesses)
    if (cosignatures.length < witnesses.length) {
      const details = `${cosignatures.length} of ${witnesses.length} witnesses cosigned, so the log may show other readers other records`
      throw new VerifierError('release_log_invalid', 'a witness did not cosign', { details })
    }
    const at = Math.min(...cosignatures.map(({ timestampS }) => timestampS))
    return [`All ${witnesses.length}, the earliest at ${new Date(at * 1000).toISOString()}.`, 0]
  })

  const skip = (id: SourceLink['id'], detail: string) => links.push({ id, title: TITLES[id], status: 'skip', detail })
  const { commit, tree } = record ?? { commit: 'its commit', tree: 'the tree of the record' }
  const commands = `npm run image -- ${IMAGE_NAME} must print the digest, and git rev-parse HEAD^{tree} must print ${tree}`
  skip('rebuild', `At ${commit}, ${commands}.`)
  const isKnownGuest = statusOf('measurement') === 'pass'
  skip(
    'guest',
    isKnownGuest
      ? 'The step measurement passed: your anchors name its registers. Nothing here links them with its source.'
      : 'Your anchors don’t name MRTD and RTMR0 to RTMR2. Another guest image could write any event log.',
  )
  skip(
    'coordinator',
    'A receipt doesn’t connect the coordinator with source code. You can only compare its measurement with your anchors.',
  )
  const isSound = !isSourceFailed({ links }) && outcome.conclusion !== 'failed' && outcome.conclusion !== 'contradicted'
  return { links, settings: read?.settings ?? [], source: isSound ? toSource(read, record) : undefined }
}

function toSource(read: AppComposeReading | undefined, record: ReleaseRecord | undefined): SourceTrace['source'] {
  if (read === undefined || record === undefined) return undefined
  const { release, commit, tree, recordedAt } = record
  return { release, commit, tree, recordedAt, digest: `sha256:${read.digest}` }
}

export function isSourceFailed({ links }: Pick<SourceTrace, 'links'>): boolean {
  return links.some(({ status }) => status === 'fail')
}

async function readLog({ readReleaseFile }: TraceSourceDeps, { releaseKey }: { releaseKey: string | undefined }) {
  try {
    if (readReleaseFile === undefined) throw new Unchecked('You named no log of releases.')
    const files = needs(await readReleaseLog(readReleaseFile), 'The log of releases has no checkpoint yet.')
    const vkey = needs(releaseKey ?? files.vkey, 'The log of releases came without a key.')
    const key = parseVkey(vkey)
    const records = openReleaseLog(files, key)
    return { records, key, vkey, note: parseNote(files.note), isFromLog: releaseKey === undefined }
  } catch (error) {
    return error as Error
  }
}

/** Only the link `release-log` fails with the log's fault. */
function needsLog(log: Awaited<ReturnType<typeof readLog>>) {
  if (!(log instanceof Error)) return log
  throw new Unchecked('There is no valid log of releases.')
}

function needs<Value>(value: Value | undefined, reason: string): Value {
  if (value === undefined) throw new Unchecked(reason)
  return value
}

function rejected(details: string) {
  return new VerifierError('app_compose_rejected', 'app-compose.json differs from every release', { details })
}
