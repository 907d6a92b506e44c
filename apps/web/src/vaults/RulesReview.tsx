import type { Policy } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { useEffect, useMemo, useRef } from 'react'
import { useConfig } from '../config.ts'
import { Notice } from '../ui/Notice.tsx'
import { toChainName } from '../words/format.ts'
import { describeLocks, RulesInWords } from './RulesInWords.tsx'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

export type RulesReviewProps = {
  policy: Policy
  isMaking: boolean
  failure: ServiceError | null
  onMake: () => void
  onChange: () => void
}

/** The last look before there is a vault. */
export function RulesReview({ policy, isMaking, failure, onMake, onChange }: RulesReviewProps) {
  const config = useConfig()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const locks = useMemo(
    () => describeLocks(policy, { chainId: config.chainId, chainName: toChainName(config) }),
    [policy, config],
  )
  const most = Math.max(...policy.rules.map(({ approvals }) => approvals))
  const hasSpare = most === 0 || policy.approvers.length > most
  return (
    <section className="card vault-card" aria-labelledby="rules-heading">
      <h2 id="rules-heading" ref={heading} tabIndex={-1}>
        Read this: it can never change
      </h2>
      <RulesInWords policy={policy} />
      <div className="vault-rules">
        <h4>What locks the funds for ever</h4>
        <ul>
          {locks.map((lock) => (
            <li key={lock}>{lock}</li>
          ))}
        </ul>
      </div>
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
      {failure === null ? null : <VaultErrorNotice error={failure} />}
      <p className="fine-print">
        The rules become public, on IPFS, under no name. The address is shown once they can be read there again.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={onMake} aria-disabled={isMaking}>
          {isMaking ? 'Making the vault …' : hasSpare ? 'Make this vault' : 'Make it without a spare'}
        </button>
        {isMaking ? null : (
          <button type="button" className="button button-quiet" onClick={onChange}>
            Change
          </button>
        )}
      </div>
      <p className="visually-hidden" role="status">
        {isMaking ? 'The rules are being pinned to IPFS and read back.' : ''}
      </p>
    </section>
  )
}
