import {
  assertConsistency,
  computeTreeRoot,
  createConsistencyProof,
  createLeafReader,
  LogError,
  type ReadNode,
} from '@countersign/log'
import { toLogId } from '@countersign/protocol'
import { createRandom, type NodeRequest, startChain } from '@countersign/testing'
import { decodeErrorResult, encodeFunctionData, type Hex, sha256, toHex } from 'viem'
import { logWitness } from './abi.ts'
import { deployLogWitness } from './deployContract.ts'

export type AttackParameters = {
  /** Attacks, spread over their kinds. */
  count: number
  /** Logs that advance from nothing to all entries. */
  runs: number
  seed: number
  onProgress?: (text: string) => void
}

export type AttackRow = {
  kind: Kind | 'honest'
  isAttack: boolean
  cases: number
  accepted: number
  /** Cases in which the contract and `assertConsistency` of packages/log decide differently. */
  differences: number
}

/** `resized` claims another size for a valid proof, which can be valid: a consistency proof doesn't prove the size. */
const KINDS = ['forged', 'forked', 'truncated', 'extended', 'reordered', 'replayed', 'resized'] as const
type Kind = (typeof KINDS)[number]

const ENTRIES = 5_000
const HEADS = 400
const FORKS = 12

type Claim = { size: number; root: Uint8Array; proof: readonly Uint8Array[] }
type Head = { id: Hex; size: number; root: Uint8Array }

/** Sends honest and false consistency proofs to the compiled contract, on real trees, and compares each decision with packages/log. */
export async function runAttacks(parameters: AttackParameters): Promise<AttackRow[]> {
  const contract = await startWitness()
  try {
    return await attack(contract, parameters)
  } finally {
    await contract.stop()
  }
}

async function attack(contract: Witness, { count, runs, seed, onProgress }: AttackParameters): Promise<AttackRow[]> {
  const random = createRandom(seed)
  const draw = (low: number, high: number) => low + Math.floor(random() * (high - low + 1))
  const drawHash = () => Uint8Array.from({ length: 32 }, () => draw(0, 255))
  const leaves = Array.from({ length: ENTRIES }, drawHash)
  const tree = createTree(leaves)
  const forks = Array.from({ length: FORKS }, () => {
    // Half of the forks are at the end of a small log.
    const start = random() < 0.5 ? draw(0, 20) : draw(0, ENTRIES - 2)
    return { start, tree: createTree([...leaves.slice(0, start), ...leaves.slice(start).map(drawHash)]) }
  })
  const rows = new Map<AttackRow['kind'], AttackRow>()

  const record = (kind: AttackRow['kind'], isExpected: boolean, isAccepted: boolean) => {
    const isAttack = kind !== 'honest' && kind !== 'resized'
    const row = rows.get(kind) ?? { kind, isAttack, cases: 0, accepted: 0, differences: 0 }
    row.cases += 1
    if (isAccepted) row.accepted += 1
    if (isAccepted !== isExpected) row.differences += 1
    rows.set(kind, row)
  }
  const prove = (oldSize: number, size: number, reader = tree): Claim => ({
    size,
    root: computeTreeRoot(reader, size),
    proof: createConsistencyProof(reader, { oldSize, size }),
  })

  for (let run = 0; run < runs; run += 1) {
    let head: Head = { id: await contract.register(), size: 0, root: computeTreeRoot(tree, 0) }
    while (head.size < ENTRIES) {
      // Mostly small steps.
      const size = Math.min(ENTRIES, head.size + draw(1, 10 ** draw(0, 3)))
      const claim = prove(head.size, size)
      record('honest', isConsistent(head, claim), await contract.advance(head.id, claim))
      head = { ...claim, id: head.id }
    }
    if (run % 100 === 99) onProgress?.(`${run + 1} of ${runs} logs`)
  }
  const heads: Head[] = []
  while (heads.length < HEADS) {
    const size = random() < 0.3 ? draw(1, 40) : draw(1, ENTRIES - 1)
    const id = await contract.register()
    await contract.advance(id, prove(0, size))
    heads.push({ id, size, root: computeTreeRoot(tree, size) })
  }

  const pick = <Value>(values: readonly Value[]) => values[draw(0, values.length - 1)] as Value
  /** Returns undefined if this head has no such attack. */
  const create: Record<Kind, (head: Head, honest: Claim) => Claim | undefined> = {
    forged(_, { size, root, proof }) {
      const hashes = [root, ...proof]
      const changed = draw(0, hashes.length - 1)
      const [newRoot = root, ...rest] = hashes.map((hash, index) => {
        if (index !== changed) return hash
        if (random() < 0.5) return drawHash()
        return flipBit(hash, draw(0, 255))
      })
      return { size, root: newRoot, proof: rest }
    },
    forked(head, honest) {
      const fork = pick(forks)
      if (fork.start >= head.size) return undefined
      const forked = prove(head.size, honest.size, fork.tree)
      return pick([forked, { ...forked, root: honest.root }, { ...forked, proof: honest.proof }])
    },
    truncated(_, honest) {
      const length = honest.proof.length
      const kept = draw(0, length - 1)
      const place = draw(0, length - 1)
      const proof = pick([
        honest.proof.slice(0, kept),
        honest.proof.slice(length - kept),
        honest.proof.toSpliced(place, 1),
      ])
      return { ...honest, proof }
    },
    extended(_, honest) {
      const hash = random() < 0.5 ? drawHash() : pick(honest.proof)
      return { ...honest, proof: honest.proof.toSpliced(draw(0, honest.proof.length), 0, hash) }
    },
    reordered(_, honest) {
      const [one, other] = [draw(0, honest.proof.length - 1), draw(0, honest.proof.length - 1)]
      if (one === other) return undefined
      const proof = honest.proof.map(
        (_hash, index) => honest.proof[index === one ? other : index === other ? one : index],
      )
      return { ...honest, proof: proof as Uint8Array[] }
    },
    replayed(head, honest) {
      const oldSize = draw(1, honest.size - 1)
      if (oldSize === head.size) return undefined
      // A whole earlier advance of this log, or the proof of another step to the same checkpoint.
      const earlier = draw(oldSize + 1, honest.size)
      return pick([earlier < head.size ? prove(oldSize, earlier) : undefined, prove(oldSize, honest.size)])
    },
    resized: (head, honest) => ({ ...honest, size: draw(head.size + 1, random() < 0.5 ? ENTRIES : honest.size + 2) }),
  }
  for (let done = 0, turn = 0; done < count; ) {
    const kind = KINDS[turn % KINDS.length] as Kind
    const head = pick(heads)
    const size = draw(head.size + 1, random() < 0.5 ? ENTRIES : Math.min(ENTRIES, head.size + 20))
    const claim = create[kind](head, prove(head.size, size))
    if (claim === undefined) continue
    const isAccepted = await contract.wouldAdvance(head.id, claim)
    record(kind, isConsistent(head, claim), isAccepted)
    turn += 1
    if (kind === 'resized') continue
    if (isAccepted) onProgress?.(`ACCEPTED: ${kind}, from size ${head.size} to ${claim.size}`)
    done += 1
    if (done % 10_000 === 0) onProgress?.(`${done} of ${count} attacks`)
  }
  return [...rows.values()]
}

function isConsistent({ size: oldSize, root: oldRoot }: Head, claim: Claim): boolean {
  try {
    assertConsistency({ oldSize, oldRoot, ...claim })
    return true
  } catch (error) {
    if (error instanceof LogError) return false
    throw error
  }
}

/** Remembers the hashes of complete subtrees. */
function createTree(leaves: readonly Uint8Array[]): ReadNode {
  const read = createLeafReader(leaves)
  const known = new Map<string, Uint8Array>()
  return (node) => {
    const key = `${node.level}/${node.index}`
    const hash = known.get(key) ?? read(node)
    known.set(key, hash)
    return hash
  }
}

function flipBit(hash: Uint8Array, bit: number): Uint8Array {
  return hash.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
}

type Witness = Awaited<ReturnType<typeof startWitness>>

/** LogWitness on a local chain, with one account as owner and publisher. Calls the node without HTTP, which would take most of the time. */
async function startWitness() {
  let request: NodeRequest = () => Promise.reject(new Error('the chain has not started'))
  const chain = await startChain({
    wrap: async (node) => {
      request = node
      return node
    },
  })
  const [account] = chain.accounts
  if (!account) throw new Error('a chain without accounts')
  const { address: from, privateKey } = account
  const { address: to } = await deployLogWitness({ rpcUrl: chain.url, privateKey, publisher: from, origins: [] })
  const { abi } = logWitness
  let registered = 0

  const send = async (data: Hex) => {
    const hash = await request('eth_sendTransaction', [{ from, to, data, gas: toHex(1_000_000) }])
    const receipt = await request('eth_getTransactionReceipt', [hash])
    return (receipt as { status: Hex }).status === '0x1'
  }
  const encodeAdvance = (id: Hex, { size, root, proof }: Claim) => {
    const args = [id, BigInt(size), toHex(root), toHex(root), proof.map((hash) => toHex(hash))] as const
    return encodeFunctionData({ abi, functionName: 'advance', args })
  }
  return {
    stop: chain.stop,

    async register(): Promise<Hex> {
      registered += 1
      const originHash = sha256(toHex(registered), 'bytes')
      if (!(await send(encodeFunctionData({ abi, functionName: 'register', args: [toHex(originHash), from] }))))
        throw new Error(`log ${registered} was not registered`)
      return toLogId(from, originHash)
    },

    advance: (id: Hex, claim: Claim) => send(encodeAdvance(id, claim)),

    /** Returns false if the contract rejects the claim for its size or proof. Changes nothing. */
    async wouldAdvance(id: Hex, claim: Claim): Promise<boolean> {
      const call = { from, to, data: encodeAdvance(id, claim), gas: toHex(1_000_000) }
      const error = await request('eth_call', [call, 'latest']).then(
        () => undefined,
        (cause: unknown) => cause,
      )
      if (error === undefined) return true
      const { errorName } = decodeErrorResult({ abi, data: (error as { data: Hex }).data })
      if (errorName !== 'Inconsistent' && errorName !== 'InvalidSize') throw error
      return false
    },
  }
}
