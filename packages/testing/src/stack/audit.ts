import { createHash } from 'node:crypto'
import type {
  AttestationReceiptV1,
  AttestationReceiptV2,
  Hex,
  ProofPayload,
  TransactionSubject,
} from '@countersign/protocol'
import { CID } from 'multiformats/cid'
import { readEvents } from './readEvents.ts'

/** A signature that a client received, and the wallet that should have made it. */
export type ReceivedSignature = { digest: Hex; signature: Hex; slug: string; address: string }

/** What a client saw of a proof. */
export type SeenProof = Pick<ProofPayload, 'status' | 'ipfsCid'>

/** Verifies a proof by its transaction alone. `fault` says what is wrong. */
export type VerifyTransaction = (txHash: Hex) => Promise<{ cid: string } | { fault: string }>

export type Audit = {
  verified: number
  /** Signatures that a client has, and whose proof is not complete, or has no event. */
  lost: string[]
  /** Transactions with more than one event. */
  duplicated: string[]
  /** Proofs that do not verify, or that are about another signature than the client has. */
  invalid: string[]
  /** Events about signatures that no client has. */
  unknown: string[]
}

const LANES = 4

/**
 * Checks from outside, as a stranger would, every signature that a client received: its proof is complete and has one event on the
 * chain; the verifier finds it there by its transaction; and the receipt on IPFS is about that signature.
 */
export async function audit(parameters: {
  /** Of the coordinator. */
  url: string
  chainUrl: string
  contract: string
  /** A gateway. */
  ipfsUrl: string
  received: readonly ReceivedSignature[]
  /** By slug. */
  seen: ReadonlyMap<string, SeenProof>
  verifyTransaction: VerifyTransaction
  say?(line: string): void
}): Promise<Audit> {
  const { url, chainUrl, contract, ipfsUrl, received, seen, verifyTransaction, say } = parameters
  const result: Audit = { verified: 0, lost: [], duplicated: [], invalid: [], unknown: [] }
  const readAllEvents = () => readEvents({ url: chainUrl, contract })
  const published = new Set<string>((await readAllEvents()).map(({ txHash }) => txHash))
  const expected = new Set<string>()

  async function checkOne(signature: ReceivedSignature) {
    const { slug } = signature
    const earlier = seen.get(slug)
    if (earlier?.status !== 'complete') return void result.lost.push(`${slug} is ${earlier?.status ?? 'not known'}`)
    const response = await fetch(`${url}/proof/${slug}`)
    const proof = (await response.json()) as ProofPayload
    expected.add(proof.txHash)
    if (!published.has(proof.txHash)) return void result.lost.push(`${slug} has no event`)
    const fault = await findFault(signature, earlier, proof).catch((error: Error) => error.message)
    if (fault === undefined) result.verified += 1
    else result.invalid.push(`${slug}: ${fault}`)
  }

  async function findFault(
    signature: ReceivedSignature,
    earlier: SeenProof,
    proof: ProofPayload,
  ): Promise<string | undefined> {
    const { status, ipfsCid, slug } = proof
    if (status !== 'complete' || ipfsCid !== earlier.ipfsCid || slug !== signature.slug) {
      return `${slug} is ${status} with ${ipfsCid} now`
    }
    const verified = await verifyTransaction(proof.txHash)
    if ('fault' in verified) return verified.fault
    if (verified.cid !== ipfsCid) return `the service names ${ipfsCid}, the chain ${verified.cid}`
    const { digestSigned, signature: signed, from } = await readTransaction(ipfsUrl, verified.cid)
    if (digestSigned !== signature.digest || signed !== signature.signature) return 'is about another signature'
    if (from !== signature.address) return `is of ${from}, not of ${signature.address}`
    return proof.kmsQuoteVerified ? undefined : 'kmsQuoteVerified is false'
  }

  // The verifier and the node that it asks run on different threads.
  const next = received.entries()
  const lanes = Array.from({ length: LANES }, async () => {
    for (const [index, signature] of next) {
      if ((index + 1) % 500 === 0) say?.(`verified ${index + 1} of ${received.length}`)
      await checkOne(signature)
    }
  })
  await Promise.all(lanes)
  // Last, so that an event that came meanwhile counts too.
  for (const [txHash, { length }] of Map.groupBy(await readAllEvents(), (event) => event.txHash)) {
    if (length > 1) result.duplicated.push(`${txHash} has ${length} events`)
    if (!expected.has(txHash)) result.unknown.push(txHash)
  }
  return result
}

/** What the receipt is about, whichever version it has. */
async function readTransaction(ipfsUrl: string, cid: string): Promise<TransactionSubject> {
  const response = await fetch(`${ipfsUrl}/ipfs/${cid}?format=raw`)
  if (response.status !== 200) throw new Error(`${cid} is not there`)
  const bytes = Buffer.from(await response.arrayBuffer())
  const { digest } = CID.parse(cid).multihash
  if (!createHash('sha256').update(bytes).digest().equals(digest)) throw new Error(`${cid} has other bytes`)
  const receipt = JSON.parse(bytes.toString('utf8')) as AttestationReceiptV1 | AttestationReceiptV2
  if (!('kind' in receipt)) return receipt.transaction
  if (receipt.kind !== 'transaction') throw new Error(`${cid} is about no transaction`)
  return receipt.subject
}
