import { type Hex, isPlainObject, isPrefixedHex } from '@countersign/protocol'
import { createContext, useContext, useMemo } from 'react'
import { toCoin } from './words/format.ts'

/** The app's settings, from `/config.json`. */
export type WebConfig = {
  /** Origin of the Countersign service. */
  apiBaseUrl: string
  chainId: number
  /** Required for chains without a default node. */
  rpcUrl?: string
  /** Maximum fee per unit of gas. The file has it in wei, as a string of digits. */
  maxFeePerGas?: bigint
  chainName?: string
  /** A block explorer with `/tx/<hash>` pages. */
  explorerUrl?: string
  /** Accepts `POST { "address" }`. Only for local chains. */
  faucetUrl?: string
  ipfsGatewayUrl?: string
  /** ERC-20 tokens that the wallet shows and sends. Tokens of other chains are ignored. */
  tokens?: readonly Token[]
  /** The contract of the events, and the first block to search. */
  attestations?: { chainId: number; rpcUrl: string; address: string; fromBlock?: number }
  /** Trust anchors, as a manifest. The pages that verify check this member and the next two. */
  trust?: unknown
  /** Accepts simulated evidence, marked MOCK. For development. */
  allowMock?: unknown
  /** TCB statuses accepted besides `UpToDate`. */
  tcbStatuses?: unknown
  /** The path of the manifest file, for a service on the visitor's own machine. The proof page puts it in its command. */
  manifestFile?: string
  /** A demo site that accepts sign-ins with the wallet. For development. */
  signInDemoUrl?: string
}

/** An ERC-20 token. Its symbol and decimals come from this configuration, not from the contract. */
export type Token = { chainId: number; address: Hex; symbol: string; decimals: number; name: string }

/** The app can't start. `faults` lists every error. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super('invalid config.json')
    this.faults = faults
  }
}

/** Fetches and parses `/config.json`. */
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
  // Servers of single-page apps return the page itself for unknown paths.
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

/** Keeps known members and ignores others. */
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

export function useConfig(): WebConfig {
  const config = useContext(ConfigContext)
  if (config === null) throw new Error('useConfig must be used inside <ConfigContext>')
  return config
}

/** Some URLs become links, so only http(s) is allowed, not `javascript:`. */
function isUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}

function isChainId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/** A string, because JSON numbers above 2^53 are rounded. */
function isWei(value: unknown): value is string {
  return typeof value === 'string' && /^[1-9][0-9]{0,38}$/.test(value)
}

function isAttestations(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  const { chainId, rpcUrl, address } = value
  return isChainId(chainId) && isUrl(rpcUrl) && isPrefixedHex(address, 20)
}

/** Each token costs one balance query. */
const MAX_TOKENS = 20
/** With 10^36, amounts still fit into 256 bits. */
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

/**
 * The symbol appears next to amounts, so it must not look like digits, ether or the chain's own coin. Another chain's coin can be a token.
 */
function isSymbol(symbol: unknown, chainId: number): boolean {
  if (typeof symbol !== 'string' || !/^[A-Za-z][A-Za-z0-9.$-]{0,11}$/.test(symbol)) return false
  return !['ETH', toCoin({ chainId })].includes(symbol.toUpperCase())
}

function toToken({ chainId, address, symbol, decimals, name }: Token): Token {
  return { chainId, address: address.toLowerCase() as Hex, symbol, decimals, name }
}

/** Returns the explorer's page of a transaction. The explorer covers only the app's own chain. */
export function toExplorerLink(
  { explorerUrl, chainId }: WebConfig,
  txHash: string,
  onChain: number | undefined = chainId,
): string | undefined {
  return explorerUrl === undefined || onChain !== chainId
    ? undefined
    : `${explorerUrl.replace(/\/+$/, '')}/tx/${txHash}`
}

export function useCoin(): string {
  return toCoin(useConfig())
}

export function useTokens(): readonly Token[] {
  const { tokens, chainId } = useConfig()
  return useMemo(() => (tokens ?? []).filter((token) => token.chainId === chainId), [tokens, chainId])
}
