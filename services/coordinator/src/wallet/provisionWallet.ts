import type { Entropy } from '../entropy/readAhead.ts'
import { CoordinatorError } from '../errors.ts'
import type { Clock, Store } from '../ports.ts'
import type { Session, User, Wallet } from '../store/types.ts'
import { assertOwnAddress } from './getWallet.ts'

export type ProvisionWalletDeps = {
  store: Pick<Store, 'findWallet' | 'createWallet'>
  entropy: Pick<Entropy, 'take'>
  clock: Clock
}

/**
 * `POST /wallet/provision`. The enclave named key and address when it opened the session; what is made here is their record,
 * with a fresh sample as its witness. Asked again, it answers what is there and draws nothing.
 */
export async function provisionWallet(
  deps: ProvisionWalletDeps,
  { user, session }: { user: User; session: Pick<Session, 'address' | 'keyId'> },
): Promise<Wallet> {
  const earlier = await deps.store.findWallet(user.id)
  if (earlier !== undefined) {
    assertOwnAddress(earlier, session)
    return earlier
  }
  const [witness] = await deps.entropy.take(1)
  if (witness === undefined) throw new CoordinatorError('entropy_unavailable', 'no sample is available')
  const { address, keyId: kmsKeyId } = session
  return deps.store.createWallet({ userId: user.id, address, kmsKeyId, witness, now: deps.clock.now() })
}
