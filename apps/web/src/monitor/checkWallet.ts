import type { Hex } from '@countersign/sdk'
import { type MonitorDeps, type MonitorReport, monitorWallet, VerifierError } from '@countersign/verify'
import { findContract, readOperatorTrust } from '../anchors/trust.ts'
import type { WebConfig } from '../config.ts'
import { fetchBytes } from '../worker/pageFetch.ts'

/** In one look; the next goes on from there. */
const MAX_RECEIPTS = 50
/** Of some 90 bytes each, tiles with them: a log that is larger is for the command line. */
const MAX_LOG_ENTRIES = 100_000

export type CheckWalletDeps = Pick<MonitorDeps, 'memory' | 'logs' | 'onProgress'> & { config: WebConfig }

/** Looks at a wallet with the anchors and nodes of this site. */
export async function checkWallet({ config, ...deps }: CheckWalletDeps, address: Hex): Promise<MonitorReport> {
  const { trust, fault } = readOperatorTrust(config)
  const { manifest, node, allowMock, tcbStatuses } = trust
  const contract = findContract(trust)
  if (node === undefined || contract === undefined) {
    throw new VerifierError(
      'invalid_arguments',
      'this site names no contract and node',
      fault ? { details: fault } : {},
    )
  }
  // A site of a well-known chain need not name a node of it; that of the contract may be one.
  const rpc = config.rpcUrl ?? (node.chainId === config.chainId ? node.rpcUrl : undefined)
  if (rpc === undefined) throw new VerifierError('invalid_arguments', 'this site names no node of the wallet’s chain')
  return monitorWallet(
    { fetchBytes, now: () => new Date(), ...deps },
    {
      ...{ address: address.toLowerCase(), rpc, chainId: config.chainId, eventsRpc: node.rpcUrl },
      ...{ manifests: [manifest], contract: contract.address, allowMock, tcbStatuses, api: config.apiBaseUrl },
      gateways: config.ipfsGatewayUrl === undefined ? [] : [config.ipfsGatewayUrl],
      ...{ log: config.apiBaseUrl, maxReceipts: MAX_RECEIPTS, maxLogEntries: MAX_LOG_ENTRIES },
    },
  )
}
