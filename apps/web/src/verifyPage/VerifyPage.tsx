import '../report/report.css'
import './verify.css'
import { isCar, type Outcome, type VerifyRequest } from '@countersign/verify'
import { useMemo } from 'react'
import { AnchorForm } from '../anchors/AnchorForm.tsx'
import { type Trust, toVerifyRequest, useAnchors } from '../anchors/trust.ts'
import { useConfig, type WebConfig } from '../config.ts'
import { ServiceWord } from '../proof/ServiceWord.tsx'
import { IndependentCheck } from '../report/IndependentCheck.tsx'
import { KeepEvidence } from '../report/KeepEvidence.tsx'
import { canOpen, OpeningForm } from '../report/OpeningForm.tsx'
import { type CommandSubject, toGateways } from '../report/toCommand.ts'
import { VerificationReport } from '../report/VerificationReport.tsx'
import { useVerification } from '../worker/useVerification.ts'
import { SubjectForm } from './SubjectForm.tsx'
import { type Asked, useAsked } from './useAsked.ts'

export function VerifyPage() {
  const config = useConfig()
  const anchors = useAnchors(config)
  const { asked, setAsked, retry, ...question } = useAsked()
  const request = useRequest(asked, { trust: anchors.trust, config })
  const state = useVerification(request)
  const outcome = state.phase === 'done' ? state.outcome : undefined
  return (
    <div className="evidence-page stack">
      <h1>Verify a receipt</h1>
      <p className="evidence-lead">Your browser runs all checks. Files you choose aren’t uploaded.</p>
      <SubjectForm config={config} {...question} />
      {asked === undefined ? null : (
        <VerificationReport state={state} anchors={anchors} proof={asked.proof} onRetry={() => retry(asked)}>
          {asked.opening !== undefined || canOpen(outcome?.receipt) ? (
            <OpeningForm onOpen={(opening) => setAsked({ ...asked, opening })} />
          ) : null}
        </VerificationReport>
      )}
      <div className="folds">
        {outcome === undefined ? null : <KeepEvidence outcome={outcome} />}
        <AnchorForm anchors={anchors} />
        {asked === undefined ? null : (
          <IndependentCheck subject={toCommandSubject(config, asked, outcome)} anchors={anchors} />
        )}
        {asked?.proof === undefined ? null : <ServiceWord proof={asked.proof} state={state} isPolling={false} />}
      </div>
    </div>
  )
}

function toCommandSubject(
  config: WebConfig,
  { subject, apiBaseUrl }: Asked,
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
  asked: Asked | undefined,
  { trust, config }: { trust: Trust; config: WebConfig },
): VerifyRequest | undefined {
  return useMemo(() => asked && toVerifyRequest(asked, { trust, config }), [asked, trust, config])
}
