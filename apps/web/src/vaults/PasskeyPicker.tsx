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
  /** The number of approvals that the rules need. */
  approvals: number
  /** Called before a passkey is created. A passkey for a rejected vault would be useless. */
  canCreate: () => boolean
  onChange: (passkeys: readonly ChosenPasskey[]) => void
}

/** Collects the passkeys of a new vault, from this or another device. */
export function PasskeyPicker({ passkeys, approvals, canCreate, onChange }: PasskeyPickerProps) {
  const { user } = useService()
  const { run, isRunning, failure } = useAction()

  async function make() {
    if (isRunning || !canCreate()) return
    await run(async () => {
      const name = `${user?.email ?? 'Vault'}, vault passkey ${passkeys.length + 1}`
      const excludeCredentialIds = passkeys.flatMap(({ credentialId = '' }) => credentialId || [])
      onChange([...passkeys, await createPasskey({ name, rpName: 'Countersign', excludeCredentialIds })])
    })
  }

  return (
    <section className="passkeys stack" aria-labelledby="passkeys-heading">
      <h3 id="passkeys-heading">Passkeys</h3>
      {passkeys.length === 0 ? null : (
        <ul className="tokens">
          {passkeys.map(({ approver, credentialId }, index) => (
            <li key={approver.publicKey}>
              <span>
                Passkey {index + 1}, {credentialId === undefined ? 'added' : 'created here'}, for {approver.rpId}
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
          {isRunning
            ? 'Waiting for your passkey…'
            : passkeys.length === 0
              ? 'Create passkey'
              : 'Create another passkey'}
        </Button>
      </div>
      <AddPasskey
        onAdd={(approver) => onChange([...passkeys, { approver }])}
        passkeys={passkeys}
        isDisabled={isRunning}
      />
    </section>
  )
}

/** A lost passkey can't be replaced, so every vault should have a spare. */
function SpareNotice({ passkeys, approvals }: Pick<PasskeyPickerProps, 'passkeys' | 'approvals'>) {
  if (passkeys.length > approvals) return null
  if (passkeys.length < approvals) {
    const missing = approvals - passkeys.length
    return (
      <p>
        Add {missing === 1 ? 'one more passkey' : `${missing} more passkeys`}, plus a spare. You can’t add passkeys
        later.
      </p>
    )
  }
  return (
    <Notice tone="warning" title="Add a spare passkey">
      <p>
        You can’t replace a lost passkey or change these rules. Without a spare, a lost passkey locks the funds
        permanently. Create the spare on another phone, computer or security key.
      </p>
    </Notice>
  )
}

function AddPasskey(props: {
  passkeys: readonly ChosenPasskey[]
  onAdd: (approver: ChosenPasskey['approver']) => void
  /** Disabled while a passkey is created, so that the list doesn't change. */
  isDisabled: boolean
}) {
  const { passkeys, onAdd, isDisabled } = props
  function submit(text: string): string | undefined {
    const parsed = parseApprover(text)
    if ('fault' in parsed) return parsed.fault
    const isKnown = passkeys.some(({ approver }) => approver.publicKey === parsed.approver.publicKey)
    if (isKnown) return 'This passkey is already in the list.'
    onAdd(parsed.approver)
  }

  return (
    <details className="call-fields">
      <summary>Add a passkey from another device or person</summary>
      <p>
        On that device, open <Link to="/passkey">{`${window.location.host}/passkey`}</Link>, create a passkey, and copy
        the text. No sign-in is needed.
      </p>
      <PasteField
        id="vault-approver"
        label="Passkey text"
        action="Add passkey"
        isQuiet
        isDisabled={isDisabled}
        onSubmit={submit}
      />
    </details>
  )
}
