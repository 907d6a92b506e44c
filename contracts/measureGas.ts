import { startChain } from '@countersign/testing'
import {
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
import { serviceAttestations } from './abi.ts'
import { deployServiceAttestations } from './deployContract.ts'

export type GasFigures = {
  /** Of the whole transaction: base, calldata and execution. */
  publish: number
  publishBatch: Record<string, { total: number; perProof: number }>
}

const BATCH_SIZES = [2, 10, 100, 200]

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
    const measure = async (data: Hex) => {
      const hash = await wallet.sendTransaction({ chain: null, to, data })
      const { status, gasUsed } = await reader.getTransactionReceipt({ hash })
      if (status !== 'success') throw new Error('publishing reverted')
      return Number(gasUsed)
    }

    const { abi } = serviceAttestations
    const { wallet: signer, txHash, ipfsCid } = toProof(0)
    const figures: GasFigures = {
      publish: await measure(encodeFunctionData({ abi, functionName: 'publish', args: [signer, txHash, ipfsCid] })),
      publishBatch: {},
    }
    for (const size of BATCH_SIZES) {
      const proofs = Array.from({ length: size }, (_, index) => toProof(index))
      const total = await measure(encodeFunctionData({ abi, functionName: 'publishBatch', args: [proofs] }))
      figures.publishBatch[size] = { total, perProof: Math.round(total / size) }
    }
    return figures
  } finally {
    await chain.stop()
  }
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
