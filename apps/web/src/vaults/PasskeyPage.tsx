import { createPasskey, type Passkey } from '@countersign/sdk/vaults'
import { useState } from 'react'
import { Button } from '../ui/Button.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { useAction } from '../ui/useAction.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

/** `/passkey`: makes a passkey for a vault that somebody makes on another device. Nobody has to sign in. */
export function PasskeyPage() {
  const [passkey, setPasskey] = useState<Passkey | null>(null)
  const { run, isRunning, failure } = useAction()
  const make = () => run(async () => setPasskey(await createPasskey({ name: 'Vault passkey', rpName: 'Countersign' })))
  const text = passkey === null ? '' : JSON.stringify(passkey.approver)
  return (
    <section className="card card-narrow" aria-labelledby="passkey-heading">
      <h1 id="passkey-heading">Make a passkey for a vault</h1>
      <p>
        A vault can ask for your approval, with a passkey that stays on this device or in your password manager. Make it
        here, and give its public part to the person who makes the vault. Later you approve on this site.
      </p>
      <VaultErrorNotice error={failure} />
      {passkey === null ? (
        <div className="actions">
          <Button onClick={make} isBusy={isRunning}>
            {isRunning ? 'Asking for a passkey …' : 'Make a passkey'}
          </Button>
        </div>
      ) : (
        <>
          <p role="status">The passkey is made. Its public part is no secret:</p>
          <p>
            <span className="mono" data-text="approver">
              {text}
            </span>{' '}
            <CopyButton text={text} what="the public part of the passkey" />
          </p>
        </>
      )}
    </section>
  )
}
