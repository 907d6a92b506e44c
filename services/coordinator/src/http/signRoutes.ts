import {
  type AttestAddressResponse,
  type Hex,
  hashOwner,
  type OffChainContent,
  type OffChainKind,
  offChainKinds,
  parseRequest,
  type SignDigestResponse,
  type SignOffChainResponse,
  toEventHash,
  toHex,
} from '@countersign/protocol'
import type { SignerFinder } from '../accounts/session.ts'
import { findVaultOwner } from '../accounts/vaults.ts'
import { CoordinatorError, invalidBody, invalidRequest } from '../errors.ts'
import type { SignContent } from '../sign/contents.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { SignJob, SignResult } from '../sign/job.ts'
import type { AppContext, RequestContext } from './context.ts'
import { type CookieRules, readSessionSecret } from './cookies.ts'
import { type Limiters, limitByUser } from './limiters.ts'
import {
  type ParsedWalletUse,
  parseWallet,
  parseWalletUse,
  toAuthorization,
  toOffChain,
  toTransaction,
} from './parseSigning.ts'
import { readJsonBody, readOptionalBody } from './readBody.ts'
import type { Handlers } from './router.ts'
import type { RuledSign } from './ruledSign.ts'
import type { GetSignedIn } from './signedIn.ts'

type FoundSigner = Awaited<ReturnType<SignerFinder['find']>>

export type SignRoutesDeps = {
  enclave: Pick<KeyEnclave, 'deriveVault'>
  signers: SignerFinder
  ruledSign: RuledSign
  /** Undefined allows all chains. */
  allowedChainIds: readonly number[] | undefined
  /** Whether to reject typed data that names no chain. */
  isChainRequired: boolean
  cookies: CookieRules
  limiters: Limiters
  getSignedIn: GetSignedIn
}

/** The most that 32 KiB of typed data can have: a list of digits has one per two bytes. */
const limits: { readonly [Kind in OffChainKind]?: { maxParts: number } } = { 'typed-data': { maxParts: 16_384 } }

export function registerSignRoutes(handlers: Handlers, deps: SignRoutesDeps): void {
  const { signers, ruledSign, allowedChainIds, isChainRequired, cookies, limiters, getSignedIn } = deps

  /** Runs `read` before the session is known. If it fails, a caller without a session gets 401 instead of the error of its body. */
  async function readBeforeSession<Value>(c: RequestContext, read: () => Promise<Value>): Promise<Value> {
    try {
      return await read()
    } catch (error) {
      await getSignedIn(c, limiters.sign)
      throw error
    }
  }

  function find(c: RequestContext, digest: Hex | undefined, wallet: Hex | undefined): Promise<FoundSigner> {
    return signers.find({ sid: readSessionSecret(cookies, c.req), digest, wallet })
  }

  function findSigner(c: RequestContext, digest: Hex | undefined, wallet: Hex | undefined): Promise<FoundSigner> {
    return limitByUser(c, limiters.sign, find(c, digest, wallet), ({ userId }) => userId)
  }

  type Signing = { signer: FoundSigner; content: SignContent; use: Omit<ParsedWalletUse, 'wallet'> }

  /** `repeatDigest` identifies repeated requests for the same signature. */
  async function sign(c: RequestContext, signing: Signing, repeatDigest: Hex | undefined): Promise<SignResult> {
    const { signer, content, use } = signing
    const { rule, approvals, stamp } = use
    const { sid, userId, grant, isBound, keyId, walletId, address, policy, signed } = signer
    if (walletId === undefined) throw new CoordinatorError('wallet_not_provisioned', 'the user has no wallet')
    if (policy === undefined && approvals !== undefined) throw invalidRequest('approvals are for a vault')
    if (policy === undefined && rule !== undefined) throw invalidRequest('rule is for a vault')
    if (isBound && stamp === undefined) throw new CoordinatorError('stamp_missing', 'the request has no stamp')
    // Only the enclave checks stamps. An earlier signature needs no valid one: its receipt is public.
    if (signed !== undefined) return signed
    if (policy !== undefined && rule === undefined && content.kind !== 'address') {
      throw invalidRequest('rule is missing: expected the index of the rule that is to allow this')
    }
    const vault = policy && { vault: { policy, rules: ruledSign.vaultRules.read(policy), rule, approvals } }
    const request: SignJob = { sid, grant, keyId, walletId, address, ...vault, stamp, content }
    return ruledSign.sign(c, request, { userId, repeatDigest })
  }

  async function signPublic(c: RequestContext, signing: Signing): Promise<SignDigestResponse> {
    const { signature, slug } = await sign(c, signing, signing.content.digest)
    return { signature: toSignature(signature), slug }
  }

  async function signDigest(c: AppContext): Promise<SignDigestResponse> {
    const { content, wallet, use } = await readBeforeSession(c, async () => {
      const body = await readJsonBody(c.incoming)
      const { digest, txMetadata, ...given } = parseRequest('POST /sign/digest', body, invalidBody)
      const { wallet, ...use } = parseWalletUse(given)
      return { content: toTransaction({ digest, txMetadata }, { allowedChainIds }), wallet, use }
    })
    return signPublic(c, { signer: await findSigner(c, content.digest, wallet), content, use })
  }

  /** Finds an earlier statement about the address by its digest, which depends only on the wallet and its owner. */
  async function attest(c: AppContext, readWallet: () => Hex | undefined) {
    const { wallet, stamp } = await readBeforeSession(c, async () => {
      const body = await readOptionalBody(c.incoming)
      const { stamp } = parseRequest('POST /wallet/attest', body, invalidBody)
      return { wallet: readWallet(), stamp }
    })
    const found = await findSigner(c, undefined, wallet)
    const { address, policy } = found
    const opening = policy === undefined ? found.owner : await findVaultOwner(deps.enclave, { ...found, policy })
    const owner = toHex(hashOwner(opening))
    const digest = toEventHash({ kind: 'address', subject: { address, policy: policy?.hash ?? null, owner } })
    const signer = await find(c, digest, wallet)
    const use = { rule: undefined, approvals: undefined, stamp }
    const { slug } = await sign(c, { signer, content: { kind: 'address', digest, owner }, use }, digest)
    const body: AttestAddressResponse = { slug, owner: opening }
    return c.json(body)
  }

  async function answerOffChain(c: AppContext, kind: OffChainKind) {
    const { request, wallet, use } = await readBeforeSession(c, async () => {
      const body = await readJsonBody(c.incoming, limits[kind])
      const {
        wallet: given,
        rule,
        approvals,
        stamp,
        ...content
      } = parseRequest(`POST /sign/${kind}`, body, invalidBody)
      const { wallet, ...use } = parseWalletUse({ wallet: given, rule, approvals, stamp })
      return { request: { kind, content } as OffChainContent, wallet, use }
    })
    // The digest of off-chain content must only appear in the enclave's response, and never in the database.
    const signer = await findSigner(c, undefined, wallet)
    // After the session and the rate limit, because hashing typed data can take tens of milliseconds.
    const content = toOffChain(request, { allowedChainIds, isChainRequired })
    // Each call creates a new signature, even for the same content.
    const { signature, slug, opening } = await sign(c, { signer, content, use }, undefined)
    if (opening === undefined) throw new CoordinatorError('internal', 'an opening is missing')
    const body: SignOffChainResponse = { signature: toSignature(signature), slug, opening }
    return c.json(body)
  }

  handlers.set('POST /sign/digest', async (c) => c.json(await signDigest(c)))
  for (const kind of offChainKinds) handlers.set(`POST /sign/${kind}`, (c) => answerOffChain(c, kind))
  // Only for the user's own wallet: code that a vault delegates to could spend without following its rules.
  handlers.set('POST /sign/authorization', async (c) => {
    const { content, stamp } = await readBeforeSession(c, async () => {
      const body = await readJsonBody(c.incoming)
      const { stamp, ...authorization } = parseRequest('POST /sign/authorization', body, invalidBody)
      return { content: toAuthorization(authorization, { allowedChainIds }), stamp }
    })
    const use = { rule: undefined, approvals: undefined, stamp }
    return c.json(await signPublic(c, { signer: await findSigner(c, content.digest, undefined), content, use }))
  })
  handlers.set('POST /wallet/attest', (c) => attest(c, () => undefined))
  handlers.set('POST /vaults/:address/attest', (c) => attest(c, () => parseWallet(c.params.address)))
}

export function toSignature(signature: Hex | null): Hex {
  if (signature === null) throw new CoordinatorError('internal', 'a signature is missing')
  return signature
}
