import type { ServiceError } from '@countersign/sdk'
import type { VaultErrorCode } from '@countersign/sdk/vaults'
import { ErrorNotice, type ErrorNoticeProps, Notice } from '../ui/Notice.tsx'
import type { Explanation } from '../words/explainError.ts'

const NOTHING_SIGNED = 'Nothing was signed.'

type BudgetErrorCode = 'budget_exceeded' | 'budget_time' | 'budget_unavailable' | 'budget_not_proven'

/** Kept out of `explainError`, so that the first page doesn't load it. */
const EXPLANATIONS: Record<VaultErrorCode | BudgetErrorCode, Explanation> = {
  budget_exceeded: {
    title: 'The budget doesn’t allow this',
    advice: `Pay less, or wait for the next period. ${NOTHING_SIGNED}`,
  },
  budget_time: {
    title: 'The witnesses’ time is unknown',
    advice: 'Too few of the vault’s witnesses have responded in the last minute. Try again in a moment.',
  },
  budget_unavailable: {
    title: 'The vault’s budgets can’t be used now',
    advice:
      'Try again in a moment. If this keeps happening, the log that counts them has ended. Passkeys can still move the funds.',
  },
  budget_not_proven: {
    title: 'The budget doesn’t match its proof',
    advice:
      'Don’t rely on amounts from this service, and tell the operator. The enclave still enforces the limits when it signs.',
  },
  policy_refused: {
    title: 'Rejected by the vault’s rules',
    advice: `Neither passkeys nor the operator can override them. ${NOTHING_SIGNED}`,
  },
  approvals_missing: {
    title: 'More approvals needed',
    advice: `${NOTHING_SIGNED} Add the missing approvals and try again.`,
  },
  approval_invalid: {
    title: 'Invalid approval',
    advice: `${NOTHING_SIGNED} Approve again. If this keeps happening, don’t trust the page where it was approved.`,
  },
  vault_not_found: {
    title: 'Vault not found',
    advice: `A different user may be signed in now. ${NOTHING_SIGNED}`,
  },
  too_many_vaults: { title: 'Vault limit reached', advice: 'You can have up to 100 vaults. Use an existing one.' },
  policy_not_pinned: {
    title: 'The rules aren’t on IPFS yet',
    advice: 'The vault’s address appears once they are. Try again: the same rules give the same vault.',
  },
  invalid_policy: { title: 'The service rejected these rules', advice: 'Change them and try again.' },
  vault_mismatch: {
    title: 'The service returned a different vault',
    advice:
      'It doesn’t match your rules. Don’t send funds to it, and don’t trust this service until the operator explains why.',
  },
  prepared_malformed: {
    title: 'Invalid approval request',
    advice: 'The link or file is incomplete. Ask for it again.',
  },
  prepared_mismatch: {
    title: 'Don’t approve this',
    advice: 'The request doesn’t match what would be signed. Don’t trust its sender.',
  },
  prepared_expired: {
    title: 'This request has expired',
    advice: 'Ask the sender to create the payment again.',
  },
  prepared_early: {
    title: 'Check this device’s clock',
    advice:
      'An approval lasts at most 24 hours, but this request expires later than that. Set the clocks of this device and of the device that created the payment, then try again.',
  },
  nonce_taken: {
    title: 'Another payment of this vault was signed first',
    advice: 'If this payment isn’t in the history, create it again and get it approved again.',
  },
  passkey_unsupported: {
    title: 'This browser doesn’t support passkeys',
    advice: 'Use a newer browser, or open this page over https.',
  },
  passkey_cancelled: { title: 'Passkey cancelled', advice: 'Try again when you are ready.' },
  passkey_exists: {
    title: 'This device already has one of these passkeys',
    advice: 'Create the spare on another phone, computer or security key.',
  },
  passkey_unsuitable: {
    title: 'This device’s passkeys aren’t supported',
    advice: 'Use another phone, computer or security key.',
  },
  passkey_elsewhere: {
    title: 'This vault’s passkeys belong to another site',
    advice: 'Open the link on that site. The technical details name it.',
  },
  passkey_not_approver: {
    title: 'This passkey doesn’t belong to this vault',
    advice: 'Choose another passkey.',
  },
  passkey_failed: {
    title: 'The browser rejected the passkey',
    advice:
      'Passkeys don’t work on an IP address, so open this page by its domain name. Otherwise, try another browser.',
  },
}

/** Explains an error about a vault or passkey. Undefined for other errors. */
export function explainVaultError(error: Pick<ServiceError, 'code'> | null): Explanation | undefined {
  const code = error?.code ?? ''
  return Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code as keyof typeof EXPLANATIONS] : undefined
}

export function VaultErrorNotice(props: Omit<ErrorNoticeProps, 'explanation'>) {
  return <ErrorNotice {...props} explanation={explainVaultError(props.error)} />
}

/** Explains why a vault didn't pay. If no rule allows the payment, shows the reasons of the closest rule. */
export function PaymentFailure({ error, children }: Pick<ErrorNoticeProps, 'error' | 'children'>) {
  if (error?.code !== 'policy_refused') return <VaultErrorNotice error={error}>{children}</VaultErrorNotice>
  return (
    <Notice tone="bad" title="Rejected by the vault’s rules" isAlert>
      {error.details === undefined ? null : <p>{error.details}</p>}
      <p>Nothing was signed. You can read all rules under “Vault rules”.</p>
    </Notice>
  )
}
