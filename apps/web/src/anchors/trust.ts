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

/** Anchors for receipts and the node for chain queries. Anything omitted is untrusted. */
export type Trust = {
  manifest: Manifest
  /** Whether simulated evidence is accepted. It's marked MOCK either way. */
  allowMock: boolean
  /** Accepted besides `UpToDate`. */
  tcbStatuses: readonly TcbStatus[]
  node: ChainNode | undefined
}

/** A node and its expected chain. */
type ChainNode = { rpcUrl: string; chainId: number }

/** The operator's anchors, and the errors in them. */
type OperatorTrust = { trust: Trust; fault: string | undefined }

export const noTrust: Trust = { manifest: emptyManifest, allowMock: false, tcbStatuses: [], node: undefined }

/**
 * Reads the anchors in `config.json`: `trust` is a manifest in the command line's format, `attestations` a contract and its node. If they
 * are invalid, the page ignores them and shows why.
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

export function findContract({ manifest, node }: Trust): ManifestContract | undefined {
  return manifest.contracts.find(({ chainId }) => chainId === node?.chainId)
}

/** Whether there are any anchors for code or settings. */
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

/** Adds the contract from `attestations` unless the manifest has one on that chain. */
function withContract(manifest: Manifest, attestations: WebConfig['attestations']): Manifest {
  if (attestations === undefined) return manifest
  if (manifest.contracts.some(({ chainId }) => chainId === attestations.chainId)) return manifest
  return { ...manifest, contracts: [...manifest.contracts, toContract(attestations)] }
}

function toContract({ rpcUrl: _, ...contract }: NonNullable<WebConfig['attestations']>): ManifestContract {
  return { ...contract, address: contract.address.toLowerCase() }
}

/** Checks `attestations` like a manifest's contract, so a misspelled member is reported instead of ignored. */
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
  /** The anchors in use. */
  trust: Trust
  /** Whether chain queries go to the operator's node. */
  isOperatorNode: boolean
  selectOperator(): void
  selectOwn(trust: Trust): void
}

/** Returns the anchors in use. The visitor's anchors replace the operator's: if they were added, they could only make verdicts weaker. */
export function useAnchors(config: WebConfig): Anchors {
  const operator = useMemo(() => readOperatorTrust(config), [config])
  const [own, setOwn] = useState<Trust | undefined>(undefined)
  const trust = own ?? operator.trust
  return {
    operator,
    source: own === undefined ? 'operator' : 'visitor',
    trust,
    isOperatorNode: findContract(trust) !== undefined && trust.node?.rpcUrl === operator.trust.node?.rpcUrl,
    selectOperator: () => setOwn(undefined),
    selectOwn: setOwn,
  }
}

type ToVerifyRequestParameters = Pick<VerifyRequest, 'subject' | 'collaterals'> & {
  /** The opening of an off-chain signature. */
  opening?: Uint8Array | undefined
  apiBaseUrl: string
}

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
