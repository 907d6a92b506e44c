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

/** A signature that a client received, and the address of the wallet that must have signed it. */
export type ReceivedSignature = { digest: Hex; signature: Hex; slug: string; address: string }

export type Audit = {
  verified: number
  /** Signatures whose proof is incomplete or has no event. */
  lost: string[]
  /** Transactions with more than one event. */
  duplicated: string[]
  /** Proofs that don't verify, or that cover a different signature. */
  invalid: string[]
  /** Events about signatures that no client received. */
  unknown: string[]
}

/** The addresses a third party reads from: the coordinator, a node and an IPFS gateway. */
export type AuditedStack = { url: string; chainUrl: string; contract: string; ipfsUrl: string; anchors: StackAnchors }

const LANES = 4
const PROOFS_TIMEOUT_MS = 120_000
const CALL_MS = 30_000

/**
 * Waits for the proofs, then checks each received signature as a third party would: its proof is complete and has one event on the chain, the
 * verifier finds it by that transaction, and the receipt on IPFS covers that signature. The verifier takes most of the time: with
 * `verifyOneIn` it runs on every nth signature only, and the others are checked by the CID of their event.
 */
export async function audit(
  stack: AuditedStack,
  received: readonly ReceivedSignature[],
  { say = () => {}, verifyOneIn = 1 }: { say?(line: string): void; verifyOneIn?: number } = {},
): Promise<Audit> {
  const { url, chainUrl, contract, ipfsUrl } = stack
  say(`waiting for ${received.length} proofs`)
  const slugs = received.map(({ slug }) => slug)
  const proofs = await waitForProofs({ url, slugs, timeoutMs: PROOFS_TIMEOUT_MS })
  const result: Audit = { verified: 0, lost: [], duplicated: [], invalid: [], unknown: [] }
  const readAllEvents = () => readEvents({ url: chainUrl, contract })
  const cids = new Map<string, string>((await readAllEvents()).map(({ txHash, ipfsCid }) => [txHash, ipfsCid]))
  const expected = new Set<string>()

  async function checkOne(index: number, signature: ReceivedSignature) {
    const { slug } = signature
    const { proof, httpStatus } = proofs[index] ?? {}
    if (proof !== undefined) expected.add(proof.txHash)
    if (proof?.status !== 'complete')
      return void result.lost.push(`${slug}: expected status complete, got ${proof?.status ?? httpStatus}`)
    const cid = cids.get(proof.txHash)
    if (cid === undefined) return void result.lost.push(`${slug}: no event on the chain`)
    const verified = index % verifyOneIn === 0 ? await verify(stack, proof.txHash) : { cid }
    const fault = await findFault(signature, proof, verified).catch((error: Error) => error.message)
    if (fault === undefined) result.verified += 1
    else result.invalid.push(`${slug}: ${fault}`)
  }

  async function findFault(signature: ReceivedSignature, proof: ProofPayload, verified: Verified) {
    if ('fault' in verified) return verified.fault
    if (verified.cid !== proof.ipfsCid) return `the service reports CID ${proof.ipfsCid}, the chain has ${verified.cid}`
    const { digestSigned, signature: signed, from } = await readTransaction(ipfsUrl, verified.cid)
    if (digestSigned !== signature.digest || signed !== signature.signature)
      return 'the receipt covers a different signature'
    if (from !== signature.address) return `signed by ${from}, expected ${signature.address}`
    return proof.kmsQuoteVerified ? undefined : 'kmsQuoteVerified is false'
  }

  // The verifier and its node run on different threads.
  const next = received.entries()
  const lanes = Array.from({ length: LANES }, async () => {
    for (const [index, signature] of next) {
      if ((index + 1) % 500 === 0) say(`verified ${index + 1} of ${received.length}`)
      await checkOne(index, signature)
    }
  })
  await Promise.all(lanes)
  // Read the events again, so that events published in the meantime count too.
  for (const [txHash, { length }] of Map.groupBy(await readAllEvents(), (event) => event.txHash)) {
    if (length > 1) result.duplicated.push(`${txHash} has ${length} events`)
    if (!expected.has(txHash)) result.unknown.push(txHash)
  }
  return result
}

/** Each fault, prefixed with its kind. */
export function listFaults({ lost, duplicated, invalid, unknown }: Audit): string[] {
  return Object.entries({ lost, duplicated, invalid, unknown }).flatMap(([kind, all]) =>
    all.map((each) => `${kind}: ${each}`),
  )
}

type Verified = { cid: string } | { fault: string }
type Step = { id: string; status: 'pass' | 'fail' | 'skip' }

/** Runs the command-line verifier, with only chain and IPFS. */
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
  return { fault: `verifier exited with ${exitCode}: ${error?.message ?? failed.join(', ')}` }
}

/** Reads the transaction that a receipt of either version covers. */
async function readTransaction(ipfsUrl: string, cid: string): Promise<TransactionSubject> {
  const response = await fetch(`${ipfsUrl}/ipfs/${cid}?format=raw`)
  if (response.status !== 200) throw new Error(`${cid} not found on IPFS`)
  const bytes = Buffer.from(await response.arrayBuffer())
  if (toCid(bytes) !== cid) throw new Error(`content of ${cid} doesn't match its CID`)
  const receipt = JSON.parse(bytes.toString('utf8')) as AttestationReceiptV1 | AttestationReceiptV2
  if (!('kind' in receipt)) return receipt.transaction
  if (receipt.kind !== 'transaction') throw new Error(`receipt ${cid} doesn't cover a transaction`)
  return receipt.subject
}
