import { type Hex, isPlainObject, isPrefixedHex } from '@countersign/protocol'
import { createContext, useContext, useMemo } from 'react'
import { toCoin } from './words/format.ts'

/** What the host of the app configures, in `/config.json`. */
export type WebConfig = {
  /** Origin of the Countersign service. */
  apiBaseUrl: string
  chainId: number
  /** Needed for any chain but Sepolia and Base Sepolia. */
  rpcUrl?: string
  /** The most that the RPC may have a wallet pay for a unit of gas. In the file a string of digits, in wei. */
  maxFeePerGas?: bigint
  chainName?: string
  /** A block explorer that knows `/tx/<hash>`. */
  explorerUrl?: string
  /** Takes `POST { "address" }`; local chains only. */
  faucetUrl?: string
  ipfsGatewayUrl?: string
  /** ERC-20 tokens that the wallet shows and sends. Those of other chains are left out. */
  tokens?: readonly Token[]
  /** Where the contract with the on-chain pointers is, and where to search from. */
  attestations?: { chainId: number; rpcUrl: string; address: string; fromBlock?: number }
  /** The verifier's anchors, a manifest; the pages that verify check this and the next two. */
  trust?: unknown
  /** Whether simulated evidence is accepted, as MOCK; for development. */
  allowMock?: unknown
  /** TCB statuses that are accepted beside `UpToDate`. */
  tcbStatuses?: unknown
  /** Where `trust` is as a file, for a service on the visitor's own machine: the command of the proof page names it. */
  manifestFile?: string
  /** A site to sign in to with the wallet; for development. */
  signInDemoUrl?: string
}

/** An ERC-20 token, as the host describes it: what a contract says of itself is not asked for. */
export type Token = { chainId: number; address: Hex; symbol: string; decimals: number; name: string }

/** The app cannot start. `faults` says everything that is wrong at once. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super('invalid config.json')
    this.faults = faults
  }
}

/** Reads `/config.json`, which is fetched once, before anything is shown. */
export async function loadConfig(fetch: typeof globalThis.fetch): Promise<WebConfig> {
  let response: Response
  try {
    response = await fetch('/config.json', { cache: 'no-cache' })
  } catch {
    throw new ConfigError(['/config.json could not be loaded: the network or the web server is down'])
  }
  if (!response.ok)
    throw new ConfigError([`/config.json is missing: the web server returned status ${response.status}`])
  const text = await response.text()
  // Servers of one-page apps answer any unknown path with the page itself.
  if (/^\s*</.test(text)) throw new ConfigError(['/config.json is missing: the web server returned an HTML page'])
  try {
    return parseConfig(JSON.parse(text))
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError(['/config.json is not valid JSON'])
  }
}

type Rule = { isGood: (value: unknown) => boolean; words: string; isNeeded?: boolean }

const isText = (value: unknown) => typeof value === 'string' && value !== ''
const isAnything = () => true
const url: Rule = { isGood: isUrl, words: 'must be an http(s) URL or omitted' }
const unchecked: Rule = { isGood: isAnything, words: '' }

/** What each member must be. */
const rules: Record<Exclude<keyof WebConfig, 'tokens'>, Rule> = {
  apiBaseUrl: { isGood: isUrl, words: 'must be the http(s) URL of the service', isNeeded: true },
  chainId: { isGood: isChainId, words: 'must be a positive whole number', isNeeded: true },
  maxFeePerGas: { isGood: isWei, words: 'must be a string of digits, in wei, or omitted' },
  chainName: { isGood: isText, words: 'must be text or omitted' },
  rpcUrl: url,
  explorerUrl: url,
  faucetUrl: url,
  ipfsGatewayUrl: url,
  signInDemoUrl: url,
  attestations: { isGood: isAttestations, words: 'must have chainId, rpcUrl and address, or be omitted' },
  // The pages that verify check these.
  trust: unchecked,
  allowMock: unchecked,
  tcbStatuses: unchecked,
  manifestFile: { isGood: isText, words: 'must be a path or omitted' },
}

/** Takes the members it knows and leaves others alone. */
export function parseConfig(value: unknown): WebConfig {
  if (!isPlainObject(value)) throw new ConfigError(['/config.json is not an object'])
  const { tokens } = value
  const known = Object.entries(rules).map(([name, rule]) => ({ name, member: value[name], ...rule }))
  const faults = known
    .filter(({ member, isGood, isNeeded = false }) => (member !== undefined || isNeeded) && !isGood(member))
    .map(({ name, words }) => `${name} ${words}`)
  if (tokens !== undefined) faults.push(...findTokenFaults(tokens))
  if (faults.length > 0) throw new ConfigError(faults)
  const given = known.flatMap(({ name, member }) => (member === undefined ? [] : [[name, member]]))
  const config: WebConfig = Object.fromEntries(given)
  return {
    ...config,
    ...(isWei(value.maxFeePerGas) ? { maxFeePerGas: BigInt(value.maxFeePerGas) } : {}),
    ...(Array.isArray(tokens) ? { tokens: tokens.map(toToken) } : {}),
  }
}

export const ConfigContext = createContext<WebConfig | null>(null)

/** What the host of the app configured. */
export function useConfig(): WebConfig {
  const config = useContext(ConfigContext)
  if (config === null) throw new Error('useConfig must be used inside <ConfigContext>')
  return config
}

/** Some become links: anything but http(s), such as `javascript:`, must not get in. */
function isUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}

function isChainId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/** Not a number: JSON rounds those above 2^53. */
function isWei(value: unknown): value is string {
  return typeof value === 'string' && /^[1-9][0-9]{0,38}$/.test(value)
}

function isAttestations(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  const { chainId, rpcUrl, address } = value
  return isChainId(chainId) && isUrl(rpcUrl) && isPrefixedHex(address, 20)
}

/** Each is asked for its balance. */
const MAX_TOKENS = 20
/** Of a token; more would not fit into 256 bits. */
const MAX_DECIMALS = 36

function findTokenFaults(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > MAX_TOKENS)
    return [`tokens must be a list of at most ${MAX_TOKENS}, or omitted`]
  const seen = new Set<string>()
  return value.flatMap((token: unknown, index) => {
    if (!isToken(token))
      return [
        `tokens[${index}] must have chainId, address, symbol (not ETH or the chain’s own coin), decimals (0 to ${MAX_DECIMALS}) and name`,
      ]
    const key = `${token.chainId} ${token.address.toLowerCase()}`
    if (seen.has(key)) return [`tokens[${index}] is a duplicate`]
    seen.add(key)
    return []
  })
}

function isToken(value: unknown): value is Token {
  if (!isPlainObject(value)) return false
  const { chainId, address, symbol, decimals, name } = value
  const isDecimals = Number.isSafeInteger(decimals) && (decimals as number) >= 0 && (decimals as number) <= MAX_DECIMALS
  const isName = typeof name === 'string' && /^[^\p{C}]{1,60}$/u.test(name)
  return isChainId(chainId) && isPrefixedHex(address, 20) && isDecimals && isSymbol(symbol, chainId) && isName
}

/** Beside amounts, so nothing that could pass for digits, for ether or for the coin of its chain. That of another chain can be a token here. */
function isSymbol(symbol: unknown, chainId: number): boolean {
  if (typeof symbol !== 'string' || !/^[A-Za-z][A-Za-z0-9.$-]{0,11}$/.test(symbol)) return false
  return !['ETH', toCoin({ chainId })].includes(symbol.toUpperCase())
}

function toToken({ chainId, address, symbol, decimals, name }: Token): Token {
  return { chainId, address: address.toLowerCase() as Hex, symbol, decimals, name }
}

/** The page of a transaction in the explorer. It knows one chain: of another's a link would lead to nothing, or to something else. */
export function toExplorerLink(
  { explorerUrl, chainId }: WebConfig,
  txHash: string,
  onChain: number | undefined = chainId,
): string | undefined {
  return explorerUrl === undefined || onChain !== chainId
    ? undefined
    : `${explorerUrl.replace(/\/+$/, '')}/tx/${txHash}`
}

/** The unit of an amount of the chain's own coin. */
export function useCoin(): string {
  return toCoin(useConfig())
}

/** The tokens of the wallet's chain. */
export function useTokens(): readonly Token[] {
  const { tokens, chainId } = useConfig()
  return useMemo(() => (tokens ?? []).filter((token) => token.chainId === chainId), [tokens, chainId])
}
