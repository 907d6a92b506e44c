import type { ProofStatus } from '@countersign/protocol'
import { proofStatusWords } from '../words/proofStatus.ts'
import { type StageState, toStages } from './stages.ts'

const words: Record<StageState, string> = {
  done: 'Done',
  current: 'Now',
  waiting: 'Waiting',
  failed: 'Failed',
  never: 'Not reached',
}

const paths: Record<StageState, string> = {
  done: 'M9 16.5l5 5L24 11',
  current: 'M16 9v7l5 3',
  waiting: 'M10.5 16h.2M16 16h.2M21.5 16h.2',
  failed: 'M10.5 10.5l11 11M21.5 10.5l-11 11',
  never: 'M10 16h12',
}

/** The life of a proof as a picture: four stations, and where it is. */
export function ProofLife({ status, isPolling }: { status: ProofStatus; isPolling: boolean }) {
  const { meaning } = proofStatusWords[status]
  return (
    <section aria-labelledby="life-title">
      <h3 id="life-title">Where the proof is</h3>
      <ol className="life">
        {toStages(status).map(({ id, title, state, text }) => (
          <li
            key={id}
            className={`life-stage life-stage-${state}`}
            data-stage={id}
            data-state={state}
            {...(state === 'current' ? { 'aria-current': 'step' as const } : {})}
          >
            <svg viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
              <circle cx="16" cy="16" r="14.5" />
              <path d={paths[state]} />
            </svg>
            <div>
              <h4>{title}</h4>
              <p className="life-state">{words[state]}</p>
              <p>{text}</p>
            </div>
          </li>
        ))}
      </ol>
      <p className="fine-print" role="status">
        {meaning}
        {isPolling ? ' This page asks again every few seconds.' : ''}
      </p>
    </section>
  )
}
