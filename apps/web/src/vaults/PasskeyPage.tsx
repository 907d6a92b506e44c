import { createPasskey, type Passkey } from '@countersign/sdk/vaults'
import { useState } from 'react'
import { Button } from '../ui/Button.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { useAction } from '../ui/useAction.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

/** `/passkey`: creates a passkey for a vault that someone creates on another device. Needs no sign-in. */
export function PasskeyPage() {
  const [passkey, setPasskey] = useState<Passkey | null>(null)
  const { run, isRunning, failure } = useAction()
  const make = () => run(async () => setPasskey(await createPasskey({ name: 'Vault passkey', rpName: 'Countersign' })))
  const text = passkey === null ? '' : JSON.stringify(passkey.approver)
  return (
    <section className="card card-narrow" aria-labelledby="passkey-heading">
      <h1 id="passkey-heading">Create a passkey for a vault</h1>
      <p>
        A vault can require your approval with a passkey. The passkey stays on this device or in your password manager.
        Create it here and send its public key to the person who creates the vault. You approve payments on this site.
      </p>
      <VaultErrorNotice error={failure} />
      {passkey === null ? (
        <div className="actions">
          <Button onClick={make} isBusy={isRunning}>
            {isRunning ? 'Waiting for your passkey…' : 'Create passkey'}
          </Button>
        </div>
      ) : (
        <>
          <p role="status">Passkey created. Its public key isn’t secret:</p>
          <p>
            <span className="mono" data-text="approver">
              {text}
            </span>{' '}
            <CopyButton text={text} what="the public key" />
          </p>
        </>
      )}
    </section>
  )
}
