import { CoordinatorError } from '../errors.ts'
import type { AnyWitness } from '../store/types.ts'
import type { CheckedItem } from './checkItem.ts'
import type { SignatureChecker } from './checkSignatures.ts'
import type { Committed, VerifiedSigning } from './commit.ts'
import { failed, type SigningRequest, type SigningResult } from './request.ts'
import type { VerifiedBatch } from './verifyBatch.ts'

export type SettleDeps = {
  signatures: SignatureChecker
  commit(signing: VerifiedSigning): Promise<Committed>
}

/** A request whose statement holds: its signature is still to be checked. */
export type Stating = Pick<VerifiedSigning, 'leafIndex' | 'log'> & {
  request: SigningRequest
  checked: CheckedItem
  witness: AnyWitness
}

/** What became of one. `isNew`: what was stored is this signature, and not an earlier one of the same digest. */
type Settle<Item> = (item: Item, result: PromiseSettledResult<SigningResult>, isNew: boolean) => unknown

/** Signatures that are checked together: those of the first part are stored while those of the next are checked. */
const PART = 32

/** Steps 4 to 6 for what one quote covers. Each is settled once. */
export async function settle<Item extends Stating>(
  deps: SettleDeps,
  verified: Promise<VerifiedBatch>,
  items: readonly Item[],
  onSettled: Settle<Item>,
): Promise<void> {
  const parts: Promise<void>[] = []
  for (let start = 0; start < items.length; start += PART) {
    parts.push(settlePart(deps, verified, items.slice(start, start + PART), onSettled))
  }
  await Promise.all(parts)
}

async function settlePart<Item extends Stating>(
  deps: SettleDeps,
  verified: Promise<VerifiedBatch>,
  items: readonly Item[],
  onSettled: Settle<Item>,
) {
  const claims = items.flatMap(({ checked }) => checked.claim ?? [])
  const [ready] = await Promise.allSettled([Promise.all([verified, deps.signatures.check(claims)])])
  await Promise.all(
    items.map(async (item) => {
      const { request, checked, leafIndex, witness, log } = item
      const { stated, claim, opening } = checked
      let committed: Committed
      try {
        if (ready.status === 'rejected') throw ready.reason
        const [batch, isGood] = ready.value
        if (claim !== undefined && isGood[claims.indexOf(claim)] !== true) {
          throw new CoordinatorError('signature_invalid', 'the enclave’s signature is not of this wallet')
        }
        const { walletId } = request
        committed = await deps.commit({ batch, walletId, stated, leafIndex, witness, ...(log && { log }) }) // 5
      } catch (error) {
        return onSettled(item, failed(error), false)
      }
      const { signature, slug, isNew } = committed
      // A signature that is not stored goes from the enclave to the caller.
      const value = { signature: signature ?? claim?.signature ?? null, slug, ...(opening && { opening }) }
      return onSettled(item, { status: 'fulfilled', value }, isNew) // 6
    }),
  )
}
