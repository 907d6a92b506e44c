import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Manifest, Packed, PublishedPackage } from './readPublished.ts'

/** The file that `npm pack` writes for a package. */
export function toTarball(folder: string, { name, version }: Manifest): string {
  return join(folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
}

/** Returns the packages with their tarballs, in the given order. Throws if the folder has other or fewer files. */
export function findTarballs({
  packages,
  folder,
}: {
  packages: readonly PublishedPackage[]
  folder: string
}): Packed[] {
  const packed = packages.map((one) => ({ ...one, tarball: toTarball(folder, one.manifest) }))
  const expected = packed.map(({ tarball }) => tarball)
  const found = readdirSync(folder).map((name) => join(folder, name))
  const wrong = [
    ...expected.filter((path) => !found.includes(path)),
    ...found.filter((path) => !expected.includes(path)),
  ]
  if (wrong.length > 0) throw new Error(`missing, or none of ours: ${wrong.join(', ')}`)
  return packed
}
