import { type Approver, type Policy, VaultPolicyError } from '@countersign/policy'
import type { ServiceError, WalletInfo } from '@countersign/sdk'
import type { AgentKey } from '@countersign/sdk/agent'
import type { Vault } from '@countersign/sdk/vaults'
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { useConfig, useTokens } from '../config.ts'
import { Link } from '../router.tsx'
import { Button } from '../ui/Button.tsx'
import { Field } from '../ui/Field.tsx'
import { Step } from '../ui/Step.tsx'
import { useFieldErrors } from '../ui/useFieldErrors.ts'
import { DepositAddress } from '../wallet/DepositAddress.tsx'
import { SignedInPage } from '../wallet/SignedInPage.tsx'
import { toServiceError } from '../words/explainError.ts'
import { toCoin } from '../words/format.ts'
import { AgentSettings } from './AgentSettings.tsx'
import { AttestAddress } from './AttestAddress.tsx'
import { EMPTY_DRAFT, type NewVaultDraft, readDraft, writeDraft } from './newVaultDraft.ts'
import { PasskeyPicker } from './PasskeyPicker.tsx'
import { parseVaultFields, type VaultFields } from './parseVaultFields.ts'
import { RulesReview } from './RulesReview.tsx'
import { readPolicyLog } from './readPolicyLog.ts'
import { TemplateForm } from './TemplateForm.tsx'
import { toPolicy } from './template.ts'
import { VaultErrorNotice } from './VaultErrorNotice.tsx'
import { PolicyFile } from './VaultRules.tsx'
import { useOwnVaults } from './VaultsPage.tsx'
import { MAX_NAME_LENGTH, writeVaultNotes } from './vaultNotes.ts'

export function NewVaultPage() {
  return (
    <SignedInPage title="Create vault">
      {(signedIn) => <NewVault key={signedIn.wallet.address} {...signedIn} />}
    </SignedInPage>
  )
}

type CreationStep =
  | { name: 'form' }
  | { name: 'rules' | 'creating'; policy: Policy }
  | { name: 'created'; vault: Vault }

function NewVault({ wallet, onSessionLost }: { wallet: WalletInfo; onSessionLost: () => void }) {
  const config = useConfig()
  const tokens = useTokens()
  const { create } = useOwnVaults({ onSessionLost })
  const [draft, setDraft] = useState(() => readDraft(wallet.address))
  const { errors, form, showErrors, forgetErrors } = useFieldErrors<keyof VaultFields>()
  const [fault, setFault] = useState<string | null>(null)
  const [failure, setFailure] = useState<ServiceError | null>(null)
  const [step, setStep] = useState<CreationStep>({ name: 'form' })
  // Never stored.
  const [keyPair, setKeyPair] = useState<AgentKey | null>(null)
  const [isReading, setIsReading] = useState(false)
  const isCreating = useRef(false)
  const { fields, passkeys } = draft
  const approvals = fields.template === 'limit' ? 0 : Number(fields.approvals)
  const log = readPolicyLog(config)
  const isAgent = fields.template === 'budget'

  useEffect(() => {
    // Without its secret, the key would be useless.
    const isLost = keyPair !== null && fields.agentKey === keyPair.publicKey
    const kept = isLost ? { ...draft, fields: { ...draft.fields, agentKey: '' } } : draft
    writeDraft(wallet.address, step.name === 'created' ? undefined : kept)
  }, [wallet.address, draft, step.name, keyPair, fields.agentKey])

  function change(part: Partial<NewVaultDraft['fields']>) {
    setDraft((before) => ({ ...before, fields: { ...before.fields, ...part } }))
    forgetErrors(part)
    setFault(null)
  }

  async function review(event: FormEvent) {
    event.preventDefault()
    // Checks everything else first, so that no passkey is created for rules that would be rejected.
    if (isReading || readPolicy([]) === undefined) return
    if (passkeys.length < approvals) return setFault(describeMissingPasskeys(approvals))
    const origin = isAgent ? await readOrigin() : undefined
    if (isAgent && origin === undefined) return
    const policy = readPolicy(
      passkeys.map(({ approver }) => approver),
      origin,
    )
    if (policy !== undefined) setStep({ name: 'rules', policy })
  }

  /** Shows an error if there is no log to count a budget in. */
  async function readOrigin(): Promise<string | undefined> {
    if (log === null) return undefined
    setIsReading(true)
    try {
      const { findBudgetOrigin } = await import('./findBudgetOrigin.ts')
      const origin = await findBudgetOrigin(config.apiBaseUrl, log)
      if (origin === undefined) setFault('The configured witnesses cosign no log of this service.')
      return origin
    } catch {
      return void setFault('The service’s log couldn’t be read. Try again in a moment.')
    } finally {
      setIsReading(false)
    }
  }

  /**
   * Returns the form's policy. If it is invalid, shows the reason and returns undefined. Without approvers, the rules need no approvals. The
   * placeholder stands for a log that has not been read yet.
   */
  function readPolicy(given: readonly Approver[], origin = 'log'): Policy | undefined {
    setFailure(null)
    setFault(null)
    const parsed = parseVaultFields(fields, { tokens, coin: toCoin(config) })
    if ('errors' in parsed) return void showErrors(parsed.errors)
    if (isAgent && log === null) return void setFault('This service has no log that can count budgets.')
    // Unneeded passkeys would be published without a purpose.
    const approvers = approvals === 0 ? [] : given
    const terms = approvers.length === 0 ? { ...parsed.terms, approvals: 0 } : parsed.terms
    try {
      return toPolicy(terms, { chainId: config.chainId, approvers, log, origin })
    } catch (error) {
      if (!(error instanceof VaultPolicyError)) throw error
      return void setFault(`These rules are invalid: ${error.details ?? error.message}.`)
    }
  }

  async function submit(policy: Policy) {
    if (isCreating.current) return
    isCreating.current = true
    setFailure(null)
    setStep({ name: 'creating', policy })
    try {
      const vault = await create(policy)
      const credentials = passkeys.flatMap(({ credentialId, transports = [] }) =>
        credentialId === undefined ? [] : [{ credentialId, transports }],
      )
      writeVaultNotes(vault.address, { name: fields.name.trim(), passkeys: credentials })
      setStep({ name: 'created', vault })
    } catch (caught) {
      const error = toServiceError(caught)
      if (error.status === 401) onSessionLost()
      setFailure(error)
      setStep({ name: 'rules', policy })
    } finally {
      isCreating.current = false
    }
  }

  function startOver() {
    setDraft(EMPTY_DRAFT)
    setKeyPair(null)
    setStep({ name: 'form' })
  }

  if (step.name === 'created') {
    return (
      <CreatedVault vault={step.vault} onAgain={startOver}>
        {isAgent ? <AgentSettings vault={step.vault} keyPair={keyPair} /> : null}
      </CreatedVault>
    )
  }
  if (step.name !== 'form') {
    return (
      <RulesReview
        policy={step.policy}
        isCreating={step.name === 'creating'}
        failure={failure}
        onCreate={() => void submit(step.policy)}
        onChange={() => setStep({ name: 'form' })}
      />
    )
  }
  return (
    <section className="card card-narrow" aria-labelledby="new-vault-heading">
      <h2 id="new-vault-heading">Rules</h2>
      <form ref={form} className="stack" onSubmit={review} noValidate>
        <VaultErrorNotice error={failure} />
        <TemplateForm
          fields={fields}
          errors={errors}
          canCount={log !== null}
          keyPair={keyPair}
          onKeyPair={(made) => {
            setKeyPair(made)
            change({ agentKey: made.publicKey })
          }}
          onChange={change}
        />
        {approvals === 0 ? null : (
          <PasskeyPicker
            passkeys={passkeys}
            approvals={approvals}
            canCreate={() => readPolicy([]) !== undefined}
            onChange={(next) => {
              setDraft((before) => ({ ...before, passkeys: next }))
              setFault(null)
            }}
          />
        )}
        <Field
          id="vault-name"
          label="Name"
          value={fields.name}
          maxLength={MAX_NAME_LENGTH}
          hint="Stored only in this browser. Not part of the vault."
          onChange={(name) => change({ name })}
        />
        {fault === null ? null : (
          <p className="field-error" role="alert">
            {fault}
          </p>
        )}
        <Button type="submit" isBusy={isReading}>
          {isReading ? 'Reading the log…' : 'Review rules'}
        </Button>
      </form>
    </section>
  )
}

function describeMissingPasskeys(approvals: number): string {
  return approvals === 1
    ? 'These rules need a passkey. Create it first.'
    : `These rules need ${approvals} passkeys. Create them first.`
}

function CreatedVault({ vault, onAgain, children }: { vault: Vault; onAgain: () => void; children: ReactNode }) {
  return (
    <Step id="made-heading" level={2} className="card card-narrow" title="Vault created">
      <DepositAddress deposit={vault} what="the address" />
      {children}
      <PolicyFile vault={vault} />
      <AttestAddress vault={vault} />
      <div className="actions">
        <Link to={`/vaults/${vault.address}`} className="button">
          Open vault
        </Link>
        <Button look="quiet" onClick={onAgain}>
          Create another
        </Button>
      </div>
    </Step>
  )
}
