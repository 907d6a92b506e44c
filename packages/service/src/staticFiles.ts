import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** `compress` does its work once, in another thread. */
export type StaticFile = { type: string; body: Buffer; etag: string; compress(): Promise<Buffer> }

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
}

/**
 * The files below a folder, by path without a leading slash. Servers read them once, at the start, so no path of a request reaches the
 * file system.
 */
export function readStaticFiles(folder: string): Map<string, StaticFile> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return new Map(
    names
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [name, toStaticFile(name, readFileSync(join(folder, name)))]),
  )
}

export function toStaticFile(name: string, body: Buffer): StaticFile {
  let compressed: Promise<Buffer> | undefined
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    body,
    etag: `"${hash('sha256', body, 'hex').slice(0, 32)}"`,
    compress: () => (compressed ??= promisify(gzip)(body, { level: 9 })),
  }
}
