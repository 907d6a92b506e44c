import { toLogId } from '@countersign/protocol'
import { startChain } from '@countersign/testing'
import {
  type Address,
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  slice,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { logWitness, serviceAttestations } from './abi.ts'
import { createSyntheticProof } from './createSyntheticProof.ts'
import { deployLogWitness, deployServiceAttestations } from './deployContract.ts'

/** Each of the whole transaction: base, calldata and execution. */
export type GasFigures = {
  publish: number
  publishBatch: Record<string, { total: number; perProof: number }>
  logWitness: {
    register: number
    firstAdvance: number
    /** Of a later advance, by the new size. `highest`: by one to a power of two. `typical`: the mean of advances by 140 to other sizes. */
    advance: Record<string, { highest: number; typical?: number }>
    /** Of an advance to 2^30, divided by the number of proofs since the last one. */
    perProof: Record<string, number>
  }
}

const BATCH_SIZES = [2, 10, 100, 200]
const EXPONENTS = [10, 20, 30, 40]
const PROOFS_PER_ADVANCE = [1, 10, 140, 1_000, 6_000]
const TYPICAL_SAMPLES = 10

/** Measures the gas of publishing on a node, with proofs like the service's. */
export async function measureGas(): Promise<GasFigures> {
  const chain = await startChain()
  try {
    const [deployer, publisher] = chain.accounts
    if (!deployer || !publisher) throw new Error('a chain without accounts')
    const { address: to } = await deployServiceAttestations({
      rpcUrl: chain.url,
      privateKey: deployer.privateKey,
      owner: deployer.address,
      publisher: publisher.address,
    })
    const reader = createPublicClient({ transport: http(chain.url) })
    const account = privateKeyToAccount(publisher.privateKey)
    const wallet = createWalletClient({ account, transport: http(chain.url) })
    const measure = async (data: Hex, contract: Address = to) => {
      const hash = await wallet.sendTransaction({ chain: null, to: contract, data })
      const { status, gasUsed } = await reader.getTransactionReceipt({ hash })
      if (status !== 'success') throw new Error('publishing reverted')
      return Number(gasUsed)
    }

    const { abi } = serviceAttestations
    const { wallet: signer, txHash, ipfsCid } = toProof(0)
    const figures: Omit<GasFigures, 'logWitness'> = {
      publish: await measure(encodeFunctionData({ abi, functionName: 'publish', args: [signer, txHash, ipfsCid] })),
      publishBatch: {},
    }
    for (const size of BATCH_SIZES) {
      const proofs = Array.from({ length: size }, (_, index) => toProof(index))
      const total = await measure(encodeFunctionData({ abi, functionName: 'publishBatch', args: [proofs] }))
      figures.publishBatch[size] = { total, perProof: Math.round(total / size) }
    }
    const { address: witness } = await deployLogWitness({
      rpcUrl: chain.url,
      privateKey: deployer.privateKey,
      publisher: publisher.address,
      origins: [],
    })
    const measureWitness = (data: Hex) => measure(data, witness)
    return { ...figures, logWitness: await measureLogWitness(measureWitness, publisher.address) }
  } finally {
    await chain.stop()
  }
}

/** Each advance is the second one of a new log. `account` sends everything. */
async function measureLogWitness(measure: (data: Hex) => Promise<number>, account: Address) {
  const { abi } = logWitness
  let drawn = 0
  const drawHash = () => keccak256(toHex(`hash ${++drawn}`), 'bytes')

  const measureLog = async (oldSize: number, size: number) => {
    const { older, newer, proof } = createSyntheticProof(drawHash, { oldSize, size })
    const originHash = drawHash()
    const id = toLogId(account, originHash)
    const toAdvance = (newSize: number, root: Uint8Array, hashes: readonly Uint8Array[]) => {
      const consistency = hashes.map((hash) => toHex(hash))
      const args = [id, BigInt(newSize), toHex(root), toHex(drawHash()), consistency] as const
      return encodeFunctionData({ abi, functionName: 'advance', args })
    }
    return {
      register: await measure(
        encodeFunctionData({ abi, functionName: 'register', args: [toHex(originHash), account] }),
      ),
      first: await measure(toAdvance(oldSize, older, [])),
      later: await measure(toAdvance(size, newer, proof)),
    }
  }
  const measureTypical = async (size: number) => {
    let total = 0
    for (let sample = 1; sample <= TYPICAL_SAMPLES; sample += 1) {
      // Evenly spaced from half of the size on.
      const newSize = Math.floor(size / 2 + (size / 2 / TYPICAL_SAMPLES) * (sample - 0.5))
      total += (await measureLog(newSize - 140, newSize)).later
    }
    return Math.round(total / TYPICAL_SAMPLES)
  }

  const { register, first, later } = await measureLog(1, 2)
  const figures: GasFigures['logWitness'] = {
    register,
    firstAdvance: first,
    advance: { 2: { highest: later } },
    perProof: {},
  }
  for (const exponent of EXPONENTS) {
    const size = 2 ** exponent
    const highest = (await measureLog(size - 1, size)).later
    figures.advance[`2^${exponent}`] = { highest, typical: await measureTypical(size) }
  }
  for (const count of PROOFS_PER_ADVANCE) {
    const { later: total } = await measureLog(2 ** 30 - count, 2 ** 30)
    figures.perProof[count] = Math.round(total / count)
  }
  return figures
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** Hashes, because cheap zero bytes must be as rare as in real ones. The CID has the form of a receipt's. */
function toProof(index: number) {
  const txHash = keccak256(toHex(`transaction ${index}`))
  const digits =
    keccak256(toHex(`receipt ${index}`, { size: 32 })) + keccak256(toHex(`more of receipt ${index}`)).slice(2)
  const characters = Array.from(
    { length: 52 },
    (_, place) => BASE32[Number.parseInt(digits.slice(2 + 2 * place, 4 + 2 * place), 16) % 32],
  )
  return { wallet: slice(keccak256(toHex(`wallet ${index}`)), 12), txHash, ipfsCid: `bafkrei${characters.join('')}` }
}
