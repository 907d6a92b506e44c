import { ServiceError } from '@countersign/protocol'
import { MAX_RECEIPT_BYTES, parseAnyReceipt } from '@countersign/receipt'
import { VerifierError } from './errors.ts'
import type { GivenFile } from './loadCollateral.ts'
import { isCar } from './loadReceipt.ts'
import type { VerifyRequest } from './verify.ts'

/**
 * Which of some files is the receipt; the others should be collateral. A file by itself is taken for a receipt whatever it
 * looks like, so that its faults are named.
 */
export function chooseReceipt(files: readonly GivenFile[]): Required<Pick<VerifyRequest, 'subject' | 'collaterals'>> {
  const receipt = files.find(isReceipt) ?? files.find(looksLikeReceipt) ?? files[0]
  if (receipt === undefined) throw new VerifierError('invalid_arguments', 'there is no file to verify')
  return { subject: { kind: 'file', ...receipt }, collaterals: files.filter((file) => file !== receipt) }
}

function isReceipt(file: GivenFile): boolean {
  if (isCar(file)) return true
  try {
    parseAnyReceipt(file.bytes)
    return true
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}

function looksLikeReceipt({ bytes }: GivenFile): boolean {
  return new TextDecoder().decode(bytes.subarray(0, MAX_RECEIPT_BYTES)).includes('"countersign-attestation/')
}
