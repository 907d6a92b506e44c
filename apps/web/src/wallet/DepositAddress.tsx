import { useService } from '@countersign/sdk'
import { type ReactNode, useState } from 'react'
import { getAddress } from 'viem'
import { useConfig } from '../config.ts'
import { Link } from '../router.tsx'
import { Address } from '../ui/Address.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { createLazyPart } from '../ui/createLazyPart.tsx'
import { Notice } from '../ui/Notice.tsx'
import { type CheckedOwner, type Deposit, readCheckedOwner } from './checkedOwner.ts'

const checking = <p role="status">Checking that the address is yours…</p>

/** Includes the verifier, so it's loaded only if the address hasn't been checked in this browser. */
const AddressCheck = createLazyPart(() => import('./AddressCheck.tsx').then((module) => module.AddressCheck), checking)

type DepositAddressProps = { deposit: Deposit; what: 'your address' | 'the address'; children?: ReactNode }

/** Shows an address only after this page has verified that it belongs to the user. A page without trust anchors can't check that. */
export function DepositAddress({ deposit, what, children }: DepositAddressProps) {
  const { apiBaseUrl, trust } = useConfig()
  const { user } = useService()
  const email = user?.email ?? ''
  const [checked, setChecked] = useState<CheckedOwner | null | undefined>(() =>
    trust === undefined ? null : readCheckedOwner({ apiBaseUrl, deposit, email }),
  )
  if (checked === undefined) return <AddressCheck deposit={deposit} onChecked={setChecked} />
  const address = getAddress(deposit.address)
  return (
    <>
      <p className="address-line">
        <Address address={address} /> <CopyButton text={address} what={what} />
      </p>
      <OwnerNote owner={checked} />
      {children}
    </>
  )
}

function OwnerNote({ owner }: { owner: CheckedOwner | null }) {
  if (owner === null) {
    return (
      <p className="fine-print">
        This page didn’t check who owns this address, because its host hasn’t configured any trust anchors.
      </p>
    )
  }
  const proof = <Link to={`/proof/${owner.slug}`}>See the proof</Link>
  if (owner.email !== null) {
    return (
      <p className="fine-print">
        This page checked: this address belongs to {owner.email}. {proof}
      </p>
    )
  }
  return (
    <Notice tone="warning" title="Check that this is you">
      <p>
        {owner.sentence} Your identity provider doesn’t confirm e-mail addresses, so this page can’t tell whether that’s
        you. {proof}
      </p>
    </Notice>
  )
}
