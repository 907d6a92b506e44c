/** Without the white space of JSON at either end, such as the line feed that editors add. */
export function trimWhiteSpace(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isInk = (byte: number) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d
  const start = bytes.findIndex(isInk)
  return start < 0 ? new Uint8Array() : bytes.subarray(start, bytes.findLastIndex(isInk) + 1)
}
