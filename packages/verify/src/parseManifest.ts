import type { SnpProduct, SnpTcb, TdMeasurement } from '@countersign/attestation'
import { VerifierError } from './errors.ts'

export const MANIFEST_VERSION = 'countersign-manifest/1'

/** What a release publishes about itself, for strangers to hold receipts against. All hex is lower case. */
export type Manifest = {
  version: typeof MANIFEST_VERSION
  enclave: {
    measurements: readonly TdMeasurement[]
    configHashes: readonly string[]
    /** Runtime events by name, for measurements that leave RTMR3 open. */
    events?: Readonly<Record<string, readonly string[]>>
    /** Collateral of an older evaluation by Intel is refused. */
    minimumTcbEvaluationDataNumber?: number
  }
  coordinator: {
    measurements: readonly string[]
    configHashes: readonly string[]
    /** Patch levels by product of AMD; a product that is not named is refused. */
    minimumTcb?: MinimumTcb
  }
  entropyKeys: readonly string[]
  /** At most one on each chain. */
  contracts: readonly ManifestContract[]
}

export type MinimumTcb = Readonly<Partial<Record<SnpProduct, Readonly<Partial<SnpTcb>>>>>

export type ManifestContract = { chainId: number; address: string; fromBlock?: number }

const REGISTERS = ['rtmr0', 'rtmr1', 'rtmr2', 'rtmr3', 'mrConfigId', 'mrOwner', 'mrOwnerConfig'] as const
export const SNP_PRODUCTS = ['Milan', 'Genoa', 'Turin'] as const satisfies SnpProduct[]
export const SNP_TCB_PARTS = ['fmc', 'bl', 'tee', 'snp', 'ucode'] as const satisfies (keyof SnpTcb)[]

/** Reads a manifest strictly: a misspelt member would silently be an anchor that is not there. All faults are told at once. */
export function parseManifest(text: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw malformed(['not JSON'])
  }
  const faults: string[] = []
  checkManifest(value, (path, fault) => faults.push(`${path}: ${fault}`))
  if (faults.length > 0) throw malformed(faults)
  return value as Manifest
}

type Fault = (path: string, fault: string) => void
type Check = (value: unknown, path: string, fault: Fault) => void

function checkManifest(value: unknown, fault: Fault) {
  const list = (check: Check): Check => listOf(check)
  checkObject(value, 'manifest', fault, {
    version: (version, path) => {
      if (version !== MANIFEST_VERSION) fault(path, `not ${MANIFEST_VERSION}`)
    },
    enclave: (enclave, path) =>
      checkObject(
        enclave,
        path,
        fault,
        { measurements: list(checkMeasurement), configHashes: list(hexOf(32)) },
        { events: checkEvents, minimumTcbEvaluationDataNumber: checkNatural },
      ),
    coordinator: (coordinator, path) =>
      checkObject(
        coordinator,
        path,
        fault,
        { measurements: list(hexOf(48)), configHashes: list(hexOf(32)) },
        { minimumTcb: checkMinimumTcb },
      ),
    entropyKeys: list(hexOf(32)),
    contracts: checkContracts,
  })
}

function checkMeasurement(value: unknown, path: string, fault: Fault) {
  const optional = Object.fromEntries(REGISTERS.map((name) => [name, hexOf(48)]))
  checkObject(value, path, fault, { mrTd: hexOf(48) }, optional)
}

function checkEvents(value: unknown, path: string, fault: Fault) {
  if (!isObject(value)) return fault(path, 'not an object')
  for (const [name, payloads] of Object.entries(value)) {
    listOf(checkPayload)(payloads, `${path}.${name}`, fault)
    if (Array.isArray(payloads) && payloads.length === 0) fault(`${path}.${name}`, 'an empty list')
  }
}

function checkPayload(value: unknown, path: string, fault: Fault) {
  if (typeof value !== 'string' || !/^(?:[0-9a-f]{2})*$/.test(value)) fault(path, 'not lower-case hex')
}

function checkMinimumTcb(value: unknown, path: string, fault: Fault) {
  const parts = Object.fromEntries(SNP_TCB_PARTS.map((part) => [part, checkByte]))
  const checkProduct: Check = (product, at) => checkObject(product, at, fault, {}, parts)
  checkObject(value, path, fault, {}, Object.fromEntries(SNP_PRODUCTS.map((product) => [product, checkProduct])))
  // It would refuse every coordinator, which nobody can mean.
  if (isObject(value) && Object.keys(value).length === 0) fault(path, 'names no product')
}

function checkByte(value: unknown, path: string, fault: Fault) {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 255) {
    fault(path, 'not a number from 0 to 255')
  }
}

function checkNatural(value: unknown, path: string, fault: Fault) {
  if (!Number.isSafeInteger(value) || (value as number) < 0) fault(path, 'not a natural number')
}

function checkContracts(value: unknown, path: string, fault: Fault) {
  const checkAddress: Check = (address, at) => {
    if (typeof address !== 'string' || !/^0x[0-9a-f]{40}$/.test(address)) {
      fault(at, 'not 0x and 20 bytes of lower-case hex')
    }
  }
  listOf((contract, at) =>
    checkObject(contract, at, fault, { chainId: checkNatural, address: checkAddress }, { fromBlock: checkNatural }),
  )(value, path, fault)
  if (!Array.isArray(value)) return
  const chains = value.filter(isObject).map(({ chainId }) => chainId)
  if (new Set(chains).size !== chains.length) fault(path, 'two contracts on one chain')
}

function hexOf(bytes: number): Check {
  return (value, path, fault) => {
    const isRight = typeof value === 'string' && new RegExp(`^[0-9a-f]{${2 * bytes}}$`).test(value)
    if (!isRight) fault(path, `not ${bytes} bytes of lower-case hex`)
  }
}

function listOf(check: Check): Check {
  return (value, path, fault) => {
    if (!Array.isArray(value)) return fault(path, 'not a list')
    for (const [index, item] of value.entries()) check(item, `${path}[${index}]`, fault)
  }
}

function checkObject(
  value: unknown,
  path: string,
  fault: Fault,
  required: Readonly<Record<string, Check>>,
  optional: Readonly<Record<string, Check>> = {},
) {
  if (!isObject(value)) return fault(path, 'not an object')
  const toPath = (name: string) => (path === 'manifest' ? name : `${path}.${name}`)
  for (const [name, check] of Object.entries(required)) {
    if (Object.hasOwn(value, name)) check(value[name], toPath(name), fault)
    else fault(toPath(name), 'missing')
  }
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(required, name)) continue
    const check = Object.hasOwn(optional, name) ? optional[name] : undefined
    if (check === undefined) fault(toPath(name), 'unknown member')
    else check(member, toPath(name), fault)
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function malformed(faults: readonly string[]) {
  return new VerifierError('manifest_malformed', 'malformed manifest', { details: faults.join('; ') })
}
