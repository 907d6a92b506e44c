import { isAddress, isPrefixedHex } from '@countersign/protocol'
import {
  emptyManifest,
  findManifestFaults,
  type Manifest,
  MEASUREMENT_FORM,
  MINIMUM_TCB_FORM,
  normaliseHex,
  PLATFORM_FORM,
  parseHttpUrl,
  parseMeasurementText,
  parseMinimumTcbTexts,
  parsePlatformText,
  parseWitnessText,
  WITNESS_FORM,
} from '@countersign/verify'
import type { Trust } from './trust.ts'

type AnchorFieldWords = {
  /** Where in a manifest it stands. */
  member: string
  label: string
  /** `node` is the operator's. */
  hint: (node: Trust['node']) => string
  /** Of one line; a list has one item a line. */
  inputMode?: 'text' | 'numeric' | 'url'
}

/** What a visitor can type. A member is found by the first prefix that fits. */
const anchorFields = {
  measurements: {
    member: 'enclave.measurements',
    label: 'Code of the key enclave',
    hint: () =>
      'MRTD:RTMR0:RTMR1:RTMR2:RTMR3:MRCONFIGID:MROWNER:MROWNERCONFIG, 48 bytes of hex each, 0 for one of zeros. A register left empty leaves the code unknown.',
  },
  configHashes: {
    member: 'enclave.configHashes',
    label: 'Settings of the key enclave',
    hint: () => 'Its configuration hash, 32 bytes of hex.',
  },
  platforms: {
    member: 'enclave.platforms',
    label: 'Machines of the key enclave',
    hint: () => 'Each as fmspc:, ppid: or platformInstanceId: and its hex. Left empty, every genuine machine will do.',
  },
  coordinatorMeasurements: {
    member: 'coordinator.measurements',
    label: 'Code of the coordinator',
    hint: () => 'MEASUREMENT:HOST_DATA, 48 and 32 bytes of hex. The measurement alone leaves the code unknown.',
  },
  coordinatorConfigHashes: {
    member: 'coordinator.configHashes',
    label: 'Settings of the coordinator',
    hint: () => 'Its configuration hash, 32 bytes of hex.',
  },
  coordinatorTcb: {
    member: 'coordinator.minimumTcb',
    label: 'Patch levels of the coordinator',
    hint: () => 'The least ones of its firmware, by product of AMD, such as Genoa:bl=10,snp=23,ucode=84.',
  },
  coordinatorChips: {
    member: 'coordinator.chips',
    label: 'Chips of the coordinator',
    hint: () => 'Their ids, 64 bytes of hex. Left empty: any, but a Milan passes only if it is listed.',
  },
  entropyKeys: {
    member: 'entropyKeys',
    label: 'Key of the entropy source',
    hint: () => 'Ed25519, 32 bytes of hex.',
  },
  witnesses: {
    member: 'log.witnesses',
    label: 'Witnesses of the log',
    hint: () =>
      'Their keys as they state them, name+id+key, or 32 bytes of hex. Left empty, those of the key enclave’s settings count alone.',
  },
  quorum: {
    member: 'log',
    label: 'How many of them must have cosigned',
    hint: () => 'More than half of those that you name.',
    inputMode: 'numeric',
  },
  address: {
    member: 'contracts[0].address',
    label: 'Contract with the events',
    hint: () => 'Its address. Left empty, the chain is not asked.',
    inputMode: 'text',
  },
  rpcUrl: {
    member: 'contracts[0].rpcUrl',
    label: 'Node of that chain',
    hint: (node) =>
      node === undefined
        ? 'Left empty: none is set here.'
        : `Left empty: ${node.rpcUrl}, and the operator’s node decides whether there is an event.`,
    inputMode: 'url',
  },
  chainId: {
    member: 'contracts[0].chainId',
    label: 'Number of that chain',
    hint: (node) => `Left empty: ${node?.chainId ?? 'none is set here'}.`,
    inputMode: 'numeric',
  },
} as const satisfies Record<string, AnchorFieldWords>

export type AnchorField = keyof typeof anchorFields

/** What the visitor typed. */
export type AnchorFields = Record<AnchorField, string>

export const anchorEntries = Object.entries(anchorFields) as [AnchorField, AnchorFieldWords][]

type AnchorFaults = Partial<Record<AnchorField, string>>

export type AnchorFormResult = { trust: Trust; faults: undefined } | { trust: undefined; faults: AnchorFaults }

/** An empty field trusts nothing; only the node and its chain fall back to the operator's, since they are no anchors. */
export function parseAnchorForm(fields: AnchorFields, operator: Trust): AnchorFormResult {
  const faults: AnchorFaults = {}
  const contract = fields.address.trim() === '' ? undefined : parseContract(fields, operator, faults)
  const platforms = toLines(fields.platforms).flatMap((line, index) => {
    const platform = parsePlatformText(line)
    if (platform === undefined) faults.platforms ??= `Line ${index + 1} is not ${PLATFORM_FORM}.`
    return platform ?? []
  })
  const levels = toLines(fields.coordinatorTcb)
  const minimumTcb = parseMinimumTcbTexts(levels)
  if (minimumTcb === undefined) faults.coordinatorTcb = `Each line is ${MINIMUM_TCB_FORM}; each product stands once.`
  const chips = toLines(fields.coordinatorChips).map(toHex)
  const witnesses = toLines(fields.witnesses).map((line, index) => {
    const key = parseWitnessText(line)
    if (key === undefined) faults.witnesses ??= `Line ${index + 1} is not ${WITNESS_FORM}.`
    return key ?? line
  })
  const isLogAsked = witnesses.length > 0 || fields.quorum.trim() !== ''
  const manifest: Manifest = {
    ...emptyManifest,
    enclave: {
      measurements: toLines(fields.measurements).flatMap((line, index) => {
        const measurement = parseMeasurementText(line, toHex)
        if (measurement === undefined) faults.measurements ??= `Line ${index + 1} is not ${MEASUREMENT_FORM}.`
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
  if (url === undefined) faults.rpcUrl = 'This is not an http or https URL without credentials.'
  if (!Number.isSafeInteger(chain) || chain < 1) faults.chainId = 'This is not the number of a chain.'
  const typed = `0x${address.trim().replace(/^0x/, '')}`
  if (isPrefixedHex(typed, 20) && !isAddress(typed))
    faults.address = 'The checksum of this address is wrong. Copy it again.'
  return { address: `0x${toHex(address.trim())}`, rpcUrl: url ?? '', chainId: chain }
}

/** Visitors may write hex in either case and with 0x, so that faults do not speak of either. */
function describeFault(member: string, fault: string): string {
  const line = /\[(\d+)\]/.exec(member)?.[1]
  const words = fault.replace('0x and ', '').replace('lower-case ', '')
  return line === undefined || member.startsWith('contracts')
    ? `This is ${words}.`
    : `Line ${Number(line) + 1} is ${words}.`
}

/** What is no hex stays as it is, for its fault to be found with all others. */
function toHex(text: string): string {
  return normaliseHex(text) ?? text
}

function toLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
