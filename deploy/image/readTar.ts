const BLOCK_BYTES = 512

/**
 * Returns the regular files of a tar archive. Skips folders and symbolic links, and rejects names outside of the archive, hard links and
 * everything else.
 */
export function readTar(archive: Uint8Array): Map<string, Uint8Array> {
  const bytes = Buffer.from(archive.buffer, archive.byteOffset, archive.length)
  const files = new Map<string, Uint8Array>()
  for (let at = 0; ; ) {
    const header = bytes.subarray(at, at + BLOCK_BYTES)
    if (header.length < BLOCK_BYTES) throw new Error('invalid archive: truncated')
    if (header.every((byte) => byte === 0)) return files
    if (sumOf(header) !== readOctal(header, 148, 8)) throw new Error(`invalid archive: wrong checksum at byte ${at}`)
    const prefix = header.toString('latin1', 257, 263) === 'ustar\0' ? readText(header, 345, 155) : ''
    const stored = [prefix, readText(header, 0, 100)].filter((part) => part !== '').join('/')
    const name = stored.replace(/^\.\//, '')
    if (name.startsWith('/') || name.split('/').includes('..')) throw new Error(`invalid archive: path ${stored}`)
    const size = readOctal(header, 124, 12)
    const start = at + BLOCK_BYTES
    if (start + size > bytes.length) throw new Error(`invalid archive: ${name} is truncated`)
    const type = header.toString('latin1', 156, 157)
    if (type === '0' || type === '\0') {
      if (files.has(name)) throw new Error(`invalid archive: duplicate file ${name}`)
      files.set(name, bytes.subarray(start, start + size))
    } else if (type !== '2' && type !== '5') throw new Error(`invalid archive: ${name} has type ${type}`)
    at = start + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES
  }
}

/** The sum of a header's bytes, with spaces in place of the checksum. */
function sumOf(header: Uint8Array): number {
  return header.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0)
}

function readText(header: Buffer, at: number, length: number): string {
  return header.toString('utf8', at, at + length).replace(/\0.*$/s, '')
}

function readOctal(header: Buffer, at: number, length: number): number {
  const text = readText(header, at, length).trim()
  if (!/^[0-7]+$/.test(text)) throw new Error(`invalid archive: expected an octal number, got ${JSON.stringify(text)}`)
  return Number.parseInt(text, 8)
}
