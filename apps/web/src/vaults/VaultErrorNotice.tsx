import type { ServiceError } from '@countersign/sdk'
import type { VaultErrorCode } from '@countersign/sdk/vaults'
import { ErrorNotice, type ErrorNoticeProps, Notice } from '../ui/Notice.tsx'
import type { Explanation } from '../words/explainError.ts'

const NOTHING_SIGNED = 'Nothing was signed.'

/** Here, and not with the words of other failures: the first page does not carry them. */
const EXPLANATIONS: Record<VaultErrorCode, Explanation> = {
  policy_refused: {
    title: 'The rules of the vault refuse this',
    advice: `No passkey and no operator can allow it. ${NOTHING_SIGNED}`,
  },
  approvals_missing: { title: 'More passkeys must approve', advice: NOTHING_SIGNED },
  approval_invalid: {
    title: 'An approval does not hold',
    advice: `Approve again. If this persists, distrust the page on which it was approved. ${NOTHING_SIGNED}`,
  },
  vault_not_found: {
    title: 'You have no such vault',
    advice: `Somebody else may be signed in now. ${NOTHING_SIGNED}`,
  },
  too_many_vaults: { title: 'You have 100 vaults', advice: 'No more can be made. Use one of those that are there.' },
  policy_not_pinned: {
    title: 'The rules are not on IPFS yet',
    advice: 'No address is shown before. Try again: the same rules make the same vault.',
  },
  invalid_policy: { title: 'The service does not take these rules', advice: 'Change them and try again.' },
  vault_mismatch: {
    title: 'The service answered another vault than that of your rules',
    advice: 'Send nothing to any address that it names. Do not trust this service until its operator has explained it.',
  },
  prepared_malformed: {
    title: 'This is nothing that can be approved',
    advice: 'The link or file is not whole. Ask for it again.',
  },
  prepared_mismatch: {
    title: 'Do not approve this',
    advice: 'What it shows is not what would be signed. Distrust whoever sent it.',
  },
  prepared_expired: {
    title: 'It is too late to approve this',
    advice: 'Whoever asks for it should write the payment again.',
  },
  prepared_early: {
    title: 'By the clock of this device it is too early for this',
    advice:
      'An approval holds for 24 hours at most. Set the clock here, and that of the device on which the payment was written, and try again.',
  },
  nonce_taken: {
    title: 'Another payment of this vault came first',
    advice: 'Look in the history whether it was this very one. If not, write it again, and have it approved again.',
  },
  passkey_unsupported: {
    title: 'This browser has no passkeys',
    advice: 'Use a newer one, or open the page over https.',
  },
  passkey_cancelled: { title: 'The passkey was not used', advice: 'Try again when you are ready.' },
  passkey_exists: {
    title: 'This device has one of these passkeys already',
    advice: 'A spare must be somewhere else: use another phone, computer or security key.',
  },
  passkey_unsuitable: {
    title: 'This device makes no passkey that can approve',
    advice: 'Use another phone, computer or security key.',
  },
  passkey_elsewhere: {
    title: 'The passkeys of this vault work on another page',
    advice: 'Open the link there: the technical details name the page.',
  },
  passkey_not_approver: {
    title: 'This passkey is none of this vault’s',
    advice: 'Choose another one of this site.',
  },
  passkey_failed: {
    title: 'The browser refused the passkey',
    advice: 'A page at a bare IP address has none: open it by its name. Otherwise try another browser.',
  },
}

/** What an error about a vault or a passkey means, and what to do; undefined for any other. */
export function explainVaultError(error: Pick<ServiceError, 'code'> | null): Explanation | undefined {
  const code = error?.code ?? ''
  return Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code as VaultErrorCode] : undefined
}

export function VaultErrorNotice(props: Omit<ErrorNoticeProps, 'explanation'>) {
  return <ErrorNotice {...props} explanation={explainVaultError(props.error)} />
}

/** Why a vault did not pay. Where no rule allows it, what the nearest one says against it. */
export function PaymentFailure({ error, children }: Pick<ErrorNoticeProps, 'error' | 'children'>) {
  if (error?.code !== 'policy_refused') return <VaultErrorNotice error={error}>{children}</VaultErrorNotice>
  return (
    <Notice tone="bad" title="The rules of this vault refuse this" isAlert>
      {error.details === undefined ? null : <p>{error.details}</p>}
      <p>Nobody can allow more than the rules say. Nothing was signed. All of them are under “Rules of this vault”.</p>
    </Notice>
  )
}
