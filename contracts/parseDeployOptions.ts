import { parseArgs } from 'node:util'
import { type Address, getAddress, type Hex, isAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { DeployParameters, LogWitnessParameters } from './deployContract.ts'

export const help = `usage: npm run deploy:contract -- --rpc-url <url> --chain-id <number> --owner <address> --publisher <address>
       npm run deploy:contract -- --contract LogWitness --rpc-url <url> --chain-id <number> --publisher <address> --origin <name>…

Deploys ServiceAttestations, the on-chain log of proofs, or LogWitness, the on-chain witness of logs, to any EVM chain.

  --contract <name>      ServiceAttestations (default) or LogWitness
  --rpc-url <url>        JSON-RPC URL of a node (or RPC_URL)
  --chain-id <number>    the expected chain; nodes of other chains are rejected (or CHAIN_ID)
  --owner <address>      ServiceAttestations: may rotate the publisher and transfer ownership (or ATTESTATIONS_OWNER)
  --publisher <address>  the only account that may publish (or ATTESTATIONS_PUBLISHER)
  --origin <name>        LogWitness: a log to register; repeatable. Logs that the paying account has registered are skipped
  --address <address>    LogWitness: an existing contract to register the logs with, instead of deploying one
  --confirmations <n>    blocks to wait for (default: 1)
  --help                 prints this help

The account that pays becomes the owner of the logs in LogWitness. To hand a log over, call proposeOwner from it, then acceptOwnership from
the new owner.

The key of the account that pays is not an option, because other users of the machine could read it. Set one of:
  DEPLOYER_PRIVATE_KEY       0x and 64 hex digits
  DEPLOYER_PRIVATE_KEY_FILE  a file with the key

Example: DEPLOYER_PRIVATE_KEY_FILE=deployer.key npm run deploy:contract -- --rpc-url https://node.example --chain-id 11155111 \\
  --owner 0x… --publisher 0x…
Exit codes: 0 deployed and checked, 1 failed, 2 invalid arguments.
`

export type DeployOptions =
  | { command: 'help' }
  | ({ command: 'deploy' } & DeployParameters)
  | ({ command: 'deployLogWitness' } & LogWitnessParameters)

/** All faults of the input. */
export class DeployInputError extends Error {
  override name = 'DeployInputError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

type Environment = Readonly<Record<string, string | undefined>>
type Deps = { env: Environment; readFile: (path: string) => string }

const FLAGS = {
  contract: { type: 'string', default: 'ServiceAttestations' },
  'rpc-url': { type: 'string' },
  'chain-id': { type: 'string' },
  owner: { type: 'string' },
  publisher: { type: 'string' },
  origin: { type: 'string', multiple: true },
  address: { type: 'string' },
  confirmations: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Reads the command line and the environment. Options override variables. An empty variable counts as unset. */
export function parseDeployOptions({ env, readFile }: Deps, argv: readonly string[]): DeployOptions {
  const values = parseFlags(argv)
  if (values.help === true) return { command: 'help' }

  const faults: string[] = []
  const parse = <Value>(
    name: string,
    text: string | undefined,
    read: (text: string) => Value | undefined,
    form: string,
  ) => {
    const value = text === undefined ? undefined : read(text)
    if (value === undefined) faults.push(text === undefined ? `${name} is missing` : `${name} is not ${form}`)
    return value
  }
  const given = (flag: string | undefined, key: string) => flag ?? (env[key] || undefined)

  const rpcUrl = parse('--rpc-url', given(values['rpc-url'], 'RPC_URL'), readUrl, 'an http or https URL')
  const chainId = parse('--chain-id', given(values['chain-id'], 'CHAIN_ID'), readCount, 'a positive whole number')
  const isLogWitness = values.contract === 'LogWitness'
  if (!isLogWitness && values.contract !== 'ServiceAttestations')
    faults.push('--contract is not ServiceAttestations or LogWitness')
  const ownerText = isLogWitness ? values.owner : given(values.owner, 'ATTESTATIONS_OWNER')
  const isOwnerless = isLogWitness && ownerText === undefined
  const owner = isOwnerless ? undefined : parse('--owner', ownerText, readAddress, ADDRESS_FORM)
  const publisher = parse('--publisher', given(values.publisher, 'ATTESTATIONS_PUBLISHER'), readAddress, ADDRESS_FORM)
  const confirmations = parse('--confirmations', values.confirmations ?? '1', readCount, 'a positive whole number')
  const privateKey = readPrivateKey({ env, readFile }, faults)
  const { origin: origins = [], address: addressText } = values
  const address = addressText === undefined ? undefined : parse('--address', addressText, readAddress, ADDRESS_FORM)

  if (!isLogWitness) {
    if (origins.length > 0) faults.push('--origin needs --contract LogWitness')
    if (addressText !== undefined) faults.push('--address needs --contract LogWitness')
  } else {
    if (origins.length === 0) faults.push('--origin is missing')
    if (!origins.every(isOrigin)) faults.push('--origin is not 1 to 255 bytes without spaces and plus signs')
    if (new Set(origins).size < origins.length) faults.push('--origin has duplicates')
    if (owner && privateKey && owner !== privateKeyToAccount(privateKey).address)
      faults.push('--owner is not the account that pays, which becomes the owner of the logs')
  }
  if (faults.length > 0 || !rpcUrl || !chainId || !publisher || !confirmations || !privateKey)
    throw new DeployInputError(faults)
  const parameters = { rpcUrl, chainId, publisher, confirmations, privateKey }
  if (isLogWitness) return { command: 'deployLogWitness', ...parameters, origins, ...(address && { address }) }
  if (!owner) throw new DeployInputError(faults)
  return { command: 'deploy', ...parameters, owner }
}

function parseFlags(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false }).values
  } catch (error) {
    // The error quotes an argument, which may be the key.
    const isUnknown = (error as NodeJS.ErrnoException).code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION'
    throw new DeployInputError([isUnknown ? 'unknown option' : 'invalid arguments'])
  }
}

function readUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url.href : undefined
}

/** Like the name of a key, because a log's origin is the name of its key (C2SP tlog-checkpoint). */
function isOrigin(text: string): boolean {
  return /^[^\s+\p{Cc}\p{Surrogate}]+$/u.test(text) && Buffer.byteLength(text) <= 255
}

function readCount(text: string): number | undefined {
  return /^[1-9][0-9]{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
}

const ADDRESS_FORM = 'an address other than zero (a checksum must be valid)'

/** With a mistyped owner, the publisher could never be rotated. So a checksum is verified if the address has one. */
function readAddress(text: string): Address | undefined {
  const isUniform = /^0x(?:[0-9a-f]{40}|[0-9A-F]{40})$/.test(text)
  if (/^0x0{40}$/.test(text) || !(isUniform || isAddress(text))) return undefined
  return getAddress(text.toLowerCase())
}

function readPrivateKey({ env, readFile }: Deps, faults: string[]): Hex | undefined {
  const { DEPLOYER_PRIVATE_KEY: text, DEPLOYER_PRIVATE_KEY_FILE: path } = env
  if (text && path) faults.push('DEPLOYER_PRIVATE_KEY and DEPLOYER_PRIVATE_KEY_FILE are both set')
  else if (text) return toPrivateKey('DEPLOYER_PRIVATE_KEY', text, faults)
  else if (!path) faults.push('DEPLOYER_PRIVATE_KEY or DEPLOYER_PRIVATE_KEY_FILE is missing')
  else {
    try {
      return toPrivateKey('the content of DEPLOYER_PRIVATE_KEY_FILE', readFile(path), faults)
    } catch {
      faults.push('DEPLOYER_PRIVATE_KEY_FILE cannot be read')
    }
  }
  return undefined
}

function toPrivateKey(name: string, text: string, faults: string[]): Hex | undefined {
  const digits = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text.trim())?.[1]
  try {
    // Rejects zero and values above the curve's order. The library's error would quote the key.
    const key: Hex = `0x${digits ?? ''}`
    privateKeyToAccount(key)
    return key
  } catch {
    faults.push(`${name} is not a private key: 0x and 64 hex digits`)
    return undefined
  }
}
