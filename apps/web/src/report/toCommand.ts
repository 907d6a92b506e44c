import {
  type AnchorSource,
  orderGateways,
  toLogContractTexts,
  toMeasurementText,
  toMinimumTcbTexts,
  toPlatformText,
} from '@countersign/verify'
import { findContract, type Trust } from '../anchors/trust.ts'

export type CommandSubject =
  | { kind: 'proof'; slug: string; apiBaseUrl: string }
  | { kind: 'cid'; cid: string; gateway: string }
  | { kind: 'files'; receipt: string; collateral: string | undefined; gateway: string | undefined }

type ToCommandParameters = {
  trust: Trust
  anchorSource: AnchorSource
  /** For a service on the visitor's own machine: the visitor is the operator. */
  localManifest?: string | undefined
}

/**
 * Returns the command for the same check in an independent copy of the repository. It includes the visitor's anchors but not the
 * operator's, which would make the check depend on the operator.
 */
export function toCommand(
  subject: CommandSubject,
  { trust, anchorSource, localManifest }: ToCommandParameters,
): string {
  const { enclave, coordinator, entropyKeys, log, logContracts = [] } = trust.manifest
  const contract = findContract(trust)
  const chain =
    contract === undefined || trust.node === undefined
      ? []
      : ['--rpc', trust.node.rpcUrl, '--contract', contract.address]
  const own: [string, readonly string[]][] =
    anchorSource === 'operator'
      ? []
      : [
          ['--measurement', enclave.measurements.map(toMeasurementText)],
          ['--config-hash', enclave.configHashes],
          ['--platform', (enclave.platforms ?? []).map(toPlatformText)],
          ['--coordinator-measurement', coordinator.measurements],
          ['--coordinator-config-hash', coordinator.configHashes],
          ['--coordinator-tcb', toMinimumTcbTexts(coordinator.minimumTcb ?? {})],
          ['--coordinator-chip', coordinator.chips ?? []],
          ['--entropy-key', entropyKeys],
          ['--witness', log?.witnesses ?? []],
          ['--quorum', log === undefined ? [] : [String(log.quorum)]],
          ['--log-contract', toLogContractTexts(logContracts)],
        ]
  const local =
    localManifest === undefined || anchorSource === 'visitor'
      ? []
      : ['--manifest', toPath(localManifest), ...(trust.allowMock ? ['--allow-mock'] : [])]
  const anchors = [...own.flatMap(([flag, values]) => values.flatMap((value) => [flag, value])), ...local]
  return ['npm', 'run', 'verify', '--', ...toWords(subject), ...chain, ...anchors].map(quote).join(' ')
}

function toWords(subject: CommandSubject): string[] {
  switch (subject.kind) {
    case 'proof':
      return [subject.slug, '--api', subject.apiBaseUrl]
    case 'cid':
      return [subject.cid, '--ipfs', subject.gateway]
    case 'files': {
      const { receipt, collateral, gateway } = subject
      return [
        toPath(receipt),
        ...(collateral === undefined ? [] : ['--collateral', toPath(collateral)]),
        ...(collateral !== undefined || gateway === undefined ? [] : ['--ipfs', gateway]),
      ]
    }
  }
}

/** A file name must not look like an option. */
function toPath(name: string): string {
  return name.startsWith('-') ? `./${name}` : name
}

/** Quotes for the shell, because parts of the command come from a link or the service. */
function quote(word: string): string {
  return /^[A-Za-z0-9_./:=@%+-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`
}

/** Returns the gateways in order of preference. The site's gateway counts as the reader's own. */
export function toGateways(parameters: {
  apiBaseUrl: string
  ipfsGatewayUrl?: string
  ipfsUrl?: string | null
}): string[] {
  const { apiBaseUrl, ipfsGatewayUrl, ipfsUrl } = parameters
  return orderGateways({ own: ipfsGatewayUrl === undefined ? [] : [ipfsGatewayUrl], ipfsUrl, api: apiBaseUrl })
}
