import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { InputError } from './InputError.ts'
import { type Input, isIntact, listInputs } from './listInputs.ts'

export type FetchParameters = {
  root: string
  folder: string
  /** Addresses of npm's registry, of a mirror of Debian, and of Debian's snapshots for packages that a mirror no longer has. */
  servers: { registry: string; mirror: string; snapshots: string }
  report: (line: string) => void
  limits?: Limits
}

/** The largest file, and the longest time without a byte. */
type Limits = { bytes: number; stallMs: number }

/** Node's archive, the largest input, has about 60 MB. */
const LIMITS: Limits = { bytes: 268_435_456, stallMs: 60_000 }

/** Downloads the inputs of images. Keeps files that are already there, so that an interrupted run can be repeated. */
export async function fetchInputs({ root, folder, servers, report, limits = LIMITS }: FetchParameters): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (const input of listInputs(root)) {
    const path = join(folder, input.file)
    if (existsSync(path) && isIntact(input, readFileSync(path))) {
      report(`${input.file}: already in ${folder}`)
      continue
    }
    const content = await download(input, toUrls(input, servers), limits)
    // A rename is atomic, so a file with this name is complete.
    writeFileSync(`${path}.part`, content)
    renameSync(`${path}.part`, path)
    report(`${input.file}: ${content.length} bytes`)
  }
}

function toUrls({ source }: Input, { registry, mirror, snapshots }: FetchParameters['servers']): string[] {
  if (source.kind === 'npm') return [toUrl(registry, source.path)]
  return [toUrl(mirror, source.path), toUrl(snapshots, source.path.replace('/', `/${source.snapshot}/`))]
}

function toUrl(server: string, path: string): string {
  return `${server.replace(/\/+$/, '')}/${path.replaceAll('+', '%2b')}`
}

async function download(input: Input, urls: readonly string[], limits: Limits): Promise<Uint8Array> {
  const faults: string[] = []
  for (const url of urls) {
    try {
      const { status, content } = await get(url, limits)
      if (status !== 200) faults.push(`${url} answered ${status}`)
      else if (!isIntact(input, content)) faults.push(`${url} has other bytes, expected ${input.integrity}`)
      else return content
    } catch (error) {
      const { message, cause } = error as Error
      faults.push(`failed to get ${url}: ${cause instanceof Error ? cause.message : message}`)
    }
  }
  throw new InputError('download_failed', input.file, faults.join('; '))
}

async function get(url: string, { bytes, stallMs }: Limits): Promise<{ status: number; content: Uint8Array }> {
  const stalled = new AbortController()
  const timer = setTimeout(() => stalled.abort(new Error(`no data for ${stallMs / 1000} s`)), stallMs)
  try {
    const { status, body } = await fetch(url, { signal: stalled.signal })
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of body ?? []) {
      timer.refresh()
      size += chunk.length
      if (size > bytes) throw new Error(`more than ${bytes} bytes`)
      chunks.push(chunk)
    }
    return { status, content: Buffer.concat(chunks) }
  } finally {
    clearTimeout(timer)
  }
}
