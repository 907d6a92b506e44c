import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Unpacks the layers of an OCI layout into a folder, as a container engine does. */
export function unpackImage(layout: string, folder: string) {
  const read = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'))
  const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
  const { manifests } = readJson(join(layout, 'index.json')) as { manifests: { digest: string }[] }
  const { layers } = readJson(read(manifests[0]?.digest ?? '')) as { layers: { digest: string }[] }
  mkdirSync(folder, { recursive: true })
  for (const { digest } of layers) execFileSync('tar', ['-xzf', read(digest), '-C', folder])
}
