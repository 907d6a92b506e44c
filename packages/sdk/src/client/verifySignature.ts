import type { Hex, ServiceError, SignResult, WalletInfo } from '@countersign/protocol'
import { parseSignature, recoverAddress, type Signature } from 'viem'
import { createError } from './errors.ts'

/** EIP-2: half the order of secp256k1. Nodes refuse a signature above it. Written as viem writes `s`: texts of one length compare as their numbers do. */
const MAX_S = '0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0'

export type VerifySignatureParameters = {
  wallet: Pick<WalletInfo, 'address'>
  digest: Hex
  signature: Hex
  slug: string
  /** What a failure says was signed. */
  toSigned?: ((parts: Signature) => SignResult) | undefined
}

/** Throws `signature_mismatch` unless the signature is the wallet's, over exactly this digest. */
export async function verifySignature(parameters: VerifySignatureParameters): Promise<Signature> {
  const { wallet, digest, signature, slug, toSigned } = parameters
  let parts: Signature
  let signer: Hex
  try {
    parts = parseSignature(signature)
    signer = await recoverAddress({ hash: digest, signature })
  } catch (cause) {
    throw mismatch(`it recovers to no address; its proof is ${slug}`, { cause })
  }
  const signed = toSigned?.(parts)
  if (signer.toLowerCase() !== wallet.address.toLowerCase()) {
    throw mismatch(`it is of ${signer}, not ${wallet.address}; its proof is ${slug}`, { signed })
  }
  if (parts.s > MAX_S) throw mismatch('its s is high', { signed })
  return parts
}

export function mismatch(
  details: string,
  options?: { cause?: unknown; signed?: SignResult | undefined },
): ServiceError {
  return createError('signature_mismatch', 'the signature is not of this wallet', {
    details,
    ...options,
  })
}
