import type { Policy } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { Notice } from '../ui/Notice.tsx'
import { ConfirmStep } from '../ui/Step.tsx'
import { Locks, RulesInWords } from './RulesInWords.tsx'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

type RulesReviewProps = {
  policy: Policy
  isMaking: boolean
  failure: ServiceError | null
  onMake: () => void
  onChange: () => void
}

/** The last look before there is a vault. */
export function RulesReview({ policy, isMaking, failure, onMake, onChange }: RulesReviewProps) {
  const most = Math.max(...policy.rules.map(({ approvals }) => approvals))
  const hasSpare = most === 0 || policy.approvers.length > most
  return (
    <ConfirmStep
      id="rules-heading"
      level={2}
      className="card card-narrow"
      title="Read this: it can never change"
      action={hasSpare ? 'Make this vault' : 'Make it without a spare'}
      doing={isMaking ? 'Making the vault …' : undefined}
      onConfirm={onMake}
      onChange={isMaking ? undefined : onChange}
      footer={
        <p className="visually-hidden" role="status">
          {isMaking ? 'The rules are being pinned to IPFS and read back.' : ''}
        </p>
      }
    >
      <RulesInWords policy={policy} />
      <Locks policy={policy} />
      {hasSpare ? null : (
        <Notice tone="warning" title="This vault has no spare passkey">
          <p>If one is lost, so is all that needs it. Go back and make one more, on another device.</p>
        </Notice>
      )}
      {policy.log === null ? null : (
        <Notice tone="warning" title="Without its witnesses, this vault is locked permanently">
          <p>
            Every payment needs {policy.log.quorum} of the service’s {policy.log.witnesses.length} witnesses. If fewer
            remain, nobody can move the funds: not you, not your passkeys, not the service. Witnesses can’t be replaced.
          </p>
        </Notice>
      )}
      <VaultErrorNotice error={failure} />
      <p className="fine-print">
        The rules become public, on IPFS, under no name. The address is shown once they can be read there again.
      </p>
    </ConfirmStep>
  )
}
