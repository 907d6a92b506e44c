import { basename, dirname } from 'node:path'
import { isCid, MAX_RECEIPT_BYTES } from '@countersign/receipt'
import { findReceiptCid } from './createChainReader.ts'
import type { Rpc } from './createRpc.ts'
import { VerifierError } from './errors.ts'
import type { FetchDeps } from './fetchBytes.ts'
import { getBlock } from './getBlock.ts'
import { getProof } from './getProof.ts'
import { readFileBounded } from './readFileBounded.ts'
import type { Subject } from './recogniseSubject.ts'

export type LoadReceiptParameters = {
  subject: Subject
  api: string | undefined
  /** The reader's own, which come first. */
  gateways: readonly string[]
  chain: { rpc: Rpc; contract: string; fromBlock: number } | undefined
  isOffline: boolean
}

export type LoadedReceipt = {
  bytes: Uint8Array<ArrayBuffer>
  /** For messages: a file's path, or a CID. */
  name: string
  /** The CID that the bytes must have, where the reader or a pointer named one. */
  cid: string | undefined
  /** The transaction that the receipt must be about, where the reader or a pointer named one. */
  transaction: { txHash: string; chainId?: number; walletAddress?: string } | undefined
  /** Where a receipt that came as a file may have its collateral beside it. */
  folder: string | undefined
  /** Where the collateral may be had. */
  gateways: readonly string[]
}

/** Finds the bytes of a receipt by any of its names. No public gateway is asked unless the reader names it. */
export async function loadReceipt(deps: FetchDeps, parameters: LoadReceiptParameters): Promise<LoadedReceipt> {
  const { subject, api, chain, isOffline } = parameters
  if (isOffline && subject.kind !== 'file') throw invalid('--offline', 'only a receipt file can be verified offline')
  const ownGateway = (base: string | undefined) => (base === undefined ? [] : [`${base}/ipfs`])

  switch (subject.kind) {
    case 'file': {
      const { bytes, cid } = await readReceiptFile(subject.path)
      const gateways = [...parameters.gateways, ...ownGateway(api)]
      return { bytes, name: subject.path, cid, transaction: undefined, folder: dirname(subject.path), gateways }
    }
    case 'cid': {
      const gateways = [...parameters.gateways, ...ownGateway(api)]
      return fetchReceipt(deps, { cid: subject.cid, gateways, transaction: undefined })
    }
    case 'transaction': {
      if (chain === undefined) {
        throw invalid('a transaction hash needs --rpc and --contract', 'only the chain knows which receipt it has')
      }
      const { txHash } = subject
      const cid = await findReceiptCid(chain.rpc, { ...chain, txHash })
      if (!isCid(cid)) {
        throw new VerifierError('fetch_failed', 'could not fetch', {
          details: `the event points to ${cid}, which is no CID of a receipt`,
        })
      }
      const gateways = [...parameters.gateways, ...ownGateway(api)]
      return fetchReceipt(deps, { cid, gateways, transaction: { txHash } })
    }
    case 'proof': {
      const base = api ?? subject.origin
      if (base === undefined) throw invalid('a slug needs --api', 'or give the whole proof URL')
      const proof = await getProof(deps, { api: base, slug: subject.slug })
      const { ipfsCid, txHash, chainId, walletAddress, bytes } = proof
      const stated = proof.gateway === undefined ? [] : [proof.gateway]
      const gateways = [...parameters.gateways, ...stated, ...ownGateway(base)]
      const transaction = { txHash, chainId, walletAddress }
      return fetchReceipt(deps, { cid: ipfsCid, gateways, transaction, spare: bytes })
    }
  }
}

async function readReceiptFile(path: string) {
  const bytes = await readFileBounded(path, { maxBytes: MAX_RECEIPT_BYTES })
  // A file that is named after a CID claims to be that block.
  const stem = basename(path).replace(/\.json$/, '')
  return { bytes, cid: isCid(stem) ? stem : undefined }
}

async function fetchReceipt(
  deps: FetchDeps,
  {
    cid,
    gateways,
    transaction,
    spare,
  }: Pick<LoadedReceipt, 'gateways' | 'transaction'> & {
    cid: string
    spare?: Uint8Array<ArrayBuffer> | undefined
  },
): Promise<LoadedReceipt> {
  if (gateways.length === 0) throw invalid('a CID needs --ipfs or --api', 'there is no default gateway')
  const { bytes, problems } = await getBlock(deps, { cid, gateways, maxBytes: MAX_RECEIPT_BYTES })
  const found = bytes ?? spare
  if (found === undefined) {
    throw new VerifierError('fetch_failed', 'could not fetch the receipt', {
      details: `${problems.join('; ')}; asked for ${cid}`,
    })
  }
  return { bytes: found, name: cid, cid, transaction, folder: undefined, gateways }
}

function invalid(message: string, details: string) {
  return new VerifierError('invalid_arguments', message, { details })
}
