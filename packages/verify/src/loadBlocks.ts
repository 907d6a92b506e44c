import { type AttestationReceiptV2, MAX_BLOCK_BYTES, ServiceError } from '@countersign/protocol'
import { type GivenBlocks, parseBlock } from '@countersign/receipt'
import { type FindBlockDeps, findBlock } from './getBlock.ts'

export type LoadedBlocks = {
  blocks: GivenBlocks
  /** CID of the collateral, once the release is there to name it. */
  collateral: string | undefined
  problems: readonly string[]
}

/**
 * The blocks that a receipt of version 2 names: release, batch and a vault's policy, and through the release the coordinator. One that is not to be had
 * is left out, and its step says so; one that its CID names and that is malformed is handed on, for the step to fail.
 */
export async function loadBlocks(
  deps: FindBlockDeps,
  { receipt, gateways }: { receipt: AttestationReceiptV2; gateways: readonly string[] },
): Promise<LoadedBlocks> {
  const problems: string[] = []
  const load = async (name: keyof GivenBlocks, cid: string) => {
    const found = await findBlock(deps, { cid, gateways, maxBytes: MAX_BLOCK_BYTES })
    problems.push(...found.problems.map((problem) => `the ${name} block: ${problem}`))
    return found.bytes
  }
  const [release, batch, policy] = await Promise.all([
    load('release', receipt.coordinator.release),
    load('batch', receipt.signer.batch),
    receipt.policy === undefined ? undefined : load('policy', receipt.policy),
  ])
  const named = release && readRelease(release)
  const coordinator = named && (await load('coordinator', named.coordinator))
  return {
    blocks: {
      ...(release && { release }),
      ...(batch && { batch }),
      ...(coordinator && { coordinator }),
      ...(policy && { policy }),
    },
    collateral: named?.collateral,
    problems,
  }
}

function readRelease(bytes: Uint8Array) {
  try {
    return parseBlock('release', bytes)
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
