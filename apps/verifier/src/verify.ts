import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fromHex, MAX_OPENING_BYTES, ServiceError } from '@countersign/protocol'
import { encodeReceiptCar, fromCidHash, MAX_CAR_BYTES } from '@countersign/receipt'
import {
  createFetchBytes,
  type FetchBytes,
  type FetchDeps,
  type FindBlockDeps,
  findApi,
  findBlock,
  isSourceFailed,
  MAX_APP_COMPOSE_BYTES,
  MAX_COLLATERAL_BYTES,
  MAX_MANIFEST_BYTES,
  type Manifest,
  type NamedSubject,
  type Outcome,
  orderGateways,
  type Progress,
  parseManifest,
  recogniseSubject,
  type SourceTrace,
  type Subject,
  traceSource,
  VerifierError,
  verify as verifyReceipt,
  withSource,
} from '@countersign/verify'
import { type ExitCode, toExitCode } from './exitCodes.ts'
import { isPathTaken, readFileBounded, toSystemCode } from './files.ts'
import type { VerifyOptions } from './parseOptions.ts'

export type CliOutcome = Outcome & {
  exitCode: ExitCode
  /** Why the `--car` file is missing although the receipt was verified. */
  unwritten?: string
  /** With `--source`. */
  trace?: SourceTrace
}

const BLOCK_NAMES = ['collateral', 'release', 'batch', 'coordinator', 'policy', 'app-compose']
const MAX_REVOCATIONS_BYTES = 4_194_304

type CliVerifyDeps = FetchDeps & { now: () => Date; onProgress: (progress: Progress) => void }

/** Reads the files that the options name, and verifies. */
export async function verify(deps: CliVerifyDeps, options: VerifyOptions): Promise<CliOutcome> {
  const { api, gateways, rpc, contract, logContracts, at, maximumEventDelayS } = options
  const manifests = [...(await readManifest(options.manifestFile)), options.anchors]
  const collaterals = await Promise.all(options.collateralFiles.map(readCollateralFile))
  const revocations = await readOptional(options.revocationsFile, MAX_REVOCATIONS_BYTES)
  const opening = await readOptional(options.openingFile, MAX_OPENING_BYTES)
  const compose = await readOptional(options.source?.composeFile, MAX_APP_COMPOSE_BYTES)
  const { carFile } = options
  const { releases = CHECKOUT_RELEASES } = options.source ?? {}
  if (releases !== undefined && !isUrl(releases) && !(await isPathTaken(releases)))
    throw invalid('--releases', `folder not found: ${releases}`)
  if (carFile !== undefined && (await isPathTaken(carFile))) throw invalid('--car would overwrite a file', carFile)
  const named = await recogniseCliSubject(options.subject)
  const fetchBytes = createFetchBytes(deps)
  const subject = await toSubject({ fetchBytes }, named, options)
  const beside = named.kind === 'file' ? { findBeside: (cid: string) => readBeside(named.path, cid) } : {}
  const outcome = await verifyReceipt(
    {
      fetchBytes,
      now: deps.now,
      onProgress: deps.onProgress,
      ...beside,
    },
    {
      subject,
      manifests,
      gateways,
      tcbStatuses: options.statuses,
      allowMock: options.isMockAllowed,
      collaterals,
      isEventDue: !options.isMissingEventAllowed,
      api,
      rpc,
      contract,
      logContracts,
      at,
      maximumEventDelayS,
      revocations,
      opening,
    },
  )
  const written = carFile === undefined || outcome.receipt === undefined ? {} : await writeCar(carFile, outcome)
  const trace =
    options.source && (await followSource({ fetchBytes, ...beside }, { outcome, subject, options, compose, releases }))
  const result = { ...outcome, ...written, ...(trace && { trace }) }
  const conclusion = trace !== undefined && isSourceFailed(trace) ? 'failed' : outcome.conclusion
  return { ...result, conclusion, exitCode: toExitCode({ ...result, conclusion }) }
}

/** Follows the links from the receipt to the source, with the files and servers of this run. */
function followSource(
  deps: Pick<FindBlockDeps, 'fetchBytes' | 'findBeside'>,
  parameters: {
    outcome: Outcome
    subject: Subject
    options: VerifyOptions
    compose: Uint8Array | undefined
    releases: string | undefined
  },
): Promise<SourceTrace> {
  const { outcome, subject, options, compose, releases } = parameters
  const { releaseKey, releaseWitnesses } = options.source ?? {}
  const api = subject.kind === 'proof' ? subject.api : options.api
  const ipfsUrl = subject.kind === 'cid' ? subject.link : outcome.proof?.ipfsUrl
  const gateways = orderGateways({ own: options.gateways, ipfsUrl, api })
  return traceSource(
    {
      async findAppCompose(hash) {
        const maxBytes = MAX_APP_COMPOSE_BYTES
        if (compose !== undefined) return { bytes: compose, problems: [] }
        return findBlock({ ...deps, onFetch: () => {} }, { cid: fromCidHash(fromHex(hash)), gateways, maxBytes })
      },
      readReleaseFile:
        releases === undefined ? undefined : (name, limit) => readReleaseFile(deps, releases, name, limit),
    },
    outcome,
    { releaseKey, witnesses: releaseWitnesses ?? [] },
  )
}

/** Only source files are in a checkout. A folder next to a package could come from anyone. */
const CHECKOUT_RELEASES = import.meta.url.endsWith('.ts')
  ? join(dirname(fileURLToPath(import.meta.url)), '../../../releases')
  : undefined

function isUrl(releases: string): boolean {
  return /^https?:/i.test(releases)
}

async function readReleaseFile(
  { fetchBytes }: { fetchBytes: FetchBytes },
  releases: string,
  name: string,
  limit: { maxBytes: number },
): Promise<Uint8Array | undefined> {
  if (!isUrl(releases)) {
    const path = join(releases, name)
    return (await isPathTaken(path)) ? readFileBounded(path, limit) : undefined
  }
  try {
    return await fetchBytes({ url: `${releases}/${name}`, accept: '*/*', ...limit })
  } catch (error) {
    if (error instanceof VerifierError && error.status === 404) return undefined
    throw error
  }
}

/**
 * Writes all blocks that were found into one file, whatever the verdict. A receipt may repeat a block or name an oversized one. Its verdict
 * must still be printed.
 */
async function writeCar(path: string, outcome: Outcome): Promise<Pick<CliOutcome, 'unwritten'>> {
  const { bytes, blocks, collateral } = outcome
  let car: Uint8Array
  try {
    car = encodeReceiptCar({ bytes, blocks, ...(collateral && { collateral: collateral.bytes }) })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { unwritten: `could not write ${path}: its blocks don't fit a CAR file (${error.details})` }
  }
  try {
    await writeFile(path, car, { flag: 'wx' })
  } catch (cause) {
    const details = `${path} (${toSystemCode(cause) ?? 'unknown'})`
    throw new VerifierError('file_unwritable', 'cannot write the file', { details, cause })
  }
  return {}
}

type CliSubject = NamedSubject | { kind: 'file'; path: string }

/** An existing file wins over every other interpretation of its name, except a URL. */
export async function recogniseCliSubject(text: string): Promise<CliSubject> {
  if (!/^https?:\/\//i.test(text) && (await isPathTaken(text))) return { kind: 'file', path: text }
  // A link may contain a secret, so it isn't printed.
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text) && /\.(?:json|car)$|^\.{0,2}\//i.test(text)) {
    throw new VerifierError('invalid_arguments', 'cannot tell what to verify', { details: `file not found: ${text}` })
  }
  return recogniseSubject(text)
}

async function toSubject(
  deps: { fetchBytes: FetchBytes },
  named: CliSubject,
  { api, isOffline }: VerifyOptions,
): Promise<Subject> {
  if (named.kind === 'file') {
    const { path } = named
    return { kind: 'file', name: path, bytes: await readFileBounded(path, { maxBytes: MAX_CAR_BYTES }) }
  }
  if (isOffline) throw invalid('--offline', 'only a receipt file can be verified offline')
  if (named.kind !== 'proof') return named
  const { slug, origin } = named
  if (api !== undefined) return { kind: 'proof', slug, api }
  if (origin === undefined) throw invalid('a slug requires --api', 'or pass the whole proof link')
  return { kind: 'proof', slug, api: await findApi(deps, origin) }
}

export async function readManifest(path: string | undefined): Promise<Manifest[]> {
  if (path === undefined) return []
  const bytes = await readFileBounded(path, { maxBytes: MAX_MANIFEST_BYTES })
  return [withSource(path, () => parseManifest(bytes))]
}

async function readCollateralFile(path: string) {
  return { name: path, bytes: await readFileBounded(path, { maxBytes: MAX_COLLATERAL_BYTES }) }
}

async function readOptional(path: string | undefined, maxBytes: number) {
  return path === undefined ? undefined : readFileBounded(path, { maxBytes })
}

/** Finds a block next to the receipt, by its CID or its usual name. */
async function readBeside(receiptPath: string, cid: string): Promise<Uint8Array<ArrayBuffer>[]> {
  const folder = dirname(receiptPath)
  const names = [cid, `${cid}.json`, ...BLOCK_NAMES.map((name) => `${name}.json`)]
  const found = await Promise.all(names.map((name) => readNeighbour(join(folder, name))))
  return found.filter((bytes) => bytes !== undefined)
}

/** This file is optional, so an unreadable one counts as missing. */
async function readNeighbour(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (!(await isPathTaken(path))) return undefined
  try {
    return await readFileBounded(path, { maxBytes: MAX_COLLATERAL_BYTES })
  } catch (error) {
    if (error instanceof VerifierError) return undefined
    throw error
  }
}

function invalid(message: string, details: string) {
  return new VerifierError('invalid_arguments', message, { details })
}
