import { type TcbStatus, tcbStatuses } from '@countersign/attestation'
import {
  type AnchorSource,
  emptyManifest,
  findManifestFaults,
  type Manifest,
  type ManifestContract,
  parseHttpUrl,
  type VerifyRequest,
} from '@countersign/verify'
import { useMemo, useState } from 'react'
import type { WebConfig } from '../config.ts'

/** What receipts are held against, and where the chain is asked. What is left out trusts nothing. */
export type Trust = {
  manifest: Manifest
  /** Whether simulated evidence is accepted. It is called MOCK in any case. */
  allowMock: boolean
  /** Accepted beside `UpToDate`. */
  tcbStatuses: readonly TcbStatus[]
  node: ChainNode | undefined
}

/** A node, and the chain that it should be of. */
type ChainNode = { rpcUrl: string; chainId: number }

/** What the operator says is to be trusted, and what is wrong with how they say it. */
type OperatorTrust = { trust: Trust; fault: string | undefined }

export const noTrust: Trust = { manifest: emptyManifest, allowMock: false, tcbStatuses: [], node: undefined }

/**
 * The anchors in `config.json`: `trust` is a manifest as the command line takes it, `attestations` a contract and its node.
 * Anchors that cannot be read are no anchors: the page goes on without them, and says so.
 */
export function readOperatorTrust(config: WebConfig): OperatorTrust {
  const { trust: manifest = emptyManifest, allowMock = false, tcbStatuses: statuses = [], attestations } = config
  const faults = findManifestFaults(manifest).map(({ member, fault }) => `${member}: ${fault}`)
  if (typeof allowMock !== 'boolean') faults.push('allowMock: expected true or false')
  if (!Array.isArray(statuses)) faults.push('tcbStatuses: expected a list')
  else if (!statuses.every(isTcbStatus)) faults.push('tcbStatuses: unknown TCB status')
  faults.push(...findContractFaults(attestations))
  const rpcUrl = parseHttpUrl(attestations?.rpcUrl)
  if (attestations !== undefined && rpcUrl === undefined) {
    faults.push('attestations.rpcUrl: expected an http or https URL without credentials')
  }
  if (faults.length > 0) return { trust: noTrust, fault: faults.join('; ') }
  return {
    trust: {
      manifest: withContract(manifest as Manifest, attestations),
      allowMock: allowMock === true,
      tcbStatuses: statuses as TcbStatus[],
      node: attestations === undefined || rpcUrl === undefined ? undefined : { rpcUrl, chainId: attestations.chainId },
    },
    fault: undefined,
  }
}

/** The contract that the node is asked about. */
export function findContract({ manifest, node }: Trust): ManifestContract | undefined {
  return manifest.contracts.find(({ chainId }) => chainId === node?.chainId)
}

/** Whether there is anything to hold code and settings against. */
export function hasAnchors({ manifest }: Trust): boolean {
  const { enclave, coordinator, entropyKeys } = manifest
  return [
    enclave.measurements,
    enclave.configHashes,
    coordinator.measurements,
    coordinator.configHashes,
    coordinator.chips ?? [],
    entropyKeys,
  ].some(({ length }) => length > 0)
}

/** The manifest's own contract on that chain comes first. */
function withContract(manifest: Manifest, attestations: WebConfig['attestations']): Manifest {
  if (attestations === undefined) return manifest
  if (manifest.contracts.some(({ chainId }) => chainId === attestations.chainId)) return manifest
  return { ...manifest, contracts: [...manifest.contracts, toContract(attestations)] }
}

function toContract({ rpcUrl: _, ...contract }: NonNullable<WebConfig['attestations']>): ManifestContract {
  return { ...contract, address: contract.address.toLowerCase() }
}

/** It is a contract as a manifest has it, and a node. A misspelt member would silently be one that is not there. */
function findContractFaults(attestations: WebConfig['attestations']): string[] {
  if (attestations === undefined) return []
  return findManifestFaults({ ...emptyManifest, contracts: [toContract(attestations)] }).map(
    ({ member, fault }) => `${member.replace('contracts[0]', 'attestations')}: ${fault}`,
  )
}

function isTcbStatus(value: unknown): value is TcbStatus {
  return tcbStatuses.some((status) => status === value)
}

export type Anchors = {
  operator: OperatorTrust
  source: AnchorSource
  /** What receipts are held against now. */
  trust: Trust
  /** Whether the chain is asked through the node that the operator names. */
  isOperatorNode: boolean
  chooseOperators(): void
  chooseOwn(trust: Trust): void
}

/** Whose anchors are used. The visitor's replace the operator's: added to them, they could never make a verdict stricter. */
export function useAnchors(config: WebConfig): Anchors {
  const operator = useMemo(() => readOperatorTrust(config), [config])
  const [own, setOwn] = useState<Trust | undefined>(undefined)
  const trust = own ?? operator.trust
  return {
    operator,
    source: own === undefined ? 'operator' : 'visitor',
    trust,
    isOperatorNode: findContract(trust) !== undefined && trust.node?.rpcUrl === operator.trust.node?.rpcUrl,
    chooseOperators: () => setOwn(undefined),
    chooseOwn: setOwn,
  }
}

type ToVerifyRequestParameters = Pick<VerifyRequest, 'subject' | 'collaterals'> & {
  /** Of an off-chain signature. */
  opening?: Uint8Array | undefined
  apiBaseUrl: string
}

/** A subject, held against these anchors. */
export function toVerifyRequest(
  { subject, collaterals = [], opening, apiBaseUrl }: ToVerifyRequestParameters,
  { trust, config }: { trust: Trust; config: WebConfig },
): VerifyRequest {
  const { manifest, allowMock, tcbStatuses, node } = trust
  return {
    subject,
    collaterals,
    ...(opening === undefined ? {} : { opening }),
    manifests: [manifest],
    gateways: config.ipfsGatewayUrl === undefined ? [] : [config.ipfsGatewayUrl],
    api: apiBaseUrl,
    ...(node === undefined || findContract(trust) === undefined ? {} : { rpc: node.rpcUrl, chainId: node.chainId }),
    tcbStatuses,
    allowMock,
  }
}
