import { isSlug } from '@countersign/protocol'
import { type Address, getAddress, type Hex, isHex } from 'viem'
import { createSiweMessage, parseSiweMessage, type SiweMessage } from 'viem/siwe'

export type RelyingPartyDeps = {
  now(): Date
  /** Random letters and digits. */
  random(): string
  /** Whether the address in the message signed it. `verifySiweMessage` of viem, with a node for contract wallets. */
  verify(parameters: { message: string; signature: Hex; domain: string; nonce: string; time: Date }): Promise<boolean>
}

/** The site: its address, and the chain that its users' wallets are on. */
export type Site = { origin: string; chainId: number }

/** A signed-in visitor. */
export type SignedIn = {
  address: Address
  signedInAt: string
  /** The signature's proof, as the visitor reported it: only a link, which the site does not rely on. */
  slug: string | undefined
}

type SignInRequest = { message: unknown; signature: unknown; slug: unknown }

/** Why a sign-in was refused. */
export class SignInError extends Error {
  override name = 'SignInError'
}

export type RelyingParty = {
  /** A number that the next message must contain. It works once. */
  createNonce(): string
  /** Returns the session. `nonce` is the number that this browser got. Throws a `SignInError`. */
  signIn(request: SignInRequest, nonce: string | undefined): Promise<string>
  getSignedIn(session: string | undefined): SignedIn | undefined
  signOut(session: string | undefined): void
}

const NONCE_MS = 5 * 60_000
/** Limits the memory for abandoned visits. */
const MOST = 1_000

/** A demo site with sign-in with Ethereum (EIP-4361) and its own sessions. It uses only a public link of the service. */
export function createRelyingParty(deps: RelyingPartyDeps, site: Site): RelyingParty {
  const nonces = new Map<string, number>()
  const sessions = new Map<string, SignedIn>()
  const { host: domain } = new URL(site.origin)

  /** Each number works once, so a leaked message is worthless afterwards. */
  function takeNonce(nonce: string | undefined): string {
    const endsMs = nonces.get(nonce ?? '') ?? 0
    nonces.delete(nonce ?? '')
    if (nonce === undefined || endsMs <= deps.now().getTime()) {
      throw new SignInError('This sign-in has expired or was already used. Start again.')
    }
    return nonce
  }

  return {
    createNonce() {
      const nonce = deps.random()
      keep(nonces, nonce, deps.now().getTime() + NONCE_MS)
      return nonce
    },
    async signIn({ message: text, signature, slug }, given) {
      const nonce = takeNonce(given)
      const time = deps.now()
      if (typeof text !== 'string' || !isHex(signature)) throw new SignInError('Send a message and its signature.')
      const message = parseMessage(text)
      if (message.domain !== domain || message.uri !== site.origin) {
        throw new SignInError('The message is for another site.')
      }
      if (message.chainId !== site.chainId) throw new SignInError('The message is for another chain.')
      if (message.nonce !== nonce) throw new SignInError('The message is for another sign-in.')
      if (message.expirationTime === undefined || message.expirationTime <= time) {
        throw new SignInError('The message has expired, or has no expiry.')
      }
      if (!(await deps.verify({ message: text, signature, domain, nonce, time }))) {
        throw new SignInError('The account in the message did not sign it.')
      }
      const session = deps.random()
      const address = getAddress(message.address)
      const proof = typeof slug === 'string' && isSlug(slug) ? slug : undefined
      keep(sessions, session, { address, signedInAt: time.toISOString(), slug: proof })
      return session
    },
    getSignedIn: (session) => sessions.get(session ?? ''),
    signOut: (session) => void sessions.delete(session ?? ''),
  }
}

/** Formatting the parsed message must give the same text, so that every character is checked. */
function parseMessage(text: string): SiweMessage {
  try {
    const message = parseSiweMessage(text) as SiweMessage
    if (createSiweMessage(message) === text) return message
  } catch {
    // Reported below.
  }
  throw new SignInError('The message does not follow EIP-4361.')
}

function keep<Value>(map: Map<string, Value>, key: string, value: Value) {
  const [oldest] = map.keys()
  if (map.size >= MOST && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}
