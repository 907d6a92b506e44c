import type { Asked, SigningRequest } from './request.ts'

/** Grant, session secret, sample and names of one item. */
const ITEM_BYTES = 3_072
/** A transaction at its largest, with its digest and without its data. */
const TRANSACTION_BYTES = 768

/** What a request takes in a call to the enclave, at most; and about what its statement does, which repeats what was asked. */
export function countBytes({ asked, vault }: Pick<SigningRequest, 'asked' | 'vault'>): number {
  const { policy, approvals } = vault ?? {}
  return ITEM_BYTES + countAsked(asked) + (policy === undefined ? 0 : countJson({ policy, approvals }))
}

const countAsked = (asked: Asked) =>
  asked.kind === 'transaction' ? TRANSACTION_BYTES + asked.txMetadata.data.length : countJson(asked)

const countJson = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
