import { useState } from 'react'
import { Address } from '../ui/Address.tsx'
import { CopyButton } from '../ui/CopyButton.tsx'
import { createLazyPart } from '../ui/createLazyPart.tsx'

const QrCode = createLazyPart(
  () => import('../ui/QrCode.tsx').then((module) => module.QrCode),
  <div className="qr-code skeleton" />,
)

export type ReceiveAddressProps = { address: string; chainName: string; title: 'Your address' | 'Address of the vault' }

/** An address to be paid at: to copy, and as a picture. */
export function ReceiveAddress({ address, chainName, title }: ReceiveAddressProps) {
  const what = title === 'Your address' ? 'your address' : 'the address'
  return (
    <div className="address">
      <h3>{title}</h3>
      <p className="address-line">
        <Address address={address} /> <CopyButton text={address} what={what} />
      </p>
      <Receive {...{ address, chainName, what }} />
    </div>
  )
}

function Receive({ address, chainName, what }: { address: string; chainName: string; what: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <button
        type="button"
        className="button button-quiet"
        aria-expanded={isOpen}
        onClick={() => setIsOpen((before) => !before)}
      >
        Receive
      </button>
      {isOpen ? (
        <div className="receive">
          <QrCode text={address} label={`QR code of ${what}`} />
          <p className="fine-print">
            Whoever pays you scans this or copies {what}. It must be on {chainName}: what is sent on another chain does
            not arrive here.
          </p>
        </div>
      ) : null}
    </>
  )
}
