import { isSlug } from '@countersign/protocol'
import { type Address, getAddress, type Hex, isHex } from 'viem'
import { createSiweMessage, parseSiweMessage, type SiweMessage } from 'viem/siwe'

export type RelyingPartyDeps = {
  now(): Date
  /** What nobody can guess, in letters and digits. */
  random(): string
  /** Whether the address in the message signed it. `verifySiweMessage` of viem, with a node for wallets that are contracts. */
  verify(parameters: { message: string; signature: Hex; domain: string; nonce: string; time: Date }): Promise<boolean>
}

/** The site: its address, and the chain that its users' wallets are on. */
export type Site = { origin: string; chainId: number }

/** Who is signed in to the site. */
export type SignedIn = {
  address: Address
  signedInAt: string
  /** Of the signature's proof, as the visitor names it: a link, and nothing that the site relies on. */
  slug: string | undefined
}

type SignInRequest = { message: unknown; signature: unknown; slug: unknown }

/** Why a sign-in was refused. */
export class SignInError extends Error {
  override name = 'SignInError'
}

export type RelyingParty = {
  /** A number that the next message has to hold, once. */
  createNonce(): string
  /** Gives the session. `nonce` is the one that this browser was given. Throws a `SignInError`. */
  signIn(request: SignInRequest, nonce: string | undefined): Promise<string>
  getSignedIn(session: string | undefined): SignedIn | undefined
  signOut(session: string | undefined): void
}

const NONCE_MS = 5 * 60_000
/** Visitors who never come back cost no more memory than this. */
const MOST = 1_000

/** A site that people sign in to with Ethereum (EIP-4361), with sessions of its own. It knows nothing of the service but a public link. */
export function createRelyingParty(deps: RelyingPartyDeps, site: Site): RelyingParty {
  const nonces = new Map<string, number>()
  const sessions = new Map<string, SignedIn>()
  const { host: domain } = new URL(site.origin)

  /** Each works once: a message that somebody else got hold of is worth nothing afterwards. */
  function takeNonce(nonce: string | undefined): string {
    const endsMs = nonces.get(nonce ?? '') ?? 0
    nonces.delete(nonce ?? '')
    if (nonce === undefined || endsMs <= deps.now().getTime()) {
      throw new SignInError('This sign-in was begun too long ago, or was used already.')
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
      if (typeof text !== 'string' || !isHex(signature))
        throw new SignInError('A message and its signature are needed.')
      const message = parseMessage(text)
      if (message.domain !== domain || message.uri !== site.origin) {
        throw new SignInError('The message is for another site.')
      }
      if (message.chainId !== site.chainId) throw new SignInError('The message is for another chain.')
      if (message.nonce !== nonce) throw new SignInError('The message is of another sign-in.')
      if (message.expirationTime === undefined || message.expirationTime <= time) {
        throw new SignInError('The message has expired, or never does.')
      }
      if (!(await deps.verify({ message: text, signature, domain, nonce, time }))) {
        throw new SignInError('The message was not signed by the account that it names.')
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

/** To the letter: written again from what was read, it must be the same text, so that nothing stands in it that was not judged. */
function parseMessage(text: string): SiweMessage {
  try {
    const message = parseSiweMessage(text) as SiweMessage
    if (createSiweMessage(message) === text) return message
  } catch {
    // Said below.
  }
  throw new SignInError('The message does not have the form of EIP-4361.')
}

function keep<Value>(map: Map<string, Value>, key: string, value: Value) {
  const [oldest] = map.keys()
  if (map.size >= MOST && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}
