import type { Policy } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { useConfig } from '../config.ts'
import { Notice } from '../ui/Notice.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { describeLimit, describeWitnesses } from './budgetWords.ts'
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
  const { tokens = [] } = useConfig()
  const { budgets = [], log } = policy
  const byPasskeys = policy.rules.filter(({ kind }) => kind !== 'spend')
  const most = Math.max(0, ...byPasskeys.map(({ approvals }) => approvals))
  const hasSpare = most === 0 || policy.approvers.filter(({ type }) => type === 'passkey').length > most
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
      {budgets.map((budget) => (
        <p key={describeLimit(budget, [])} className="fact-strong">
          Budget of the agent: {describeLimit(budget, tokens)}
        </p>
      ))}
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
      {log === null ? null : (
        <Notice tone="warning" title="Without its witnesses, this vault is locked permanently">
          <p>
            Every payment needs {log.quorum} of the service’s {log.witnesses.length} witnesses. If fewer remain, the
            funds can’t be moved by you, your passkeys or the service. Witnesses can’t be replaced.
          </p>
          {budgets.length === 0 ? null : (
            <p>
              {describeWitnesses(log)} If the service abandons its log {log.origin}, the agent can’t pay any more, and
              passkeys still can.
            </p>
          )}
        </Notice>
      )}
      <VaultErrorNotice error={failure} />
      <p className="fine-print">
        The rules become public on IPFS, without your name. The vault’s address appears once they are readable there.
      </p>
    </ConfirmStep>
  )
}
