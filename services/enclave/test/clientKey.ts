import { generateKeyPairSync, sign } from 'node:crypto'
import { type Stamp, toHex, toStampBytes } from '@countersign/protocol/core'

/** A browser with a key of its own, which stamps requests. */
export function createClient() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const clientKey = toHex(publicKey.export({ format: 'der', type: 'spki' }).subarray(-65))
  const signBytes = (bytes: Uint8Array) => sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return {
    clientKey,
    sign: signBytes,
    stamp(request: Parameters<typeof toStampBytes>[0]): Stamp {
      return { issuedMs: request.issuedMs, signature: toHex(signBytes(toStampBytes(request))) }
    },
  }
}
