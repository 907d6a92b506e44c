import { type ProofPayload, toChecksumAddress } from '@countersign/protocol'
import { isCid } from '@countersign/receipt'
import { toGatewayLink, toPrintable } from '@countersign/verify'
import type { ReactNode } from 'react'
import { toExplorerLink, type WebConfig } from '../config.ts'
import { toGateways } from '../report/toCommand.ts'
import { CopyButton } from '../ui/CopyButton.tsx'
import { Fold } from '../ui/Fold.tsx'

/** Only transactions have a page in a block explorer. */
const TITLES = {
  transaction: 'Transaction',
  authorization: 'Authorization',
  'off-chain': 'Commitment',
  address: 'Statement hash',
  revocation: 'Statement hash',
} as const

export function ProofLinks({ proof, config }: { proof: ProofPayload; config: WebConfig }) {
  const { kind = 'transaction', txHash, chainId, walletAddress, ipfsCid, onchainTxHash, onchainBlockNumber } = proof
  const onChain = proof.anchor ?? config.attestations
  const [gateway] = toGateways({ ...config, ipfsUrl: proof.ipfsUrl })
  const isReceiptCid = ipfsCid !== null && isCid(ipfsCid)
  return (
    <Fold title="Links and hashes">
      <dl className="evidence-facts stack">
        <LinkedFact
          title={TITLES[kind]}
          text={txHash}
          href={kind === 'transaction' ? toExplorerLink(config, txHash, chainId) : undefined}
          linkText="View in explorer"
        />
        <LinkedFact title="Wallet" text={toChecksumAddress(walletAddress)} />
        {ipfsCid === null ? null : (
          <LinkedFact
            title="Receipt (CID)"
            text={ipfsCid}
            href={isReceiptCid && gateway !== undefined ? toGatewayLink(gateway, ipfsCid) : undefined}
            linkText="View raw receipt"
          />
        )}
        {onchainTxHash === null ? null : (
          <LinkedFact
            title={proof.anchor === undefined ? 'Event' : 'Checkpoint'}
            text={onchainTxHash}
            href={toExplorerLink(config, onchainTxHash, onChain?.chainId)}
            linkText="View in explorer"
          >
            {onchainBlockNumber === null ? 'Not confirmed yet.' : `In block ${onchainBlockNumber}.`}
          </LinkedFact>
        )}
      </dl>
    </Fold>
  )
}

/** Lower-cases the first letter for use within a sentence. */
const toWithin = (title: string) => `${title.charAt(0).toLowerCase()}${title.slice(1)}`

function LinkedFact(props: {
  title: string
  text: string
  href?: string | undefined
  linkText?: string
  children?: ReactNode
}) {
  const { title, text, href, linkText, children } = props
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <span>{toPrintable(text)}</span> <CopyButton text={text} what={`the ${toWithin(title)}`} />
        {children === undefined ? null : <span className="fact-note">{children}</span>}
        {href === undefined ? null : (
          <span className="fact-note">
            <a href={href} target="_blank" rel="noreferrer noopener">
              {linkText}
              <span className="visually-hidden"> for the {toWithin(title)}, in a new tab</span>
            </a>
          </span>
        )}
      </dd>
    </div>
  )
}
