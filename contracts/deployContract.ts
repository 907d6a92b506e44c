import { toLogId } from '@countersign/protocol'
import {
  type Address,
  BaseError,
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hash,
  type Hex,
  http,
  isAddressEqual,
  sha256,
  stringToBytes,
  toHex,
  zeroAddress,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { logWitness, serviceAttestations } from './abi.ts'

/** The node, and how to send and confirm transactions. */
type SendParameters = {
  rpcUrl: string
  /** The key of the account that pays. */
  privateKey: Hex
  /** Rejects a node of another chain before signing. */
  chainId?: number
  /** Blocks to wait for, including the transaction's own. Default: 1. */
  confirmations?: number
  /** Time limit for a confirmation and for reading the code. Default: three minutes. */
  timeoutMs?: number
  pollingIntervalMs?: number
}

/** The paying account has no rights over ServiceAttestations afterwards. */
export type DeployParameters = SendParameters & { owner: Address; publisher: Address }

export type Deployment = { address: Address; transactionHash: Hash; blockNumber: bigint; chainId: number }

/** The paying account becomes the owner of the logs. */
export type LogWitnessParameters = SendParameters & {
  publisher: Address
  /** The origins of the logs to register. */
  origins: readonly string[]
  /** An existing contract. Default: deploys one. */
  address?: Address
}

export type LogWitnessDeployment = {
  address: Address
  /** The block of the deployment. With an existing contract, the newest block before the registrations. */
  blockNumber: bigint
  chainId: number
  /** In the order of `origins`. */
  logs: { origin: string; id: Hash }[]
}

/** The message can be shown: it contains neither the key nor the node's URL, which can contain a token. */
export class DeployError extends Error {
  override name = 'DeployError'
}

/**
 * Deploys ServiceAttestations and checks that the code on the chain is the compiled code, with the given owner and publisher.
 *
 * @example
 * const { address } = await deployServiceAttestations({ rpcUrl, privateKey, owner, publisher })
 */
export async function deployServiceAttestations(parameters: DeployParameters): Promise<Deployment> {
  const { rpcUrl, owner, publisher } = parameters
  const node = await connect(parameters)
  const { abi, bytecode } = serviceAttestations
  const sent = node.wallet.deployContract({ abi, bytecode, args: [owner, publisher] })
  const { address, transactionHash, blockNumber } = await confirmDeployment(node, sent)

  const checkRoles = async () => {
    await checkCode(node, address, serviceAttestations.deployedBytecode)
    const [actualOwner, actualPublisher] = await Promise.all([
      node.reader.readContract({ address, abi, functionName: 'owner' }),
      node.reader.readContract({ address, abi, functionName: 'publisher' }),
    ])
    if (!isAddressEqual(actualOwner, owner))
      throw new DeployError(`the owner of ${address} is ${actualOwner}, not ${owner}`)
    if (!isAddressEqual(actualPublisher, publisher))
      throw new DeployError(`the publisher of ${address} is ${actualPublisher}, not ${publisher}`)
  }
  await checkRoles().catch(fail(`${address} could not be checked`, rpcUrl))
  return { address, transactionHash, blockNumber, chainId: node.chainId }
}

/**
 * Deploys LogWitness, or checks the code of an existing one, and registers the logs that the paying account has not registered yet.
 *
 * @example
 * const { address, logs } = await deployLogWitness({ rpcUrl, privateKey, publisher, origins: ['log.example/a'] })
 */
export async function deployLogWitness(parameters: LogWitnessParameters): Promise<LogWitnessDeployment> {
  const { rpcUrl, origins } = parameters
  const node = await connect(parameters)
  const { address, blockNumber } =
    parameters.address === undefined
      ? await confirmDeployment(node, node.wallet.deployContract(logWitness))
      : { address: parameters.address, blockNumber: await node.reader.getBlockNumber().catch(node.unanswered) }
  // Only a deployment of a moment ago can be missing on a node that is a block behind.
  const timeoutMs = parameters.address === undefined ? node.timeoutMs : 0
  await checkCode({ ...node, timeoutMs }, address, logWitness.deployedBytecode).catch(
    fail(`${address} could not be checked`, rpcUrl),
  )
  const logs: LogWitnessDeployment['logs'] = []
  for (const origin of origins) {
    const id = await registerLog(node, { ...parameters, address, origin }).catch((error: unknown) => {
      // Without the address, the next run would deploy a second contract.
      throw new DeployError(`could not register ${origin} at ${address}: ${withoutUrl(describe(error), rpcUrl)}`)
    })
    logs.push({ origin, id })
  }
  return { address, blockNumber, chainId: node.chainId, logs }
}

type RegisterParameters = { address: Address; origin: string; publisher: Address }

async function registerLog(node: Node, { address, origin, publisher }: RegisterParameters): Promise<Hash> {
  const contract = { address, abi: logWitness.abi }
  const originHash = sha256(stringToBytes(origin), 'bytes')
  const id = toLogId(node.wallet.account.address, originHash)
  const actual = await node.reader.readContract({ ...contract, functionName: 'publisher', args: [id] })
  if (isAddressEqual(actual, zeroAddress)) {
    const args = [toHex(originHash), publisher] as const
    await confirm(node, await node.wallet.writeContract({ ...contract, functionName: 'register', args }))
  } else if (!isAddressEqual(actual, publisher)) {
    throw new DeployError(`the publisher of its log ${id} is ${actual}, not ${publisher}`)
  }
  return id
}

type Node = Awaited<ReturnType<typeof connect>>

async function connect(parameters: SendParameters) {
  const { rpcUrl, privateKey, confirmations = 1, timeoutMs = 180_000, pollingIntervalMs = 500 } = parameters
  const transport = http(rpcUrl)
  const reader = createPublicClient({ transport, pollingInterval: pollingIntervalMs })
  const unanswered = fail('the node did not answer', rpcUrl)
  const chainId = await reader.getChainId().catch(unanswered)
  if (parameters.chainId !== undefined && parameters.chainId !== chainId)
    throw new DeployError(`invalid node: expected chain ${parameters.chainId}, got ${chainId}`)
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: 'ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  const wallet = createWalletClient({ account: privateKeyToAccount(privateKey), chain, transport })
  return { rpcUrl, reader, wallet, chainId, unanswered, confirmations, timeoutMs, pollingIntervalMs }
}

async function confirmDeployment(node: Node, sent: Promise<Hash>) {
  const { contractAddress, ...receipt } = await confirm(
    node,
    await sent.catch(fail('the deployment was not sent', node.rpcUrl)),
  )
  if (!contractAddress) throw new DeployError(`${receipt.transactionHash} created no contract`)
  return { ...receipt, address: contractAddress }
}

async function confirm({ rpcUrl, reader, confirmations, timeoutMs }: Node, hash: Hash) {
  const receipt = await reader
    .waitForTransactionReceipt({ hash, confirmations, timeout: timeoutMs })
    .catch(fail(`${hash} was sent but is not confirmed`, rpcUrl))
  if (receipt.status !== 'success') throw new DeployError(`${receipt.transactionHash} reverted`)
  return receipt
}

/** Waits for the code, because a URL can lead to several nodes, and the next one may not have the block yet. */
async function checkCode({ reader, timeoutMs, pollingIntervalMs }: Node, address: Address, expected: Hex) {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const code = await reader.getCode({ address })
    if (code === expected) return
    if (code !== undefined) throw new DeployError(`the code at ${address} is not the compiled contract`)
    if (performance.now() > endMs) throw new DeployError(`no code at ${address}`)
    await new Promise((resolve) => setTimeout(resolve, pollingIntervalMs))
  }
}

/** viem's messages contain the URL and the whole request, so this uses the short ones and removes the parts of the URL. */
function fail(what: string, rpcUrl: string) {
  return (error: unknown): never => {
    if (error instanceof DeployError) throw error
    throw new DeployError(`${what}: ${withoutUrl(describe(error), rpcUrl)}`)
  }
}

function describe(error: unknown): string {
  if (!(error instanceof BaseError)) return error instanceof Error ? error.message : 'unknown error'
  // The short message and the node's own text. Further lines repeat the request.
  const [sentence = ''] = error.shortMessage.split('\n')
  // Some errors lack it, although the type requires it.
  const [words = ''] = (error.details ?? '').split('\n')
  return words === '' || sentence.includes(words) ? sentence : `${sentence} ${words}`
}

function withoutUrl(text: string, rpcUrl: string): string {
  const { username, password, pathname, search } = new URL(rpcUrl)
  const parts = [rpcUrl, username, password, pathname.replace(/^\/+/, ''), ...pathname.split('/'), search.slice(1)]
  const secrets = parts.filter((part) => part.length > 3).toSorted((one, other) => other.length - one.length)
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
}
