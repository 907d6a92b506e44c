import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Source } from '../measure/listSources.ts'
import { createTar, type TarEntry } from './createTar.ts'

/** A file with its content in memory, or a link. */
export type LoadedSource = Exclude<Source, { from: string }>

/** A deflate block holds at most 65,535 bytes if it isn't compressed. */
const BLOCK_BYTES = 0xffff

/**
 * Creates an image's layer. It is gzip without compression: compressed bytes depend on zlib's version and the processor, and tools that push
 * an image compress a bare archive, which would change the image's digest.
 */
export function createLayer(sources: readonly LoadedSource[]): { tar: Uint8Array; layer: Uint8Array } {
  const folders = new Set<string>()
  for (const { path } of sources) {
    for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) folders.add(parent)
  }
  const entries: TarEntry[] = [
    ...[...folders].map((path) => ({ path, folder: true }) as const),
    ...sources.map((source) => {
      if ('link' in source) return source
      return { path: source.path, content: source.content, mode: source.isExecutable ? 0o755 : 0o644 }
    }),
  ]
  const tar = createTar(entries.sort((left, right) => Buffer.compare(Buffer.from(left.path), Buffer.from(right.path))))
  return { tar, layer: storeAsGzip(tar) }
}

/** RFC 1952, with stored blocks of RFC 1951. */
function storeAsGzip(content: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])]
  for (let at = 0; at < content.length; at += BLOCK_BYTES) {
    const block = content.subarray(at, at + BLOCK_BYTES)
    const header = Buffer.alloc(5)
    header.writeUInt8(at + block.length === content.length ? 1 : 0)
    header.writeUInt16LE(block.length, 1)
    header.writeUInt16LE(~block.length & 0xffff, 3)
    parts.push(header, block)
  }
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc32(content))
  trailer.writeUInt32LE(content.length % 2 ** 32, 4)
  return Buffer.concat([...parts, trailer])
}
