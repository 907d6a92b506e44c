/** Hex, with or without `0x`, for a column of bytes. The lengths are checked by the database. */
export function toBytes(hex: string): Buffer {
  return Buffer.from(toDigits(hex), 'hex')
}

/** Hex digits only, in lower case, for the arrays that SQL decodes itself. */
export function toDigits(hex: string): string {
  return (hex.startsWith('0x') ? hex.slice(2) : hex).toLowerCase()
}

/** Drivers answer slices of larger buffers. */
export function toOwnBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}
