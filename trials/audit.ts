import type {
  AttestationReceiptV1,
  AttestationReceiptV2,
  Hex,
  ProofPayload,
  TransactionSubject,
} from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { readEvents, type StackAnchors, waitForProofs } from '@countersign/testing/stack'
import { toMeasurementText } from '@countersign/verify'
import { runCli } from '../apps/verifier/src/runCli.ts'

/** A signature that a client received, and the wallet that should have made it. */
export type ReceivedSignature = { digest: Hex; signature: Hex; slug: string; address: string }

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

/** Where a third party finds everything: the coordinator, a node, and an IPFS gateway. */
export type AuditedStack = { url: string; chainUrl: string; contract: string; ipfsUrl: string; anchors: StackAnchors }

const LANES = 4
const SETTLE_MS = 120_000
const CALL_MS = 30_000

/**
 * Waits for the proofs, then checks as a third party would every signature that a client received: its proof is complete and has one
 * event on the chain; the verifier finds it there by its transaction; and the receipt on IPFS is about that signature. With `verifyOneIn`
 * the verifier, which takes most of the time, runs for some of them only; for the others the CID of the event counts.
 */
export async function audit(
  stack: AuditedStack,
  received: readonly ReceivedSignature[],
  { say = () => {}, verifyOneIn = 1 }: { say?(line: string): void; verifyOneIn?: number } = {},
): Promise<Audit> {
  const { url, chainUrl, contract, ipfsUrl } = stack
  say(`waiting for ${received.length} proofs`)
  const slugs = received.map(({ slug }) => slug)
  const proofs = await waitForProofs({ url, slugs, timeoutMs: SETTLE_MS })
  const result: Audit = { verified: 0, lost: [], duplicated: [], invalid: [], unknown: [] }
  const readAllEvents = () => readEvents({ url: chainUrl, contract })
  const cids = new Map<string, string>((await readAllEvents()).map(({ txHash, ipfsCid }) => [txHash, ipfsCid]))
  const expected = new Set<string>()

  async function checkOne(index: number, signature: ReceivedSignature) {
    const { slug } = signature
    const { proof, httpStatus } = proofs[index] ?? {}
    if (proof !== undefined) expected.add(proof.txHash)
    if (proof?.status !== 'complete') return void result.lost.push(`${slug} is ${proof?.status ?? httpStatus}`)
    const cid = cids.get(proof.txHash)
    if (cid === undefined) return void result.lost.push(`${slug} has no event`)
    const verified = index % verifyOneIn === 0 ? await verify(stack, proof.txHash) : { cid }
    const fault = await findFault(signature, proof, verified).catch((error: Error) => error.message)
    if (fault === undefined) result.verified += 1
    else result.invalid.push(`${slug}: ${fault}`)
  }

  async function findFault(signature: ReceivedSignature, proof: ProofPayload, verified: Verified) {
    if ('fault' in verified) return verified.fault
    if (verified.cid !== proof.ipfsCid) return `the service names ${proof.ipfsCid}, the chain ${verified.cid}`
    const { digestSigned, signature: signed, from } = await readTransaction(ipfsUrl, verified.cid)
    if (digestSigned !== signature.digest || signed !== signature.signature) return 'is about another signature'
    if (from !== signature.address) return `is of ${from}, not of ${signature.address}`
    return proof.kmsQuoteVerified ? undefined : 'kmsQuoteVerified is false'
  }

  // The verifier and the node that it asks run on different threads.
  const next = received.entries()
  const lanes = Array.from({ length: LANES }, async () => {
    for (const [index, signature] of next) {
      if ((index + 1) % 500 === 0) say(`verified ${index + 1} of ${received.length}`)
      await checkOne(index, signature)
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

/** With the kind of fault before each. */
export function listFaults({ lost, duplicated, invalid, unknown }: Audit): string[] {
  return Object.entries({ lost, duplicated, invalid, unknown }).flatMap(([kind, all]) =>
    all.map((each) => `${kind}: ${each}`),
  )
}

type Verified = { cid: string } | { fault: string }
type Step = { id: string; status: 'pass' | 'fail' | 'skip' }

/** With the command-line verifier, from chain and IPFS only. */
async function verify({ chainUrl, contract, ipfsUrl, anchors }: AuditedStack, txHash: Hex): Promise<Verified> {
  const deps = { fetch: globalThis.fetch, timeoutMs: CALL_MS, now: () => new Date(), isColored: false }
  const trust = [
    ...['--rpc', chainUrl, '--contract', contract, '--ipfs', ipfsUrl, '--allow-mock'],
    ...['--measurement', toMeasurementText(anchors.measurement), '--config-hash', anchors.configHash],
    ...['--coordinator-measurement', anchors.coordinatorMeasurement, '--coordinator-tcb', anchors.coordinatorTcb],
    ...['--coordinator-config-hash', anchors.coordinatorConfigHash, '--entropy-key', anchors.entropyKey],
  ]
  const { exitCode, stdout } = await runCli(deps, ['verify', txHash, ...trust, '--json'])
  const answer = JSON.parse(stdout) as { steps?: readonly Step[]; cid?: string; error?: { message: string } }
  const { steps = [], cid, error } = answer
  if (exitCode === 0 && cid !== undefined) return { cid }
  const failed = steps.filter(({ status }) => status !== 'pass').map(({ id, status }) => `${id} ${status}`)
  return { fault: `exit code ${exitCode}: ${error?.message ?? failed.join(', ')}` }
}

/** What the receipt is about, whichever version it has. */
async function readTransaction(ipfsUrl: string, cid: string): Promise<TransactionSubject> {
  const response = await fetch(`${ipfsUrl}/ipfs/${cid}?format=raw`)
  if (response.status !== 200) throw new Error(`${cid} is not there`)
  const bytes = Buffer.from(await response.arrayBuffer())
  if (toCid(bytes) !== cid) throw new Error(`${cid} has other bytes`)
  const receipt = JSON.parse(bytes.toString('utf8')) as AttestationReceiptV1 | AttestationReceiptV2
  if (!('kind' in receipt)) return receipt.transaction
  if (receipt.kind !== 'transaction') throw new Error(`${cid} is about no transaction`)
  return receipt.subject
}
