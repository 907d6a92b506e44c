import { generateKeyPairSync, sign } from 'node:crypto'
import { type Stamp, toHex, toStampBytes } from '@countersign/protocol/core'

/** A browser with a key of its own, which stamps requests. */
export function createClient() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const clientKey = toHex(publicKey.export({ format: 'der', type: 'spki' }).subarray(-65))
  return {
    clientKey,
    stamp(request: Parameters<typeof toStampBytes>[0]): Stamp {
      const signature = sign('sha256', toStampBytes(request), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return { issuedMs: request.issuedMs, signature: toHex(signature) }
    },
  }
}
