import type { Policy } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { Notice } from '../ui/Notice.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'
import { Locks, VaultRules } from './VaultRules.tsx'

type RulesReviewProps = {
  policy: Policy
  isCreating: boolean
  failure: ServiceError | null
  onCreate: () => void
  onChange: () => void
}

/** The last review before the vault is created. */
export function RulesReview({ policy, isCreating, failure, onCreate, onChange }: RulesReviewProps) {
  const most = Math.max(...policy.rules.map(({ approvals }) => approvals))
  const hasSpare = most === 0 || policy.approvers.length > most
  return (
    <ConfirmStep
      id="rules-heading"
      level={2}
      className="card card-narrow"
      title="Review the rules: you can’t change them later"
      action={hasSpare ? 'Create vault' : 'Create without a spare'}
      doing={isCreating ? 'Creating vault…' : undefined}
      onConfirm={onCreate}
      onChange={isCreating ? undefined : onChange}
      footer={
        <p className="visually-hidden" role="status">
          {isCreating ? 'Pinning the rules to IPFS.' : ''}
        </p>
      }
    >
      <VaultRules policy={policy} />
      <Locks policy={policy} />
      {hasSpare ? null : (
        <Notice tone="warning" title="This vault has no spare passkey">
          <p>
            If you lose a passkey, payments that need it are locked permanently. Go back and create one more on another
            device.
          </p>
        </Notice>
      )}
      {policy.log === null ? null : (
        <Notice tone="warning" title="Without its witnesses, this vault is locked permanently">
          <p>
            Every payment needs {policy.log.quorum} of the service’s {policy.log.witnesses.length} witnesses. If fewer
            remain, the funds can’t be moved by you, your passkeys or the service. Witnesses can’t be replaced.
          </p>
        </Notice>
      )}
      <VaultErrorNotice error={failure} />
      <p className="fine-print">
        The rules become public on IPFS, without your name. The vault’s address appears once they are readable there.
      </p>
    </ConfirmStep>
  )
}
