import { parseOptions } from '../../apps/verifier/src/parseOptions.ts'
import { verify } from '../../apps/verifier/src/verify.ts'
import type { Cluster } from '../cluster/startCluster.ts'
import { readEvents } from '../../services/coordinator/test/events.ts'
import type { Answered, Seen } from './load.ts'

export type Audit = {
  verified: number
  /** Signatures that a client has, and whose proof is not complete, or has no event. */
  lost: string[]
  /** Transactions with more than one event. */
  duplicated: string[]
  /** Proofs that the verifier does not accept, or that are about another signature than the client has. */
  invalid: string[]
  /** Events about signatures that no client has. */
  unknown: string[]
}

type Proof = { slug: string; status: string; txHash: string; ipfsCid: string; kmsQuoteVerified: boolean }

const LANES = 4
const deps = { fetch: globalThis.fetch, timeoutMs: 30_000 }

/**
 * From the outside, as a stranger: every signature that a client received is looked up on the chain by its transaction, read from
 * IPFS and verified with the code of the command-line verifier.
 */
export async function audit(parameters: {
  cluster: Pick<Cluster, 'url' | 'ipfsUrl' | 'chainUrl' | 'contract' | 'anchors'>
  answered: readonly Answered[]
  proofs: ReadonlyMap<string, Seen>
  say(line: string): void
}): Promise<Audit> {
  const { cluster, answered, proofs, say } = parameters
  const { chainUrl, contract, ipfsUrl, anchors } = cluster
  const trust = [
    ...['--rpc', chainUrl, '--contract', contract, '--ipfs', ipfsUrl, '--allow-mock'],
    ...['--measurement', anchors.measurement, '--config-hash', anchors.configHash],
    ...['--coordinator-measurement', anchors.coordinatorMeasurement],
    ...['--coordinator-config-hash', anchors.coordinatorConfigHash, '--entropy-key', anchors.entropyKey],
  ]
  const result: Audit = { verified: 0, lost: [], duplicated: [], invalid: [], unknown: [] }
  const readAllEvents = () => readEvents({ url: chainUrl, contract })
  const published = new Set<string>((await readAllEvents()).map(({ txHash }) => txHash))
  const expected = new Set<string>()

  const each = async (answer: Answered) => {
    const { slug } = answer
    const seen = proofs.get(slug)
    if (seen?.status !== 'complete') return void result.lost.push(`${slug} is ${seen?.status ?? 'not known'}`)
    const response = await fetch(`${cluster.url}/proof/${slug}`)
    const proof = (await response.json()) as Proof
    expected.add(proof.txHash)
    if (!published.has(proof.txHash)) return void result.lost.push(`${slug} has no event`)
    const isSame = proof.status === 'complete' && proof.ipfsCid === seen.ipfsCid && proof.slug === slug
    const fault = isSame
      ? await findFault(answer, proof, trust).catch((error: Error) => error.message)
      : `${proof.slug} is ${proof.status} with ${proof.ipfsCid} now`
    if (fault === undefined) result.verified += 1
    else result.invalid.push(`${slug}: ${fault}`)
  }
  // The chain's part and ours run on different threads.
  const next = answered.entries()
  const lanes = Array.from({ length: LANES }, async () => {
    for (const [index, answer] of next) {
      if ((index + 1) % 500 === 0) say(`verified ${index + 1} of ${answered.length}`)
      await each(answer)
    }
  })
  await Promise.all(lanes)
  // Last, so that one that came meanwhile is seen too.
  for (const [txHash, { length }] of Map.groupBy(await readAllEvents(), (event) => event.txHash)) {
    if (length > 1) result.duplicated.push(`${txHash} has ${length} events`)
    if (!expected.has(txHash)) result.unknown.push(txHash)
  }
  return result
}

async function findFault(answer: Answered, proof: Proof, trust: readonly string[]): Promise<string | undefined> {
  const options = parseOptions({ now: () => new Date() }, ['verify', proof.txHash, ...trust])
  if (options.command !== 'verify') return 'not understood'
  const { exitCode, steps, receipt, cid } = await verify(deps, options)
  if (exitCode !== 0) {
    const failed = steps.filter(({ status }) => status !== 'pass').map(({ id, status }) => `${id} ${status}`)
    return `exit code ${exitCode}: ${failed.join(', ')}`
  }
  const { digestSigned, signature, from } = receipt.transaction
  if (digestSigned !== answer.digest || signature !== answer.signature) return 'is about another signature'
  if (from !== answer.address) return `is of ${from}, not of ${answer.address}`
  if (cid !== proof.ipfsCid) return `the service names ${proof.ipfsCid}, the chain ${cid}`
  return proof.kmsQuoteVerified ? undefined : 'kmsQuoteVerified is false'
}
