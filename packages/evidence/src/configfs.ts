import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as systemWait } from 'node:timers/promises'
import { SNP_REPORT_BYTES } from '@countersign/attestation/core'
import { EvidenceError, toErrno } from './errors.ts'
import type { QuoteSource, ReportSource, Wait } from './ports.ts'
import { createQuoteSource, createReportSource, MAX_CERTIFICATES_LENGTH, MAX_QUOTE_LENGTH } from './source.ts'
import { systemTsmFilesystem, type TsmFilesystem } from './tsmFilesystem.ts'

/** The path of configfs-tsm, and the time limit of one call. */
export type ConfigfsSourceParameters = {
  root?: string
  timeoutMs?: number
  filesystem?: TsmFilesystem
  wait?: Wait
}

export type ConfigfsReportSourceParameters = ConfigfsSourceParameters & {
  /** The VMPL of the report, 0 to 3 and not below the guest's own. The kernel's default is 0. */
  privlevel?: number
}

type Provider = 'tdx_guest' | 'sev_guest'
type Deps = { root: string; filesystem: TsmFilesystem; wait: Wait }
type Request = { provider: Provider; inblob: Uint8Array; privlevel?: number | undefined }
type Blobs = { outblob: Uint8Array; auxblob: Uint8Array }

const ROOT = '/sys/kernel/config/tsm/report'
const MAX_TEXT_LENGTH = 4096
const ATTEMPTS = 4
const FIRST_PAUSE_MS = 250

/**
 * Driver errors: an earlier request is still with the host (EBUSY), the host did not answer in time (ETIMEDOUT), or a signal interrupted the
 * call (EINTR). See drivers/virt/coco/tdx-guest/tdx-guest.c, sev-guest/sev-guest.c.
 */
const BUSY: readonly unknown[] = ['EBUSY', 'ETIMEDOUT', 'EINTR']

/** Advice if creating an entry fails, by errno: fs/configfs and drivers/virt/coco/guest/report.c. */
const UNAVAILABLE: Readonly<Record<string, string>> = {
  ENOENT: 'mount configfs at /sys/kernel/config and load the guest driver (Linux 6.7 or later)',
  ENOTDIR: 'mount configfs at /sys/kernel/config and load the guest driver (Linux 6.7 or later)',
  ENXIO: 'load the guest driver: tdx_guest on Intel TDX, sev_guest on AMD SEV-SNP',
  EACCES: 'configfs-tsm is for root: grant this process access to it',
  EPERM: 'configfs-tsm is for root: grant this process access to it',
  EROFS: 'mount configfs into this container so that it can be written',
}

/**
 * TDX quotes from the kernel: Documentation/ABI/testing/configfs-tsm-report, Linux 6.7 and later.
 *
 * @example
 * const { quote } = await createConfigfsQuoteSource().getQuote(reportData)
 */
export function createConfigfsQuoteSource(parameters: ConfigfsSourceParameters = {}): QuoteSource {
  const deps = toDeps(parameters)
  return createQuoteSource({
    mode: 'hardware',
    timeoutMs: parameters.timeoutMs,
    async ask(reportData, signal) {
      const { outblob } = await readEvidence(deps, { provider: 'tdx_guest', inblob: reportData }, signal)
      return { quote: outblob }
    },
  })
}

/**
 * SEV-SNP reports from the kernel, with the host's certificates if there are any.
 *
 * @example
 * const { report, certificates } = await createConfigfsReportSource().getReport(reportData)
 */
export function createConfigfsReportSource(parameters: ConfigfsReportSourceParameters = {}): ReportSource {
  const deps = toDeps(parameters)
  const { privlevel } = parameters
  if (privlevel !== undefined && ![0, 1, 2, 3].includes(privlevel)) {
    throw new EvidenceError('privlevel_invalid', 'privilege level must be 0 to 3')
  }
  return createReportSource({
    mode: 'hardware',
    timeoutMs: parameters.timeoutMs,
    async ask(reportData, signal) {
      const request: Request = { provider: 'sev_guest', inblob: reportData, privlevel }
      const { outblob, auxblob } = await readEvidence(deps, request, signal)
      return auxblob.length === 0 ? { report: outblob } : { report: outblob, certificates: auxblob }
    },
  })
}

function toDeps({ root = ROOT, filesystem = systemTsmFilesystem, wait = systemWait }: ConfigfsSourceParameters): Deps {
  return { root, filesystem, wait }
}

async function readEvidence(deps: Deps, request: Request, signal: AbortSignal): Promise<Blobs> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readOnce(deps, request, signal)
    } catch (error) {
      const again = error instanceof EvidenceError && ['evidence_busy', 'generation_mismatch'].includes(error.code)
      if (!again || attempt === ATTEMPTS) throw error
    }
    await deps.wait(FIRST_PAUSE_MS * 2 ** (attempt - 1))
    signal.throwIfAborted()
  }
}

/** Uses a separate entry for each attempt, and always removes it. */
async function readOnce({ root, filesystem }: Deps, request: Request, signal: AbortSignal): Promise<Blobs> {
  const entry = join(root, `countersign-${randomUUID()}`)
  await filesystem.mkdir(entry).catch((error) => {
    const errno = toErrno(error)
    const advice = UNAVAILABLE[errno]
    if (!advice) throw toEvidenceError(error, 'mkdir')
    throw new EvidenceError('configfs_unavailable', 'no configfs-tsm here', {
      details: `${errno}: ${advice}`,
      cause: error,
    })
  })
  let blobs: Blobs
  try {
    blobs = await useEntry(filesystem, entry, request, signal)
  } catch (error) {
    await filesystem.rmdir(entry).catch(() => undefined)
    throw error
  }
  await filesystem.rmdir(entry).catch((error) => {
    throw toEvidenceError(error, 'rmdir')
  })
  return blobs
}

async function useEntry(
  filesystem: TsmFilesystem,
  entry: string,
  request: Request,
  signal: AbortSignal,
): Promise<Blobs> {
  let writes = 0n

  async function write(attribute: string, bytes: Uint8Array) {
    signal.throwIfAborted()
    await filesystem.write(join(entry, attribute), bytes).catch((error) => {
      throw toEvidenceError(error, attribute)
    })
    writes++
  }

  async function read(attribute: string, maxLength: number) {
    signal.throwIfAborted()
    const bytes = await filesystem.read(join(entry, attribute), maxLength).catch((error) => {
      throw toEvidenceError(error, attribute)
    })
    if (bytes.length > maxLength) throw tooLarge(attribute)
    return bytes
  }

  async function readText(attribute: string) {
    return new TextDecoder().decode(await read(attribute, MAX_TEXT_LENGTH)).replace(/\n$/, '')
  }

  async function readGeneration() {
    const text = await readText('generation')
    if (!/^\d{1,20}$/.test(text)) throw new EvidenceError('evidence_malformed', 'generation is not a number')
    return BigInt(text)
  }

  const provider = await readText('provider')
  if (provider !== request.provider) {
    throw new EvidenceError('provider_mismatch', 'evidence of another kind than configured', {
      details: `expected ${request.provider}, got ${JSON.stringify(provider.slice(0, 64))}`,
    })
  }
  const generation = await readGeneration()
  await write('inblob', request.inblob)
  if (request.privlevel !== undefined) await write('privlevel', new TextEncoder().encode(String(request.privlevel)))
  const isSnp = request.provider === 'sev_guest'
  const outblob = await read('outblob', isSnp ? SNP_REPORT_BYTES : MAX_QUOTE_LENGTH)
  // TDX doesn't have this attribute.
  const auxblob = isSnp ? await read('auxblob', MAX_CERTIFICATES_LENGTH) : new Uint8Array()
  // The kernel drops the result of writing a binary attribute, so this check also detects a lost write.
  if ((await readGeneration()) !== generation + writes) {
    throw new EvidenceError('generation_mismatch', 'another process wrote into our entry')
  }
  return { outblob, auxblob }
}

function toEvidenceError(error: unknown, where: string): EvidenceError {
  const errno = toErrno(error)
  if (BUSY.includes(errno)) {
    return new EvidenceError('evidence_busy', 'the guest driver is busy', {
      details: `${errno}: ${where}`,
      cause: error,
    })
  }
  // The driver's limit, which is larger in newer kernels.
  if (errno === 'EFBIG') return tooLarge(where)
  return new EvidenceError('evidence_io', 'the guest driver refused', { details: `${errno}: ${where}`, cause: error })
}

function tooLarge(where: string) {
  return new EvidenceError('evidence_too_large', 'more evidence than a guest gives', { details: where })
}
