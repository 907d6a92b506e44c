import type {
  AttestationReceiptV1,
  AttestationReceiptV2,
  Hex,
  ProofPayload,
  TransactionSubject,
} from '@countersign/protocol'
import { readEvents, type StackAnchors, waitForProofs } from '@countersign/testing/stack'
import { toMeasurementText } from '@countersign/verify'
import { runCli } from '../apps/verifier/src/runCli.ts'
import { readAnchored, readBlock } from './readAnchored.ts'

/** A signature that a client received, and the address of the wallet that must have signed it. */
export type ReceivedSignature = { digest: Hex; signature: Hex; slug: string; address: string }

export type Audit = {
  verified: number
  /** Signatures whose proof is incomplete or not published on the chain. */
  lost: string[]
  /** Transactions that were published more than once. */
  duplicated: string[]
  /** Proofs that don't verify, or that cover a different signature. */
  invalid: string[]
  /** Published transactions whose signature no client received. */
  unknown: string[]
}

/** The addresses a third party reads from: the coordinator, a node and an IPFS gateway. */
export type AuditedStack = {
  url: string
  chainUrl: string
  contract: string
  ipfsUrl: string
  anchors: StackAnchors
  /** LogWitness and its logs, if the stack publishes checkpoints. `manifest` is a file that lists them. */
  logWitness?: { address: string; ids: readonly string[]; manifest: string } | undefined
}

const LANES = 4
const PROOFS_TIMEOUT_MS = 120_000
const CALL_MS = 30_000

/**
 * Waits for the proofs, then checks each received signature as a third party would: its proof is complete and has one event on the chain, or
 * is in the block of one checkpoint, the verifier finds it by that transaction, and the receipt on IPFS covers that signature. The verifier takes most of the time: with
 * `verifyOneIn` it runs on every nth signature only, and the others are checked by the published CID.
 */
export async function audit(
  stack: AuditedStack,
  received: readonly ReceivedSignature[],
  { say = () => {}, verifyOneIn = 1 }: { say?(line: string): void; verifyOneIn?: number } = {},
): Promise<Audit> {
  const { url, ipfsUrl } = stack
  say(`waiting for ${received.length} proofs`)
  const slugs = received.map(({ slug }) => slug)
  const proofs = await waitForProofs({ url, slugs, timeoutMs: PROOFS_TIMEOUT_MS })
  const result: Audit = { verified: 0, lost: [], duplicated: [], invalid: [], unknown: [] }
  const cids = new Map<string, string>((await readPublished(stack)).map(({ txHash, cid }) => [txHash, cid]))
  const expected = new Set<string>()

  async function checkOne(index: number, signature: ReceivedSignature) {
    const { slug } = signature
    const { proof, httpStatus } = proofs[index] ?? {}
    if (proof !== undefined) expected.add(proof.txHash)
    if (proof?.status !== 'complete')
      return void result.lost.push(`${slug}: expected status complete, got ${proof?.status ?? httpStatus}`)
    const cid = cids.get(proof.txHash)
    if (cid === undefined) return void result.lost.push(`${slug}: not on the chain`)
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
  // Read again, so that those published in the meantime count too.
  for (const [txHash, { length }] of Map.groupBy(await readPublished(stack), (each) => each.txHash)) {
    if (length > 1) result.duplicated.push(`${txHash} was published ${length} times`)
    if (!expected.has(txHash)) result.unknown.push(txHash)
  }
  return result
}

/** The transactions in events and checkpoints, with the CIDs of their receipts. */
async function readPublished({ chainUrl, contract, ipfsUrl, logWitness }: AuditedStack) {
  const events = await readEvents({ url: chainUrl, contract })
  const anchored = logWitness === undefined ? [] : await readAnchored({ chainUrl, ipfsUrl, ...logWitness })
  return [...events.map(({ txHash, ipfsCid: cid }) => ({ txHash, cid })), ...anchored]
}

/** Each fault, prefixed with its kind. */
export function listFaults({ lost, duplicated, invalid, unknown }: Audit): string[] {
  return Object.entries({ lost, duplicated, invalid, unknown }).flatMap(([kind, all]) =>
    all.map((each) => `${kind}: ${each}`),
  )
}

type Verified = { cid: string } | { fault: string }
type Step = { id: string; status: 'pass' | 'fail' | 'skip'; detail?: string }

/** Runs the command-line verifier, with only chain and IPFS. */
async function verify(stack: AuditedStack, txHash: Hex): Promise<Verified> {
  const deps = { fetch: globalThis.fetch, timeoutMs: CALL_MS, now: () => new Date(), isColored: false }
  const sources = ['--rpc', stack.chainUrl, '--ipfs', stack.ipfsUrl, '--allow-mock']
  const { exitCode, stdout } = await runCli(deps, ['verify', txHash, ...sources, ...toTrust(stack), '--json'])
  const answer = JSON.parse(stdout) as { steps?: readonly Step[]; cid?: string; error?: { message: string } }
  const { steps = [], cid, error } = answer
  if (exitCode === 0 && cid !== undefined) return { cid }
  const failed = steps
    .filter(({ status }) => status !== 'pass')
    .map(({ id, status, detail }) => `${id} ${status}${status === 'fail' ? ` (${detail})` : ''}`)
  return { fault: `verifier exited with ${exitCode}: ${error?.message ?? failed.join(', ')}` }
}

/** No option names the logs in LogWitness, so these need a manifest. */
function toTrust({ contract, anchors, logWitness }: AuditedStack): string[] {
  if (logWitness !== undefined) return ['--manifest', logWitness.manifest]
  return [
    ...['--contract', contract, '--measurement', toMeasurementText(anchors.measurement)],
    ...['--config-hash', anchors.configHash, '--entropy-key', anchors.entropyKey],
    ...['--coordinator-measurement', anchors.coordinatorMeasurement, '--coordinator-tcb', anchors.coordinatorTcb],
    ...['--coordinator-config-hash', anchors.coordinatorConfigHash],
  ]
}

/** Reads the transaction that a receipt of either version covers. */
async function readTransaction(ipfsUrl: string, cid: string): Promise<TransactionSubject> {
  const receipt = JSON.parse(Buffer.from(await readBlock(ipfsUrl, cid)).toString('utf8')) as
    | AttestationReceiptV1
    | AttestationReceiptV2
  if (!('kind' in receipt)) return receipt.transaction
  if (receipt.kind !== 'transaction') throw new Error(`receipt ${cid} doesn't cover a transaction`)
  return receipt.subject
}
