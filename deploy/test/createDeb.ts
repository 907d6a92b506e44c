import { crc32 } from 'node:zlib'

/** A Debian package with only the member that images are made from. */
export function createDeb(tar: Uint8Array): Buffer {
  const members = [
    { name: 'debian-binary', content: Buffer.from('2.0\n') },
    // An odd length, which needs padding.
    { name: 'control.tar.xz', content: Buffer.from('control') },
    { name: 'data.tar.xz', content: createXz(tar) },
  ]
  const parts = members.flatMap(({ name, content }) => [
    Buffer.from(`${name.padEnd(48)}${String(content.length).padEnd(10)}\`\n`),
    content,
    Buffer.alloc(content.length % 2, '\n'),
  ])
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts])
}

/** The xz format with one block of uncompressed chunks and without a checksum of the content. */
function createXz(content: Uint8Array): Buffer {
  const FLAGS = Buffer.from([0, 0])
  // One filter: LZMA2 with a dictionary of 64 KiB.
  const blockHeader = withCrc(Buffer.from([2, 0, 0x21, 1, 8, 0, 0, 0]))
  const chunks: Buffer[] = []
  for (let at = 0; at < content.length; at += 0x10000) {
    const chunk = content.subarray(at, at + 0x10000)
    const header = Buffer.from([at === 0 ? 1 : 2, 0, 0])
    header.writeUInt16BE(chunk.length - 1, 1)
    chunks.push(header, Buffer.from(chunk))
  }
  const block = Buffer.concat([blockHeader, ...chunks, Buffer.alloc(1)])
  const index = withCrc(pad(Buffer.from([0, 1, ...toVarint(block.length), ...toVarint(content.length)])))
  const backward = Buffer.alloc(4)
  backward.writeUInt32LE(index.length / 4 - 1)
  const footer = Buffer.concat([backward, FLAGS])
  return Buffer.concat([
    Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]),
    withCrc(FLAGS),
    pad(block),
    index,
    withCrc(footer).subarray(6),
    footer,
    Buffer.from('YZ'),
  ])
}

function withCrc(bytes: Uint8Array): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(bytes))
  return Buffer.concat([bytes, sum])
}

function pad(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)])
}

function toVarint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...toVarint(value >>> 7)]
}
