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

/** What the visitor typed. Lists have one item a line. */
export type AnchorFields = Record<AnchorField, string>

export type AnchorField = ListField | 'quorum' | 'address' | 'rpcUrl' | 'chainId'

type ListField =
  | 'measurements'
  | 'configHashes'
  | 'platforms'
  | 'coordinatorMeasurements'
  | 'coordinatorConfigHashes'
  | 'coordinatorTcb'
  | 'coordinatorChips'
  | 'entropyKeys'
  | 'witnesses'

export type AnchorFaults = Partial<Record<AnchorField, string>>

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
    const field = members.find(([prefix]) => member.startsWith(prefix))?.[1]
    if (field !== undefined) faults[field] ??= describeFault(member, fault)
  }
  if (Object.keys(faults).length > 0) return { trust: undefined, faults }
  const node = contract && { rpcUrl: contract.rpcUrl, chainId: contract.chainId }
  return { trust: { manifest, allowMock: operator.allowMock, tcbStatuses: [], node }, faults: undefined }
}

const members: [prefix: string, field: AnchorField][] = [
  ['enclave.measurements', 'measurements'],
  ['enclave.configHashes', 'configHashes'],
  ['coordinator.measurements', 'coordinatorMeasurements'],
  ['coordinator.configHashes', 'coordinatorConfigHashes'],
  ['coordinator.minimumTcb', 'coordinatorTcb'],
  ['coordinator.chips', 'coordinatorChips'],
  ['entropyKeys', 'entropyKeys'],
  ['log.witnesses', 'witnesses'],
  ['log', 'quorum'],
  ['contracts[0].address', 'address'],
  ['contracts[0].chainId', 'chainId'],
]

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
