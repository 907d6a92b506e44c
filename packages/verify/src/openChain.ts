import { type Chain, type CreateChainParameters, createChain } from './createChain.ts'
import { createRpc, type Rpc } from './createRpc.ts'
import { VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import type { Manifest, ManifestContract } from './parseManifest.ts'

export type OpenChainParameters = {
  /** A node of the chain that has the events. */
  rpc: string
  /** The contract on that chain, where the reader names it apart from a manifest. */
  contract: string | undefined
  /** The chain that the node must be of. */
  chainId: number | undefined
  manifests: readonly Manifest[]
}

/**
 * The node, and the contract on its chain: the one that the reader names, or the manifest's. A node of another chain gives a
 * chain that cannot be asked, which the steps then say. Throws only where nothing names a contract.
 */
export async function openChain(
  deps: { fetchBytes: FetchBytes },
  { rpc: url, manifests, ...wanted }: OpenChainParameters,
): Promise<Chain> {
  const rpc = createRpc(deps, { url })
  const listed = manifests.flatMap(({ contracts }) => contracts)
  return createChain(rpc, await chooseContract(rpc, { ...wanted, listed }))
}

/** The contract that is asked about, where it begins, and the chain that the node must be of. */
export async function chooseContract(
  rpc: Rpc,
  parameters: Pick<OpenChainParameters, 'contract' | 'chainId'> & { listed: readonly ManifestContract[] },
): Promise<CreateChainParameters> {
  const { contract, listed } = parameters
  const last = listed.at(-1)
  if (last === undefined) {
    if (contract === undefined) throw needsContract('no manifest names one')
    return { contract, fromBlock: 0, ...(parameters.chainId === undefined ? {} : { chainId: parameters.chainId }) }
  }
  // Only where the reader does not say which chain it should be, the node's own answer chooses among the contracts.
  const chainId = parameters.chainId ?? (await getChainId(rpc))
  const onChain = listed.filter((entry) => entry.chainId === chainId)
  const entry = contract === undefined ? onChain.at(-1) : onChain.find(({ address }) => address === contract)
  const address = contract ?? entry?.address
  if (chainId !== undefined && address !== undefined) {
    return { contract: address, fromBlock: entry?.fromBlock ?? 0, chainId }
  }
  // The steps that ask the chain say that this node does not answer, or is of another chain.
  return { contract: address ?? last.address, fromBlock: 0, chainId: last.chainId }
}

async function getChainId(rpc: Rpc): Promise<number | undefined> {
  try {
    return await rpc.getChainId()
  } catch (error) {
    if (error instanceof VerifierError) return undefined
    throw error
  }
}

function needsContract(details: string) {
  return new VerifierError('invalid_arguments', 'a node needs a contract to ask about', { details, need: 'contract' })
}
