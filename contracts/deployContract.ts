import {
  type Address,
  BaseError,
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hash,
  type Hex,
  http,
  type PublicClient,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { serviceAttestations } from './abi.ts'

export type DeployParameters = {
  rpcUrl: string
  /** The key of the account that pays. It has no rights over the contract afterwards. */
  privateKey: Hex
  owner: Address
  publisher: Address
  /** Rejects a node of another chain before signing. */
  chainId?: number
  /** Blocks to wait for, including the deployment's own. Default: 1. */
  confirmations?: number
  /** Time limit for the confirmation and for reading the code. Default: three minutes. */
  timeoutMs?: number
  pollingIntervalMs?: number
}

export type Deployment = { address: Address; transactionHash: Hash; blockNumber: bigint; chainId: number }

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
  const { rpcUrl, privateKey, owner, publisher, timeoutMs = 180_000, pollingIntervalMs = 500 } = parameters
  const transport = http(rpcUrl)
  const reader = createPublicClient({ transport, pollingInterval: pollingIntervalMs })
  const { abi, bytecode } = serviceAttestations

  const chainId = await reader.getChainId().catch(fail('the node did not answer', rpcUrl))
  if (parameters.chainId !== undefined && parameters.chainId !== chainId)
    throw new DeployError(`invalid node: expected chain ${parameters.chainId}, got ${chainId}`)

  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: 'ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  const wallet = createWalletClient({ account: privateKeyToAccount(privateKey), chain, transport })
  const transactionHash = await wallet
    .deployContract({ abi, bytecode, args: [owner, publisher] })
    .catch(fail('the deployment was not sent', rpcUrl))

  const receipt = await reader
    .waitForTransactionReceipt({
      hash: transactionHash,
      confirmations: parameters.confirmations ?? 1,
      timeout: timeoutMs,
    })
    .catch(fail(`${transactionHash} was sent but is not confirmed`, rpcUrl))
  const { status, contractAddress, blockNumber } = receipt
  if (status !== 'success' || !contractAddress) throw new DeployError(`${receipt.transactionHash} reverted`)

  await checkDeployment(reader, { address: contractAddress, owner, publisher, timeoutMs, pollingIntervalMs }).catch(
    fail(`${contractAddress} could not be checked`, rpcUrl),
  )
  return { address: contractAddress, transactionHash: receipt.transactionHash, blockNumber, chainId }
}

type CheckParameters = Required<Pick<DeployParameters, 'owner' | 'publisher' | 'timeoutMs' | 'pollingIntervalMs'>> & {
  address: Address
}

async function checkDeployment(reader: PublicClient, parameters: CheckParameters) {
  const { address, owner, publisher } = parameters
  const code = await readCode(reader, parameters)
  if (code !== serviceAttestations.deployedBytecode)
    throw new DeployError(`the code at ${address} is not the compiled contract`)
  const contract = { address, abi: serviceAttestations.abi }
  const [actualOwner, actualPublisher] = await Promise.all([
    reader.readContract({ ...contract, functionName: 'owner' }),
    reader.readContract({ ...contract, functionName: 'publisher' }),
  ])
  if (actualOwner.toLowerCase() !== owner.toLowerCase())
    throw new DeployError(`the owner of ${address} is ${actualOwner}, not ${owner}`)
  if (actualPublisher.toLowerCase() !== publisher.toLowerCase())
    throw new DeployError(`the publisher of ${address} is ${actualPublisher}, not ${publisher}`)
}

/** A URL can lead to several nodes, and the next one may not have the block yet. */
async function readCode(reader: PublicClient, { address, timeoutMs, pollingIntervalMs }: CheckParameters) {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const code = await reader.getCode({ address })
    if (code !== undefined) return code
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
