import xz from 'xz-decompress'

const HEADER_BYTES = 60

/** Returns the tar archive with the files of a Debian package: the member data.tar.xz of an `ar` archive. */
export async function readDeb(bytes: Buffer<ArrayBuffer>): Promise<Uint8Array> {
  if (bytes.toString('latin1', 0, 8) !== '!<arch>\n') throw new Error('invalid package: expected an ar archive')
  for (let at = 8; at < bytes.length; ) {
    const header = bytes.toString('latin1', at, at + HEADER_BYTES)
    if (header.length < HEADER_BYTES || !header.endsWith('`\n')) throw new Error('invalid package: malformed header')
    const name = header.slice(0, 16).trim().replace(/\/$/, '')
    const size = Number(header.slice(48, 58).trim())
    const start = at + HEADER_BYTES
    if (!Number.isSafeInteger(size) || size < 0 || start + size > bytes.length) {
      throw new Error(`invalid package: ${name} is truncated`)
    }
    if (name === 'data.tar.xz') return decompress(bytes.subarray(start, start + size))
    // Members start at even positions.
    at = start + size + (size % 2)
  }
  throw new Error('invalid package: no data.tar.xz')
}

async function decompress(content: Buffer<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new xz.XzReadableStream(new Blob([content]).stream())
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
