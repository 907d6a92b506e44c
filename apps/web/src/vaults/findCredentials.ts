import type { PasskeyCredential, Prepared } from '@countersign/sdk/vaults'
import { readVaultNotes } from './vaultNotes.ts'

/** Which passkeys to ask for: those made here, if they are all that the vault has. Otherwise the user chooses among all of this site. */
export function findCredentials({ address, policy }: Prepared): readonly PasskeyCredential[] | undefined {
  const { passkeys } = readVaultNotes(address)
  return passkeys.length === policy.approvers.length ? passkeys : undefined
}
