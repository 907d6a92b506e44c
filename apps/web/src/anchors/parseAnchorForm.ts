import { isAddress, isPrefixedHex } from '@countersign/protocol'
import {
  emptyManifest,
  findManifestFaults,
  LOG_CONTRACT_FORM,
  type Manifest,
  MEASUREMENT_FORM,
  MINIMUM_TCB_FORM,
  normaliseHex,
  PLATFORM_FORM,
  parseHttpUrl,
  parseLogContractText,
  parseMeasurementText,
  parseMinimumTcbTexts,
  parsePlatformText,
  parseWitnessText,
  WITNESS_FORM,
} from '@countersign/verify'
import type { Trust } from './trust.ts'

type AnchorFieldWords = {
  /** The member of the manifest. */
  member: string
  label: string
  hint: (node: Trust['node']) => string
  /** For a single line. Without it, the field has one item per line. */
  inputMode?: 'text' | 'numeric' | 'url'
}

/** The form's fields. An error belongs to the first field whose member is a prefix of the wrong member. */
const anchorFields = {
  measurements: {
    member: 'enclave.measurements',
    label: 'Key enclave code',
    hint: () =>
      'MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG, 48 bytes of hex each, or 0 for all zeros. If a register is empty, the code counts as unknown.',
  },
  configHashes: {
    member: 'enclave.configHashes',
    label: 'Key enclave settings',
    hint: () => 'Configuration hash, 32 bytes of hex.',
  },
  platforms: {
    member: 'enclave.platforms',
    label: 'Key enclave machines',
    hint: () => 'fmspc:, ppid: or platformInstanceId: followed by hex. If empty, every genuine machine is accepted.',
  },
  coordinatorMeasurements: {
    member: 'coordinator.measurements',
    label: 'Coordinator code',
    hint: () => 'MEASUREMENT:HOST_DATA, 48 and 32 bytes of hex. With only the measurement, the code counts as unknown.',
  },
  coordinatorConfigHashes: {
    member: 'coordinator.configHashes',
    label: 'Coordinator settings',
    hint: () => 'Configuration hash, 32 bytes of hex.',
  },
  coordinatorTcb: {
    member: 'coordinator.minimumTcb',
    label: 'Coordinator minimum TCB',
    hint: () => 'Minimum firmware levels for each AMD product, such as Genoa:bl=10,snp=23,ucode=84.',
  },
  coordinatorChips: {
    member: 'coordinator.chips',
    label: 'Coordinator chips',
    hint: () => 'Chip IDs, 64 bytes of hex. If empty, every chip is accepted except Milan chips, which must be listed.',
  },
  entropyKeys: {
    member: 'entropyKeys',
    label: 'Entropy source key',
    hint: () => 'Ed25519 public key, 32 bytes of hex.',
  },
  witnesses: {
    member: 'log.witnesses',
    label: 'Log witnesses',
    hint: () =>
      'Verifier keys (name+id+key), or 32 bytes of hex. If empty, only the witnesses in the key enclave’s settings count.',
  },
  quorum: {
    member: 'log',
    label: 'Witness quorum',
    hint: () => 'How many of these witnesses must cosign: more than half.',
    inputMode: 'numeric',
  },
  address: {
    member: 'contracts[0].address',
    label: 'Event contract',
    hint: () => 'Contract address. If empty, the chain isn’t checked.',
    inputMode: 'text',
  },
  logContracts: {
    member: 'logContracts',
    label: 'Logs on the chain',
    hint: () =>
      'For proofs with a checkpoint instead of an event. CONTRACT:ID, with the address of LogWitness and the log’s ID. After the log has ended, add : and its last size. If empty, no checkpoint counts.',
  },
  rpcUrl: {
    member: 'contracts[0].rpcUrl',
    label: 'RPC URL',
    hint: (node) =>
      node === undefined
        ? 'Required with a contract.'
        : `If empty: ${node.rpcUrl}. You then rely on the operator’s node for events.`,
    inputMode: 'url',
  },
  chainId: {
    member: 'contracts[0].chainId',
    label: 'Chain ID',
    hint: (node) => (node === undefined ? 'Required with a contract.' : `If empty: ${node.chainId}.`),
    inputMode: 'numeric',
  },
} as const satisfies Record<string, AnchorFieldWords>

export type AnchorField = keyof typeof anchorFields

export type AnchorFields = Record<AnchorField, string>

export const anchorEntries = Object.entries(anchorFields) as [AnchorField, AnchorFieldWords][]

type AnchorFaults = Partial<Record<AnchorField, string>>

export type AnchorFormResult = { trust: Trust; faults: undefined } | { trust: undefined; faults: AnchorFaults }

/** Empty fields trust nothing. Only the node and its chain default to the operator's, because they aren't anchors. */
export function parseAnchorForm(fields: AnchorFields, operator: Trust): AnchorFormResult {
  const faults: AnchorFaults = {}
  const contract = fields.address.trim() === '' ? undefined : parseContract(fields, operator, faults)
  const platforms = toLines(fields.platforms).flatMap((line, index) => {
    const platform = parsePlatformText(line)
    if (platform === undefined) faults.platforms ??= `Line ${index + 1}: expected ${PLATFORM_FORM}.`
    return platform ?? []
  })
  const levels = toLines(fields.coordinatorTcb)
  const minimumTcb = parseMinimumTcbTexts(levels)
  if (minimumTcb === undefined)
    faults.coordinatorTcb = `Expected ${MINIMUM_TCB_FORM} on each line, with each product once.`
  const chips = toLines(fields.coordinatorChips).map(toHex)
  const witnesses = toLines(fields.witnesses).map((line, index) => {
    const key = parseWitnessText(line)
    if (key === undefined) faults.witnesses ??= `Line ${index + 1}: expected ${WITNESS_FORM}.`
    return key ?? line
  })
  const isLogAsked = witnesses.length > 0 || fields.quorum.trim() !== ''
  const logs = toLines(fields.logContracts).flatMap((line, index) => {
    const log = parseLogContractText(line)
    if (log === undefined) faults.logContracts ??= `Line ${index + 1}: expected ${LOG_CONTRACT_FORM}.`
    return log ?? []
  })
  const [log] = logs
  if (logs.some(({ address }) => address !== log?.address)) faults.logContracts ??= 'Enter logs of only one contract.'
  if (fields.logContracts.trim() !== '' && contract === undefined) faults.address = 'Required with logs on the chain.'
  const manifest: Manifest = {
    ...emptyManifest,
    enclave: {
      measurements: toLines(fields.measurements).flatMap((line, index) => {
        const measurement = parseMeasurementText(line, toHex)
        if (measurement === undefined) faults.measurements ??= `Line ${index + 1}: expected ${MEASUREMENT_FORM}.`
        return measurement ?? []
      }),
      configHashes: toLines(fields.configHashes).map(toHex),
      ...(platforms.length === 0 ? {} : { platforms }),
    },
    coordinator: {
      measurements: toLines(fields.coordinatorMeasurements).map((line) => line.split(':').map(toHex).join(':')),
      configHashes: toLines(fields.coordinatorConfigHashes).map(toHex),
      ...(levels.length === 0 ? {} : { minimumTcb: minimumTcb ?? {} }),
      ...(chips.length === 0 ? {} : { chips }),
    },
    entropyKeys: toLines(fields.entropyKeys).map(toHex),
    ...(isLogAsked && { log: { witnesses, quorum: Number(fields.quorum) } }),
    contracts: contract === undefined ? [] : [{ chainId: contract.chainId, address: contract.address }],
    ...(log &&
      contract && {
        logContracts: [{ chainId: contract.chainId, address: log.address, logs: logs.flatMap((one) => one.logs) }],
      }),
  }
  for (const { member, fault } of findManifestFaults(manifest)) {
    const [field] = anchorEntries.find(([, { member: prefix }]) => member.startsWith(prefix)) ?? []
    if (field !== undefined) faults[field] ??= describeFault(member, fault)
  }
  if (Object.keys(faults).length > 0) return { trust: undefined, faults }
  const node = contract && { rpcUrl: contract.rpcUrl, chainId: contract.chainId }
  return { trust: { manifest, allowMock: operator.allowMock, tcbStatuses: [], node }, faults: undefined }
}

function parseContract({ address, rpcUrl, chainId }: AnchorFields, { node }: Trust, faults: AnchorFaults) {
  const url = rpcUrl.trim() === '' ? node?.rpcUrl : parseHttpUrl(rpcUrl.trim())
  const chain = chainId.trim() === '' ? (node?.chainId ?? 0) : Number(chainId)
  if (url === undefined) faults.rpcUrl = 'Enter an http or https URL without credentials.'
  if (!Number.isSafeInteger(chain) || chain < 1) faults.chainId = 'Enter a chain ID, such as 1.'
  const typed = `0x${address.trim().replace(/^0x/, '')}`
  if (isPrefixedHex(typed, 20) && !isAddress(typed))
    faults.address = 'This address has a wrong checksum. Copy it again.'
  return { address: `0x${toHex(address.trim())}`, rpcUrl: url ?? '', chainId: chain }
}

/** Visitors may write hex in upper or lower case and with 0x, so errors don't mention either. */
function describeFault(member: string, fault: string): string {
  const line = /\[(\d+)\]/.exec(member)?.[1]
  const words = fault.replace('0x and ', '').replace('lower-case ', '')
  return line === undefined || member.startsWith('contracts')
    ? `This is ${words}.`
    : `Line ${Number(line) + 1} is ${words}.`
}

/** Returns invalid hex unchanged, so that its error is reported together with the others. */
function toHex(text: string): string {
  return normaliseHex(text) ?? text
}

function toLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
