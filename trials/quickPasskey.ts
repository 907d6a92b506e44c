import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { createPasskey, type Passkey } from '../packages/policy/test/passkey.ts'

/** A passkey that signs with OpenSSL, fast enough for thousands of approvals. */
export function createQuickPasskey(parameters: { seed: number; rpId: string }): Passkey {
  let key: KeyObject | undefined
  return createPasskey({
    ...parameters,
    sign(message, secretKey) {
      key ??= createPrivateKey({ key: toPkcs8(secretKey), format: 'der', type: 'pkcs8' })
      return sign('sha256', message, { key, dsaEncoding: 'ieee-p1363' })
    },
  })
}

/** An RFC 5915 key in RFC 5208 form, without the public key. */
function toPkcs8(secretKey: Uint8Array): Buffer {
  const head = Buffer.from('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', 'hex')
  return Buffer.concat([head, secretKey])
}
