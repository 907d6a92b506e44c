import { useService } from '@countersign/sdk'
import { endSessions, listSessions, type OpenSession } from '@countersign/sdk/session'
import { useState } from 'react'
import { Button } from '../ui/Button.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { useAction } from '../ui/useAction.ts'
import { toAgo, toDateTime } from '../words/format.ts'

const KINDS: Record<OpenSession['kind'], string> = { bound: 'Browser key', cookie: 'Cookie' }

/** The user's sessions on all devices. `onSignOut` ends this one. */
export function OpenSessions({ onSignOut }: { onSignOut: () => Promise<void> }) {
  const { client } = useService()
  const [sessions, setSessions] = useState<readonly OpenSession[] | null>(null)
  const { run, isRunning, failure } = useAction()
  const load = async () => setSessions(await listSessions(client))

  const signOut = ({ id, isCurrent }: OpenSession) =>
    run(async () => {
      if (isCurrent) return onSignOut()
      await endSessions(client, { session: id })
      await load()
    })
  const signOutAll = () =>
    run(async () => {
      await endSessions(client, { all: true })
      await onSignOut()
    })

  return (
    <details className="provenance" onToggle={({ currentTarget }) => currentTarget.open && run(load)}>
      <summary>Open sessions</summary>
      <ErrorNotice error={failure}>
        <Button look="small" onClick={() => run(load)}>
          Reload sessions
        </Button>
      </ErrorNotice>
      {sessions === null && isRunning ? <p role="status">Loading sessions…</p> : null}
      <ul className="sessions">
        {sessions?.map((session) => (
          <li key={session.id}>
            <span>
              <span>{session.isCurrent ? `${KINDS[session.kind]}, this browser` : KINDS[session.kind]}</span>
              <span className="fine-print">
                Opened {toDateTime(session.createdAt)}, last used {toAgo(session.lastSeenAt, Date.now())}
              </span>
            </span>
            <Button look="small" onClick={() => signOut(session)} isBusy={isRunning}>
              Sign out{session.isCurrent ? ' here' : ''}
            </Button>
          </li>
        ))}
      </ul>
      {sessions === null ? null : (
        <Button look="quiet" onClick={signOutAll} isBusy={isRunning}>
          Sign out everywhere
        </Button>
      )}
    </details>
  )
}
