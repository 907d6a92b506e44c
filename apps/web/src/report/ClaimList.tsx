import type { ProofPayload } from '@countersign/protocol'
import { type Claim, compareClaims, toPrintable } from '@countersign/verify'
import type { VerificationState } from '../worker/useVerification.ts'
import { type Mark, StatusMark } from './StatusMark.tsx'

const marks: Record<Claim['verdict'], [Mark, string]> = {
  holds: ['pass', 'Confirmed'],
  false: ['fail', 'False'],
  open: ['skip', 'Not checked'],
}

/** Shows the service's claims and their results. False claims are always visible, the others in a fold. */
export function ClaimList({ claims }: { claims: readonly Claim[] }) {
  const lies = claims.filter(({ verdict }) => verdict === 'false')
  const others = claims.filter(({ verdict }) => verdict !== 'false')
  return (
    <section aria-labelledby="claims-title">
      <h3 id="claims-title">The service’s claims</h3>
      <p>
        {lies.length === 0
          ? 'Your browser compared them with the receipt and the chain. None are false.'
          : `${lies.length === 1 ? 'One claim is' : `${lies.length} claims are`} false:`}
      </p>
      {lies.length === 0 ? null : <Claims claims={lies} />}
      {others.length === 0 ? null : (
        <details>
          <summary>
            {lies.length === 0 ? 'All' : 'The other'} {count(others)}
          </summary>
          <Claims claims={others} />
        </details>
      )}
    </section>
  )
}

function count(claims: readonly Claim[]): string {
  const open = claims.filter(({ verdict }) => verdict === 'open').length
  const holding = claims.length - open
  const parts = [holding > 0 ? `${holding} confirmed` : '', open > 0 ? `${open} not checked` : '']
  return `${claims.length} claims: ${parts.filter(Boolean).join(', ')}`
}

function Claims({ claims }: { claims: readonly Claim[] }) {
  return (
    <ul className="claims">
      {claims.map(({ member, text, verdict, detail }) => (
        <li key={member} className={`claim claim-${verdict}`} data-claim={member} data-verdict={verdict}>
          <StatusMark mark={marks[verdict][0]} text={marks[verdict][1]} />
          <div>
            <p>
              <code>{member}</code> {toPrintable(text)}
            </p>
            <p className="transcript-detail">{toPrintable(detail)}</p>
          </div>
        </li>
      ))}
    </ul>
  )
}

/** Compares the service's latest response with the verifier's results. Without a receipt, claims can still contradict each other. */
export function toClaims(state: VerificationState, proof: ProofPayload | undefined): readonly Claim[] {
  if (proof === undefined || state.phase === 'running') return []
  return compareClaims(proof, state.phase === 'done' ? state.outcome : undefined)
}
