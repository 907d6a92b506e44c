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
  manifests: readonly Manifest[]
}

/** The node, and the contract on its chain: the one that the reader names, or the manifest's. */
export async function openChain(
  deps: { fetchBytes: FetchBytes },
  { rpc: url, contract, manifests }: OpenChainParameters,
): Promise<Chain> {
  const rpc = createRpc(deps, { url })
  const listed = manifests.flatMap(({ contracts }) => contracts)
  return createChain(rpc, await chooseContract(rpc, { contract, listed }))
}

async function chooseContract(
  rpc: Rpc,
  { contract, listed }: { contract: string | undefined; listed: readonly ManifestContract[] },
): Promise<CreateChainParameters> {
  const last = listed.at(-1)
  if (last === undefined) {
    if (contract === undefined) throw needsContract('no manifest names one')
    return { contract, fromBlock: 0 }
  }
  const chainId = await getChainId(rpc)
  // The steps that ask the chain say that this node does not answer.
  if (chainId === undefined) return { contract: contract ?? last.address, fromBlock: 0, chainId: last.chainId }
  const onChain = listed.filter((entry) => entry.chainId === chainId)
  const entry = contract === undefined ? onChain.at(-1) : onChain.find(({ address }) => address === contract)
  const address = contract ?? entry?.address
  if (address === undefined) throw needsContract(`the manifest names none on chain ${chainId} of ${rpc.host}`)
  return { contract: address, fromBlock: entry?.fromBlock ?? 0, chainId }
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
  return new VerifierError('invalid_arguments', '--rpc needs --contract', { details })
}
