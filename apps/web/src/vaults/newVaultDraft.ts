import { type Approver, createPolicy, VaultPolicyError } from '@countersign/policy'
import { isPlainObject } from '@countersign/protocol'
import type { Passkey } from '@countersign/sdk/vaults'
import { readStored, writeStored } from '../ui/stored.ts'
import type { VaultFields } from './parseVaultFields.ts'
import { isCredential } from './vaultNotes.ts'

/** A passkey of a new vault. For a passkey from another device, only the public key is known. */
export type ChosenPasskey = Pick<Passkey, 'approver'> & Partial<Passkey>

/** A draft, stored in the tab so that passkeys survive another sign-in. */
export type NewVaultDraft = { fields: VaultFields & { name: string }; passkeys: readonly ChosenPasskey[] }

/** One per user, so that another user's passkeys never approve for this vault. */
const toKey = (wallet: string) => `countersign:new-vault:${wallet.toLowerCase()}`

export const EMPTY_DRAFT: NewVaultDraft = {
  fields: {
    template: 'approval',
    name: '',
    limit: '',
    fee: '0.01',
    recipients: '',
    approvals: '1',
    asset: '',
    periodS: '86400',
    agentKey: '',
  },
  passkeys: [],
}

/** `wallet` is the user's own wallet address. */
export function readDraft(wallet: string): NewVaultDraft {
  const value = readStored(sessionStorage, toKey(wallet))
  if (!isPlainObject(value) || !isPlainObject(value.fields) || !Array.isArray(value.passkeys)) return EMPTY_DRAFT
  const { fields, passkeys } = value
  const known = Object.keys(EMPTY_DRAFT.fields).every((name) => typeof fields[name] === 'string')
  if (!known) return EMPTY_DRAFT
  return { fields: fields as NewVaultDraft['fields'], passkeys: passkeys.flatMap(readPasskey) }
}

export function writeDraft(wallet: string, draft: NewVaultDraft | undefined): void {
  writeStored(sessionStorage, toKey(wallet), draft)
}

function readPasskey(value: unknown): ChosenPasskey[] {
  if (!isPlainObject(value)) return []
  const parsed = parseApprover(JSON.stringify(value.approver ?? null))
  if ('fault' in parsed) return []
  const { credentialId, transports } = value
  const credential = { credentialId, transports }
  return [{ approver: parsed.approver, ...(isCredential(credential) ? credential : {}) }]
}

/** Parses a passkey as the other device shows it. Rejects passkeys that a policy would reject. */
export function parseApprover(text: string): { approver: Passkey['approver'] } | { fault: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { fault: 'This isn’t a complete passkey. Copy the whole text.' }
  }
  try {
    const policy = createPolicy({
      version: 1,
      log: null,
      rules: [{ kind: 'message', approvals: 1, approvers: 'any' }],
      approvers: [value as Approver],
    })
    // Without budgets, a policy has no other approvers than passkeys.
    return { approver: policy.approvers[0] as Passkey['approver'] }
  } catch (error) {
    if (!(error instanceof VaultPolicyError)) throw error
    return { fault: 'This passkey can’t be used. Copy the whole text from the other device.' }
  }
}
