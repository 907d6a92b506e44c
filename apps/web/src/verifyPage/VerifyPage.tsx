import { isCar, type Outcome } from '@countersign/verify'
import { AnchorForm } from '../anchors/AnchorForm.tsx'
import { useAnchors } from '../anchors/useAnchors.ts'
import { useConfig, type WebConfig } from '../config.ts'
import { ServiceWord } from '../proof/ServiceWord.tsx'
import { IndependentCheck } from '../report/IndependentCheck.tsx'
import { KeepEvidence } from '../report/KeepEvidence.tsx'
import { canOpen, OpeningForm } from '../report/OpeningForm.tsx'
import type { CommandSubject } from '../report/toCommand.ts'
import { toGateways } from '../report/toGateways.ts'
import { VerificationReport } from '../report/VerificationReport.tsx'
import { useVerification } from '../worker/useVerification.ts'
import '../report/verification.css'
import '../report/checks.css'
import '../report/fold.css'
import '../proof/proof.css'
import './verify.css'
import type { Asked } from './asked.ts'
import { SubjectForm } from './SubjectForm.tsx'
import { useAsked } from './useAsked.ts'
import { useRequest } from './useRequest.ts'

/** `/verify`: any receipt, by file, CID, proof link or transaction. */
export function VerifyPage() {
  const config = useConfig()
  const anchors = useAnchors(config)
  const { asked, setAsked, retry, ...question } = useAsked()
  const request = useRequest(asked, { trust: anchors.trust, config })
  const state = useVerification(request)
  const outcome = state.phase === 'done' ? state.outcome : undefined
  return (
    <div className="evidence-page">
      <h1>Verify a receipt</h1>
      <p className="evidence-lead">
        Your browser checks it here, step by step. Files that you choose are not sent anywhere.
      </p>
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
      // Without their files, the command needs a gateway for what the receipt names.
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
