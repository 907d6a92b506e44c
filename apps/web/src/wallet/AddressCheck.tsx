import { ServiceError, useService } from '@countersign/sdk'
import type { ServiceClient } from '@countersign/sdk/client'
import { attestVault, attestWallet } from '@countersign/sdk/vaults/client'
import { verifyAddress } from '@countersign/sdk/verify'
import { describeOwner } from '@countersign/verify'
import { useEffect, useState } from 'react'
import { hasAnchors, readOperatorTrust, toVerifyRequest } from '../anchors/trust.ts'
import { useConfig, type WebConfig } from '../config.ts'
import { Button } from '../ui/Button.tsx'
import { ErrorNotice } from '../ui/Notice.tsx'
import { toServiceError } from '../words/explainError.ts'
import { startVerification } from '../worker/startVerification.ts'
import { type CheckedOwner, type Deposit, writeCheckedOwner } from './checkedOwner.ts'

type AddressCheckProps = {
  deposit: Deposit
  /** Null if the page has no trust anchors. Must be stable. */
  onChecked: (owner: CheckedOwner | null) => void
}

/** Lets the enclave attest the address, and verifies the proof. Stays until the check has succeeded. */
export function AddressCheck({ deposit, onChecked }: AddressCheckProps) {
  const { client, user } = useService()
  const config = useConfig()
  const [turn, setTurn] = useState(0)
  const [failure, setFailure] = useState<ServiceError | null>(null)
  const { address, policyHash } = deposit

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn checks again
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    setFailure(null)
    checkOwner({ client, config, signal }, { deposit: { address, policyHash }, user }).then(
      (owner) => {
        if (!signal.aborted) onChecked(owner)
      },
      (error) => {
        if (!signal.aborted) setFailure(toServiceError(error))
      },
    )
    return () => controller.abort()
  }, [client, config, address, policyHash, user, turn, onChecked])

  return (
    <>
      {failure === null ? (
        <>
          <p role="status">Checking that the address is yours…</p>
          <div className="skeleton skeleton-line" aria-hidden="true" />
          <p className="fine-print">
            The enclave attests the owner, and your browser verifies the proof. The first time, this can take a minute.
          </p>
        </>
      ) : null}
      <ErrorNotice error={failure}>
        <Button look="small" onClick={() => setTurn((before) => before + 1)}>
          Check again
        </Button>
      </ErrorNotice>
    </>
  )
}

type CheckDeps = { client: ServiceClient; config: WebConfig; signal: AbortSignal }
type Check = { deposit: Deposit; user: { id: string; email: string } | null }

async function checkOwner(deps: CheckDeps, { deposit, user }: Check): Promise<CheckedOwner | null> {
  const { client, config, signal } = deps
  // In development, React mounts twice and stops the first mount.
  await Promise.resolve()
  signal.throwIfAborted()
  const { trust } = readOperatorTrust(config)
  if (!hasAnchors(trust) || user === null) return null
  const attested = await (deposit.policyHash === undefined ? attestWallet(client) : attestVault(client, deposit))
  // The service attested the wallet of the user who is signed in now.
  if ((await client.api.me())?.id !== user.id) throw new ServiceError('wallet_changed', 'another user has signed in')
  const { attestationSlug: slug, owner } = attested
  const { apiBaseUrl } = client.config
  let keyId: string | undefined
  const { email, ...identity } = await verifyAddress(client, {
    ...deposit,
    attested,
    owner: owner.identity.email === null ? {} : { email: user.email },
    trust: toVerifyRequest({ subject: { kind: 'proof', slug, api: apiBaseUrl }, apiBaseUrl }, { trust, config }),
    signal,
    async verify(request) {
      const { result, stop } = startVerification(request, { onProgress() {} })
      signal.addEventListener('abort', stop)
      const outcome = await result
      keyId = outcome.receipt?.signer.statement.keyId
      return outcome
    },
  })
  const checked = { email, sentence: describeOwner(deposit.address, { email, ...identity }), slug, keyId }
  // Without an e-mail address to compare, the user has to look again.
  if (email !== null) writeCheckedOwner({ apiBaseUrl: config.apiBaseUrl, deposit, email }, checked)
  return checked
}
