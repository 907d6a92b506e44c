import { ECDH } from 'node:crypto'
import { isHex } from '@countersign/protocol'

/** Whether this is an uncompressed P-256 point in lower-case hex. Checked before an enclave is called, since each would reject another. */
export function isClientKey(value: string): boolean {
  if (!isHex(value, 65) || !value.startsWith('04')) return false
  try {
    ECDH.convertKey(value, 'prime256v1', 'hex', 'hex', 'uncompressed')
    return true
  } catch {
    return false
  }
}
