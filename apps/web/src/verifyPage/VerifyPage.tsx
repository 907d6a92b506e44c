import '../report/report.css'
import './verify.css'
import { isCar, type Outcome, type VerifyRequest } from '@countersign/verify'
import { useMemo } from 'react'
import { AnchorForm } from '../anchors/AnchorForm.tsx'
import { type Trust, toVerifyRequest, useAnchors } from '../anchors/trust.ts'
import { useConfig, type WebConfig } from '../config.ts'
import { ServiceClaims } from '../proof/ServiceClaims.tsx'
import { EvidenceDownloads } from '../report/EvidenceDownloads.tsx'
import { IndependentCheck } from '../report/IndependentCheck.tsx'
import { canOpen, isAddressReceipt, OpeningForm } from '../report/OpeningForm.tsx'
import { type CommandSubject, toGateways } from '../report/toCommand.ts'
import { VerificationReport } from '../report/VerificationReport.tsx'
import { useVerification } from '../worker/useVerification.ts'
import { SubjectForm } from './SubjectForm.tsx'
import { type FoundSubject, useLookup } from './useLookup.ts'

export function VerifyPage() {
  const config = useConfig()
  const anchors = useAnchors(config)
  const { found, setFound, retry, ...question } = useLookup()
  const request = useRequest(found, { trust: anchors.trust, config })
  const state = useVerification(request)
  const outcome = state.phase === 'done' ? state.outcome : undefined
  return (
    <div className="evidence-page stack">
      <h1>Verify a receipt</h1>
      <p className="evidence-lead">Your browser runs all checks. Files you choose aren’t uploaded.</p>
      <SubjectForm config={config} {...question} />
      {found === undefined ? null : (
        <VerificationReport state={state} anchors={anchors} proof={found.proof} onRetry={() => retry(found)}>
          {found.opening !== undefined || canOpen(outcome?.receipt) ? (
            <OpeningForm
              onOpen={(opening) => setFound({ ...found, opening })}
              isAddress={isAddressReceipt(outcome?.receipt)}
            />
          ) : null}
        </VerificationReport>
      )}
      <div className="folds">
        {outcome === undefined ? null : <EvidenceDownloads outcome={outcome} />}
        <AnchorForm anchors={anchors} />
        {found === undefined ? null : (
          <IndependentCheck subject={toCommandSubject(config, found, outcome)} anchors={anchors} />
        )}
        {found?.proof === undefined ? null : <ServiceClaims proof={found.proof} state={state} isPolling={false} />}
      </div>
    </div>
  )
}

function toCommandSubject(
  config: WebConfig,
  { subject, apiBaseUrl }: FoundSubject,
  outcome: Outcome | undefined,
): CommandSubject {
  const [gateway = apiBaseUrl] = toGateways({ ...config, apiBaseUrl })
  switch (subject.kind) {
    case 'file':
      // Without the files, the command needs a gateway to download them.
      return {
        kind: 'files',
        receipt: subject.name,
        collateral: outcome?.collateral?.name,
        gateway: isCar(subject) ? undefined : gateway,
      }
    case 'cid':
      return { kind: 'cid', cid: subject.cid, gateway }
    case 'transaction':
      return { kind: 'cid', cid: outcome?.cid ?? subject.txHash, gateway }
    case 'proof':
      return { kind: 'proof', slug: subject.slug, apiBaseUrl }
  }
}

/** One verification per subject and set of anchors. */
function useRequest(
  found: FoundSubject | undefined,
  { trust, config }: { trust: Trust; config: WebConfig },
): VerifyRequest | undefined {
  return useMemo(() => found && toVerifyRequest(found, { trust, config }), [found, trust, config])
}
