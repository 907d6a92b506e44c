import { hash } from 'node:crypto'
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Architecture, architectures, type ImageName, imageNames } from './images.ts'
import type { Source } from './listSources.ts'
import { listTree } from './listTree.ts'
import { MeasureError } from './MeasureError.ts'

export type Entry =
  | { path: string; mode: '0644' | '0755'; bytes: number; sha256: string }
  | { path: string; link: string }

const UNLISTABLE = /\p{Cc}/u

/** The contents of an image, file by file. */
export type Manifest = {
  format: 'countersign-image/1'
  image: ImageName
  arch: Architecture
  /** SHA-256 of the listing. */
  hash: string
  files: readonly Entry[]
}

export function createManifest(
  { image, arch }: { image: ImageName; arch: Architecture },
  sources: readonly Source[],
): Manifest {
  return toManifest({ image, arch }, sources.map(toEntry))
}

export function toManifest(
  { image, arch }: { image: ImageName; arch: Architecture },
  entries: readonly Entry[],
): Manifest {
  const files = entries.toSorted(byPath)
  return { format: 'countersign-image/1', image, arch, hash: hashListing(files), files }
}

function toEntry(source: Source): Entry {
  const { path } = source
  if ('link' in source) return { path, link: source.link }
  const content = 'content' in source ? source.content : readFileSync(source.from)
  return describe(path, content, source.isExecutable)
}

function describe(path: string, content: Uint8Array, isExecutable: boolean): Entry {
  return { path, mode: isExecutable ? '0755' : '0644', bytes: content.length, sha256: hash('sha256', content, 'hex') }
}

/** Compares bytes, like `LC_ALL=C sort`. */
function byPath(left: Entry, right: Entry): number {
  return Buffer.compare(Buffer.from(left.path), Buffer.from(right.path))
}

/** Lists each file as `MODE SHA256 BYTES PATH` and each link as `link TARGET PATH`. The SHA-256 of the listing is the image's hash. */
function toListing(files: readonly Entry[]): string {
  return files
    .map((entry) => {
      // Otherwise two lists of files could have the same listing.
      if (UNLISTABLE.test(entry.path) || ('link' in entry && /\s/.test(entry.link)))
        throw new MeasureError([`${JSON.stringify(entry.path)}: expected names without control characters`])
      if ('link' in entry) return `link ${entry.link} ${entry.path}\n`
      return `${entry.mode} ${entry.sha256} ${entry.bytes} ${entry.path}\n`
    })
    .join('')
}

function hashListing(files: readonly Entry[]): string {
  return hash('sha256', toListing(files), 'hex')
}

export function toJson(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** Parses an untrusted manifest. Its hash must match its files. */
export function parseManifest(text: string): Manifest {
  let value: Partial<Manifest>
  try {
    value = JSON.parse(text)
  } catch {
    throw new MeasureError(['the manifest is not JSON'])
  }
  const isManifest =
    value?.format === 'countersign-image/1' &&
    imageNames.includes(value.image as ImageName) &&
    architectures.includes(value.arch as Architecture) &&
    Array.isArray(value.files) &&
    value.files.every(isEntry)
  if (!isManifest) throw new MeasureError(['invalid manifest: expected format countersign-image/1'])
  const manifest = value as Manifest
  const paths = manifest.files.map(({ path }) => path)
  if (new Set(paths).size !== paths.length) throw new MeasureError(['invalid manifest: duplicate file'])
  if (manifest.hash !== hashListing(manifest.files.toSorted(byPath))) {
    throw new MeasureError(["invalid manifest: the hash doesn't match the files"])
  }
  return manifest
}

/** Rejects members that the listing doesn't contain, because the hash wouldn't cover them. */
function isEntry(value: unknown): value is Entry {
  const { path, link, mode, bytes, sha256, ...more } = (value ?? {}) as Record<string, unknown>
  if (typeof path !== 'string' || path === '' || Object.keys(more).length > 0) return false
  if (link !== undefined)
    return typeof link === 'string' && [mode, bytes, sha256].every((member) => member === undefined)
  return (mode === '0644' || mode === '0755') && Number.isSafeInteger(bytes) && /^[0-9a-f]{64}$/.test(String(sha256))
}

/** Returns a line for each difference. */
export function compareFiles(expected: readonly Entry[], actual: readonly Entry[]): string[] {
  const [before, after] = [expected, actual].map(
    (files) => new Map(files.map((entry) => [entry.path, toListing([entry])])),
  )
  const paths = [...new Set([...expected, ...actual].toSorted(byPath).map(({ path }) => path))]
  return paths.flatMap((path) => {
    if (before?.get(path) === after?.get(path)) return []
    if (!before?.has(path)) return [`added    ${path}`]
    return [after?.has(path) ? `changed  ${path}` : `missing  ${path}`]
  })
}

/** Reads the entries of an existing tree: staged, or unpacked from an image. */
export function readTree(folder: string): Entry[] {
  const files = listTree(folder).flatMap(({ path, kind }): Entry[] => {
    const from = join(folder, path)
    if (kind === 'link') return [{ path, link: readlinkSync(from) }]
    if (kind === 'file') {
      const { mode } = statSync(from)
      // The listing has no place for these bits, so the hash wouldn't cover them.
      if ((mode & 0o7000) !== 0)
        throw new MeasureError([`${path}: expected a file without setuid, setgid and sticky bits`])
      return [describe(path, readFileSync(from), (mode & 0o100) !== 0)]
    }
    if (kind === 'folder') return []
    throw new MeasureError([`${path} is neither a file nor a link`])
  })
  return files.toSorted(byPath)
}
