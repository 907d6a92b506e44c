import { fromHex, recoverPublicKey, type StatementV2, toAddress, toHex } from '@countersign/protocol'
import { failIf } from '../check/transcript.ts'

/** That a signature over a digest is of the key and the wallet in the statement, in a sentence. */
export function checkSignature(signed: { digest: string; signature: string; statement: StatementV2 }): string {
  const { digest, signature, statement } = signed
  const publicKey = recoverPublicKey(fromHex(digest.slice(2)), fromHex(signature.slice(2)))
  const address = toAddress(publicKey)
  failIf(address !== statement.address, `The signature is of ${address}, not of ${statement.address}.`)
  failIf(toHex(publicKey) !== statement.publicKey, 'The signature is of another public key than the statement’s.')
  return `The signature, with a low s, recovers to ${address}.`
}
