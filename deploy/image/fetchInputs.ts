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
}

/** Downloads the inputs of images. Keeps files that are already there, so that an interrupted run can be repeated. */
export async function fetchInputs({ root, folder, servers, report }: FetchParameters): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (const input of listInputs(root)) {
    const path = join(folder, input.file)
    if (existsSync(path) && isIntact(input, readFileSync(path))) {
      report(`${input.file}: already in ${folder}`)
      continue
    }
    const content = await download(input, toUrls(input, servers))
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

async function download(input: Input, urls: readonly string[]): Promise<Uint8Array> {
  const faults: string[] = []
  for (const url of urls) {
    try {
      const response = await fetch(url)
      const content = new Uint8Array(await response.arrayBuffer())
      if (!response.ok) faults.push(`${url} answered ${response.status}`)
      else if (!isIntact(input, content)) faults.push(`${url} has other bytes, expected ${input.integrity}`)
      else return content
    } catch (error) {
      const { message, cause } = error as Error
      faults.push(`failed to get ${url}: ${cause instanceof Error ? cause.message : message}`)
    }
  }
  throw new InputError('download_failed', input.file, faults.join('; '))
}
