import { useService } from '@countersign/sdk'
import { createPasskey } from '@countersign/sdk/vaults'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { Notice } from '../ui/Notice.tsx'
import { PasteField } from '../ui/PasteField.tsx'
import { useAction } from '../ui/useAction.ts'
import { type ChosenPasskey, parseApprover } from './newVaultDraft.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'

export type PasskeyPickerProps = {
  passkeys: readonly ChosenPasskey[]
  /** How many approve. */
  approvals: number
  /** Called before a passkey is created. A passkey for a rejected vault would be useless. */
  canMake: () => boolean
  onChange: (passkeys: readonly ChosenPasskey[]) => void
}

/** The passkeys of a new vault: made here, or brought from another device. */
export function PasskeyPicker({ passkeys, approvals, canMake, onChange }: PasskeyPickerProps) {
  const { user } = useService()
  const { run, isRunning, failure } = useAction()

  async function make() {
    if (isRunning || !canMake()) return
    await run(async () => {
      const name = `${user?.email ?? 'Vault'}, vault passkey ${passkeys.length + 1}`
      const excludeCredentialIds = passkeys.flatMap(({ credentialId = '' }) => credentialId || [])
      onChange([...passkeys, await createPasskey({ name, rpName: 'Countersign', excludeCredentialIds })])
    })
  }

  return (
    <section className="passkeys stack" aria-labelledby="passkeys-heading">
      <h3 id="passkeys-heading">Passkeys that approve</h3>
      {passkeys.length === 0 ? null : (
        <ul className="tokens">
          {passkeys.map(({ approver, credentialId }, index) => (
            <li key={approver.publicKey}>
              <span>
                Passkey {index + 1}, {credentialId === undefined ? 'brought' : 'made here'}, of {approver.rpId}
              </span>
              <Button
                look="small"
                disabled={isRunning}
                onClick={() => onChange(passkeys.filter((one) => one.approver !== approver))}
              >
                Remove<span className="visually-hidden"> passkey {index + 1}</span>
              </Button>
            </li>
          ))}
        </ul>
      )}
      <VaultErrorNotice error={failure} />
      <SpareNotice passkeys={passkeys} approvals={approvals} />
      <div className="actions">
        <Button look="quiet" onClick={make} isBusy={isRunning}>
          {isRunning ? 'Asking for a passkey …' : passkeys.length === 0 ? 'Make a passkey' : 'Make another passkey'}
        </Button>
      </div>
      <BringPasskey
        onBrought={(approver) => onChange([...passkeys, { approver }])}
        passkeys={passkeys}
        isDisabled={isRunning}
      />
    </section>
  )
}

/** A lost passkey cannot be replaced, so one more than is needed belongs to every vault. */
function SpareNotice({ passkeys, approvals }: Pick<PasskeyPickerProps, 'passkeys' | 'approvals'>) {
  if (passkeys.length > approvals) return null
  if (passkeys.length < approvals) {
    const missing = approvals - passkeys.length
    return (
      <p>
        {missing === 1 ? 'One more passkey is' : `${missing} more passkeys are`} needed, and one as a spare. They can
        never be added later.
      </p>
    )
  }
  return (
    <Notice tone="warning" title="Make one more, as a spare">
      <p>
        A passkey that is lost cannot be replaced, and these rules can never change: with it the funds would be lost.
        Make the spare with another phone, computer or security key.
      </p>
    </Notice>
  )
}

function BringPasskey(props: {
  passkeys: readonly ChosenPasskey[]
  onBrought: (approver: ChosenPasskey['approver']) => void
  /** While another is being made: the list must not change under it. */
  isDisabled: boolean
}) {
  const { passkeys, onBrought, isDisabled } = props
  function take(text: string): string | undefined {
    const parsed = parseApprover(text)
    if ('fault' in parsed) return parsed.fault
    const isKnown = passkeys.some(({ approver }) => approver.publicKey === parsed.approver.publicKey)
    if (isKnown) return 'This passkey is in the list already.'
    onBrought(parsed.approver)
  }

  return (
    <details className="call-fields">
      <summary>Bring a passkey from another device or person</summary>
      <p>
        On that device, open <Link to="/passkey">{`${window.location.host}/passkey`}</Link>, make a passkey there, and
        copy what it shows. Nobody has to sign in for that.
      </p>
      <PasteField
        id="vault-approver"
        label="The passkey’s text"
        action="Add this passkey"
        isQuiet
        isDisabled={isDisabled}
        take={take}
      />
    </details>
  )
}
