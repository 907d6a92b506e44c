import { type TcbStatus, type TdMeasurement, tcbStatuses } from '@countersign/attestation'

/**
 * What receipts are held against: what the CLI takes as options, in JSON. It stands under `trust` in the operator's
 * `/config.json`; a visitor can enter their own instead. A member that is left out trusts nothing.
 */
export type Trust = {
  /** Whether simulated evidence is shown as MOCK. Without it, such evidence fails like any forgery. */
  allowMock: boolean
  /** `MRTD:RTMR0:RTMR1:RTMR2[:RTMR3]`, as `--measurement` takes them. */
  measurements: readonly string[]
  configHashes: readonly string[]
  coordinatorMeasurements: readonly string[]
  coordinatorConfigHashes: readonly string[]
  entropyKeys: readonly string[]
  /** Accepted beside `UpToDate`. */
  tcbStatuses: readonly TcbStatus[]
  contract: ContractAnchor | undefined
}

/** Where the events are, and a node that has them. */
export type ContractAnchor = { address: string; chainId: number; rpcUrl: string; fromBlock: number }

export type TrustFault = { member: string; fault: string }

/** All that is wrong with what should be trusted, at once. */
export class TrustError extends Error {
  override name = 'TrustError'
  readonly faults: readonly TrustFault[]
  constructor(faults: readonly TrustFault[]) {
    super(faults.map(({ member, fault }) => `${member}: ${fault}`).join('; '))
    this.faults = faults
  }
}

export const noTrust: Trust = {
  allowMock: false,
  measurements: [],
  configHashes: [],
  coordinatorMeasurements: [],
  coordinatorConfigHashes: [],
  entropyKeys: [],
  tcbStatuses: [],
  contract: undefined,
}

/** MRTD alone, with all registers, or without RTMR3, as the CLI has it. */
const REGISTER_COUNTS: readonly number[] = [1, 4, 5]
const MEASUREMENT_FORM = 'not MRTD, or MRTD:RTMR0:RTMR1:RTMR2 with or without :RTMR3, 48 bytes of hex each'

type Fault = (member: string, fault: string) => void
type Parse<Value> = (value: unknown) => Value | undefined

/**
 * Reads `trust` strictly: a misspelt member would silently be an anchor that is not there. Throws a `TrustError` with every
 * fault. What it returns can be parsed again.
 *
 * @example
 * parseTrust({ allowMock: true, entropyKeys: ['18ed…'] })
 */
export function parseTrust(value: unknown): Trust {
  if (value === undefined || value === null) return noTrust
  if (!isObject(value)) throw new TrustError([{ member: 'trust', fault: 'not an object' }])
  const faults: TrustFault[] = []
  const fault: Fault = (member, text) => faults.push({ member, fault: text })
  for (const member of Object.keys(value)) {
    if (!Object.hasOwn(noTrust, member)) fault(member, 'unknown member')
  }
  const list = <Item>(member: keyof Trust, parse: Parse<Item>, what: string): readonly Item[] =>
    parseList(value[member], { member, parse, what, fault })

  const { allowMock = false } = value
  if (typeof allowMock !== 'boolean') fault('allowMock', 'not true or false')
  const trust: Trust = {
    allowMock: allowMock === true,
    measurements: list('measurements', parseMeasurement, MEASUREMENT_FORM),
    configHashes: list('configHashes', hexOf(32), 'not 32 bytes of hex'),
    coordinatorMeasurements: list('coordinatorMeasurements', hexOf(48), 'not 48 bytes of hex'),
    coordinatorConfigHashes: list('coordinatorConfigHashes', hexOf(32), 'not 32 bytes of hex'),
    entropyKeys: list('entropyKeys', hexOf(32), 'not 32 bytes of hex'),
    tcbStatuses: list('tcbStatuses', parseStatus, 'not a TCB status of Intel'),
    contract: parseContract(value.contract, fault),
  }
  if (faults.length > 0) throw new TrustError(faults)
  return trust
}

/** A measurement as `checkReceipt` takes it. */
export function toMeasurement(text: string): TdMeasurement {
  const [mrTd = '', ...rtmrs] = text.split(':')
  return { mrTd, ...Object.fromEntries(rtmrs.map((rtmr, index) => [`rtmr${index}`, rtmr])) }
}

/** Whether there is anything to hold code and settings against. */
export function hasAnchors(trust: Trust): boolean {
  const { measurements, configHashes, coordinatorMeasurements, coordinatorConfigHashes, entropyKeys } = trust
  return [measurements, configHashes, coordinatorMeasurements, coordinatorConfigHashes, entropyKeys].some(
    ({ length }) => length > 0,
  )
}

function parseList<Item>(
  value: unknown,
  { member, parse, what, fault }: { member: string; parse: Parse<Item>; what: string; fault: Fault },
): Item[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) {
    fault(member, 'not a list')
    return []
  }
  return value.flatMap((item, index) => {
    const parsed = parse(item)
    if (parsed !== undefined) return [parsed]
    fault(`${member}[${index}]`, what)
    return []
  })
}

/** People copy hex in either case, with and without 0x; inside there is one spelling. */
function hexOf(bytes: number): Parse<string> {
  const pattern = new RegExp(`^[0-9a-f]{${2 * bytes}}$`)
  return (value) => {
    if (typeof value !== 'string') return undefined
    const hex = value.trim().replace(/^0x/i, '').toLowerCase()
    return pattern.test(hex) ? hex : undefined
  }
}

const parseMeasurement: Parse<string> = (value) => {
  if (typeof value !== 'string') return undefined
  const parts = value.split(':').map(hexOf(48))
  return REGISTER_COUNTS.includes(parts.length) && parts.every((part) => part !== undefined)
    ? parts.join(':')
    : undefined
}

const parseStatus: Parse<TcbStatus> = (value) => tcbStatuses.find((status) => status === value)

function parseContract(value: unknown, fault: Fault): ContractAnchor | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value)) {
    fault('contract', 'not an object')
    return undefined
  }
  const { address, chainId, rpcUrl, fromBlock = 0, ...others } = value
  for (const name of Object.keys(others)) fault(`contract.${name}`, 'unknown member')
  const hex = hexOf(20)(address)
  if (hex === undefined) fault('contract.address', 'not 20 bytes of hex')
  if (!isNatural(chainId) || chainId === 0) fault('contract.chainId', 'not the number of a chain')
  const url = parseHttpUrl(rpcUrl)
  if (url === undefined) fault('contract.rpcUrl', 'not an http or https URL without credentials')
  if (!isNatural(fromBlock)) fault('contract.fromBlock', 'not the number of a block')
  return { address: `0x${hex}`, chainId: chainId as number, rpcUrl: url ?? '', fromBlock: fromBlock as number }
}

/** An address on the web that may be asked, or shown as a link. */
export function parseHttpUrl(value: unknown): string | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return url.username === '' && url.password === '' ? url.href : undefined
}

function isNatural(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
