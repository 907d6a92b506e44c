import { parseArgs } from 'node:util'
import { type Address, getAddress, type Hex, isAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { DeployParameters } from './deployContract.ts'

export const help = `usage: npm run deploy:contract -- --rpc-url <url> --chain-id <number> --owner <address> --publisher <address>

Deploys ServiceAttestations, the on-chain log of proofs, to any EVM chain.

  --rpc-url <url>        JSON-RPC URL of a node (or RPC_URL)
  --chain-id <number>    the expected chain; nodes of other chains are rejected (or CHAIN_ID)
  --owner <address>      may rotate the publisher and transfer ownership (or ATTESTATIONS_OWNER)
  --publisher <address>  the only account that may publish (or ATTESTATIONS_PUBLISHER)
  --confirmations <n>    blocks to wait for (default: 1)
  --help                 prints this help

The key of the account that pays is not an option, because other users of the machine could read it. Set one of:
  DEPLOYER_PRIVATE_KEY       0x and 64 hex digits
  DEPLOYER_PRIVATE_KEY_FILE  a file with the key

Example: DEPLOYER_PRIVATE_KEY_FILE=deployer.key npm run deploy:contract -- --rpc-url https://node.example --chain-id 11155111 \\
  --owner 0x… --publisher 0x…
Exit codes: 0 deployed and checked, 1 failed, 2 invalid arguments.
`

export type DeployOptions = { command: 'help' } | ({ command: 'deploy' } & DeployParameters)

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
  'rpc-url': { type: 'string' },
  'chain-id': { type: 'string' },
  owner: { type: 'string' },
  publisher: { type: 'string' },
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
  const owner = parse('--owner', given(values.owner, 'ATTESTATIONS_OWNER'), readAddress, ADDRESS_FORM)
  const publisher = parse('--publisher', given(values.publisher, 'ATTESTATIONS_PUBLISHER'), readAddress, ADDRESS_FORM)
  const confirmations = parse('--confirmations', values.confirmations ?? '1', readCount, 'a positive whole number')
  const privateKey = readPrivateKey({ env, readFile }, faults)

  if (rpcUrl === undefined || chainId === undefined || owner === undefined || publisher === undefined)
    throw new DeployInputError(faults)
  if (confirmations === undefined || privateKey === undefined) throw new DeployInputError(faults)
  return { command: 'deploy', rpcUrl, chainId, owner, publisher, confirmations, privateKey }
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
