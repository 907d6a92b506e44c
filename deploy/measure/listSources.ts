import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { APP, LAUNCHER } from '../launcher/launchers.ts'
import type { Architecture, Image } from './images.ts'
import { listTree } from './listTree.ts'
import { MeasureError } from './MeasureError.ts'
import type { WalkRequest, WalkResult } from './walkImports.ts'

/** A file or link of an image and the source of its content. Paths in the image have no leading slash. */
export type Source = { path: string } & (
  | { from: string; isExecutable: boolean }
  | { content: Uint8Array; isExecutable: boolean }
  | { link: string }
)

export type ListSourcesParameters = {
  /** The checkout with installed dependencies. */
  root: string
  image: Image
  arch: Architecture
  /** Node and its shared libraries. */
  runtime: readonly Source[]
  /** The launcher to include. */
  launcher: Uint8Array
}

/** Otherwise glibc would query the name server before /etc/hosts. */
const NAME_SERVICES = Buffer.from('hosts: files dns\n')

/** All files of an image, unordered: the imports of the entries, files read to resolve them, and Node. */
export function listSources(parameters: ListSourcesParameters): Source[] {
  const { image, arch, runtime, launcher } = parameters
  const root = realpathSync(parameters.root)
  const faults: string[] = []
  const files = new Set<string>()
  for (const path of walk(root, image)) {
    if (relative(root, path).startsWith('..')) faults.push(`${path} is outside of the repository`)
    files.add(path)
  }
  for (const folder of image.folders) {
    const path = join(root, folder)
    if (!existsSync(path)) faults.push(`${folder} not found; build it first`)
    else for (const entry of listTree(path)) if (entry.kind === 'file') files.add(join(path, entry.path))
  }
  for (const path of [...files]) for (const read of packageFilesOf(root, path)) files.add(read)

  const packages = new Map<string, string>()
  for (const path of files) {
    const folder = packageFolderOf(path)
    if (folder !== undefined) packages.set(folder, folder.replace(/^.*node_modules\//, ''))
  }
  faults.push(...checkVersions(root, packages))
  for (const [folder, name] of packages) {
    for (const extra of image.known[name]?.(arch) ?? []) {
      const path = join(folder, extra)
      if (existsSync(path)) files.add(path)
      else faults.push(`${relative(root, path)} not found`)
    }
  }
  if (faults.length > 0) throw new MeasureError(faults)

  return [
    ...[...files].map((from) => ({ path: inImage(APP, relative(root, from)), from, isExecutable: false })),
    ...listLinks(root, files).map(({ path, link }) => ({ path: inImage(APP, path), link })),
    ...runtime,
    { path: inImage(LAUNCHER), content: launcher, isExecutable: true },
    { path: 'etc/nsswitch.conf', content: NAME_SERVICES, isExecutable: false },
  ]
}

function inImage(...parts: string[]): string {
  return join(...parts).slice(1)
}

/** Runs in a child process, because Node offers its parser and resolver only with command-line flags. */
function walk(root: string, { entries, leftOut, known, absent }: Image): string[] {
  const program = fileURLToPath(new URL('./walkImports.ts', import.meta.url))
  const flags = ['--no-warnings', '-C', 'source', '--experimental-vm-modules', '--experimental-import-meta-resolve']
  const request: WalkRequest = {
    entries: entries.map((entry) => join(root, entry)),
    leftOut,
    known: Object.keys(known),
    absent,
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, program], {
    input: JSON.stringify(request),
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env: { PATH: process.env.PATH },
  })
  if (status !== 0) throw new MeasureError([`failed to follow the imports: ${stderr.trim()}`])
  const { files, faults } = JSON.parse(stdout) as WalkResult
  if (faults.length > 0) throw new MeasureError(faults.map((fault) => fault.replaceAll(`${root}/`, '')))
  return files
}

/** The package.json files that Node reads for a module: the nearest one and the one of its package. */
function packageFilesOf(root: string, path: string): string[] {
  const found: string[] = []
  for (let folder = dirname(path); folder.startsWith(root); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (!existsSync(file)) continue
    found.push(file)
    break
  }
  const own = packageFolderOf(path)
  return own === undefined ? found : [...found, join(own, 'package.json')]
}

function packageFolderOf(path: string): string | undefined {
  return /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]
}

/** Detects packages that were installed in versions other than the lockfile's. */
function checkVersions(root: string, packages: ReadonlyMap<string, string>): string[] {
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string }>
  }
  return [...packages.keys()].flatMap((folder) => {
    const path = relative(root, folder)
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
    const expected = locked[path]?.version
    return version === expected
      ? []
      : [`${path} has version ${version}, expected ${expected ?? 'no such package'} from the lockfile`]
  })
}

/** Packages of the repository are found through npm's links, because Node doesn't strip types in node_modules. */
function listLinks(root: string, files: ReadonlySet<string>): { path: string; link: string }[] {
  const folders = new Set([...files].flatMap((path) => /^packages\/[^/]+/.exec(relative(root, path))?.[0] ?? []))
  return [...folders].map((folder) => {
    const { name } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { name: string }
    const path = join('node_modules', name)
    return { path, link: relative(dirname(path), folder) }
  })
}
