const BLOCK_BYTES = 512

export type TarEntry = { path: string } & ({ content: Uint8Array; mode: number } | { link: string } | { folder: true })

/** Creates a tar archive (POSIX ustar) whose entries belong to root and have the time 0. Keeps their order. */
export function createTar(entries: readonly TarEntry[]): Uint8Array {
  const parts = entries.flatMap((entry): Uint8Array[] => {
    if ('link' in entry) return [toHeader(entry.path, { mode: 0o777, size: 0, type: '2', link: entry.link })]
    if ('folder' in entry) return [toHeader(`${entry.path}/`, { mode: 0o755, size: 0, type: '5' })]
    const { path, content, mode } = entry
    const padding = new Uint8Array(-content.length & (BLOCK_BYTES - 1))
    return [toHeader(path, { mode, size: content.length, type: '0' }), content, padding]
  })
  return Buffer.concat([...parts, new Uint8Array(2 * BLOCK_BYTES)])
}

function toHeader(path: string, field: { mode: number; size: number; type: string; link?: string }): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  const { prefix, name } = split(path)
  const link = Buffer.from(field.link ?? '')
  if (link.length > 100) throw new Error(`link target is longer than 100 bytes: ${field.link}`)
  name.copy(header, 0)
  octal(field.mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(field.size, 124, 12)
  octal(0, 136, 12)
  header.write(`        ${field.type}`, 148, 'latin1')
  link.copy(header, 157)
  header.write('ustar\x0000', 257, 'latin1')
  octal(0, 329, 8)
  octal(0, 337, 8)
  prefix.copy(header, 345)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

/** A name has 100 bytes. The folders before it go into another field of 155 bytes. */
function split(path: string): { prefix: Buffer; name: Buffer } {
  const bytes = Buffer.from(path)
  if (bytes.length <= 100) return { prefix: Buffer.alloc(0), name: bytes }
  const at = bytes.indexOf('/', bytes.length - 101)
  if (at < 1 || at > 155 || at === bytes.length - 1) throw new Error(`path is too long for a tar archive: ${path}`)
  return { prefix: bytes.subarray(0, at), name: bytes.subarray(at + 1) }
}
