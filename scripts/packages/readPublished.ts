import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The members of a package.json that a release uses. */
export type Manifest = {
  name: string
  version: string
  private?: boolean
  description?: string
  license?: string
  homepage?: string
  bugs?: string
  repository?: { type?: string; url?: string; directory?: string }
  exports?: Record<string, unknown>
  scripts?: Record<string, string>
  dependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  engines?: { node?: string }
  publishConfig?: { access?: string; provenance?: boolean }
}

export type PublishedPackage = {
  /** Relative to the root: `packages/sdk`. */
  folder: string
  manifest: Manifest
}

export type Packed = PublishedPackage & { tarball: string }

/** The packages that are not private, each after its dependencies. */
export function readPublished(root: string): PublishedPackage[] {
  const folders = ['packages', 'apps'].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
  )
  const all = folders
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .map((folder): PublishedPackage => {
      const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
      return { folder, manifest }
    })
  return sortByDependency(all.filter(({ manifest }) => manifest.private !== true))
}

function sortByDependency(packages: readonly PublishedPackage[]): PublishedPackage[] {
  const byName = new Map(packages.map((one) => [one.manifest.name, one]))
  const sorted = new Set<PublishedPackage>()
  // `tsc -b` rejects circular references, so this terminates.
  const add = (one: PublishedPackage) => {
    for (const name of Object.keys(one.manifest.dependencies ?? {})) {
      const needed = byName.get(name)
      if (needed !== undefined) add(needed)
    }
    sorted.add(one)
  }
  for (const one of packages) add(one)
  return [...sorted]
}
