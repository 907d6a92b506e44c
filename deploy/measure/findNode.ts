import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Architecture } from './images.ts'
import { MeasureError } from './MeasureError.ts'

/**
 * Finds the pinned Node for an architecture. Setup installs only this machine's Node in `scripts/runtime`, so Nodes for other architectures
 * are in a separate folder.
 */
export function findNode(root: string, arch: Architecture): string {
  const name = `node-linux-${arch}`
  const pinned = readJson(join(root, 'scripts/runtime/package.json')).optionalDependencies?.[name]
  const separate = `.countersign/${name}`
  for (const folder of ['scripts/runtime', separate]) {
    const path = join(root, folder, 'node_modules', name)
    if (existsSync(join(path, 'bin/node')) && readJson(join(path, 'package.json')).version === pinned) {
      return join(path, 'bin/node')
    }
  }
  const how = `mkdir -p ${separate} && cp scripts/runtime/package*.json ${separate} && npm ci --prefix ${separate} --os=linux --cpu=${arch}`
  throw new MeasureError([`Node ${pinned} for ${arch} is not installed; install it with: ${how}`])
}

function readJson(path: string): { version?: string; optionalDependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(path, 'utf8'))
}
