import type { Approval, PolicyRequest } from '@countersign/policy'
import {
  computeCommitment,
  type EndpointResponse,
  fromHex,
  type Hex,
  hashAuthorization,
  hashOwner,
  isTerminalProofStatus,
  type Kind,
  type OffChainContent,
  type OffChainKind,
  type Opening,
  type OwnerOpening,
  type ProofPayload,
  parseRequest,
  type SessionUser,
  type SignDigestRequest,
  type Stamp,
  toHex,
  toPrefixedHex,
  toSignEndpoints,
  toStampBytes,
  type WalletInfo,
  type WalletUse,
} from '@countersign/protocol'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { parseEther, sha256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { forgetSent } from '../client/sendLock.ts'
import {
  assertEmptyBody,
  hashOffChain,
  invalidBody,
  invalidRequest,
  parseAddress,
  parseAllowed,
  parseCursor,
  parseLimit,
  parseTransaction,
  parseWalletUse,
  readJsonBody,
  toLowerCase,
} from './parseRequest.ts'
import { ProblemFailure, type TestProblem, toProblemResponse } from './problems.ts'
import { answerRpc, createTestChain, type TestRpcError } from './testChain.ts'
import { filler } from './testReceipt.ts'
import {
  type TestRequest,
  type TestRoute,
  type TestService,
  type TestServiceOptions,
  testRoutes,
} from './testService.ts'
import { createTestSignings, type TestSigner } from './testSignings.ts'
import { assertVaultAllows, createTestVaults, revokeTestKey, toBudgetInfo } from './testVaults.ts'

type Stamped = { signer: TestSigner; rule?: number | null; kind: Kind; digest?: Hex | null }

const API_ORIGIN = 'https://service.test'
const SESSION_ID = '5e55105e55105e55'
const RPC_ORIGIN = 'https://rpc.test'
/** Hardhat's first development key, which is public. */
const PRIVATE_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

/**
 * A Countersign service and a chain in memory, for an app's tests. It makes real signatures and returns the service's errors, without a
 * network, process or browser.
 *
 * @example
 * const service = createTestService({ autoComplete: true })
 * const uninstall = service.install()
 * const client = new ServiceClient(service.config)
 * const { txHash } = await client.signAndSend({ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', value: '0.1' })
 * expect(service.transactions[0]?.hash).toBe(txHash)
 * uninstall()
 */
export function createTestService(options: TestServiceOptions = {}): TestService {
  const { chainId = 31337, balance = parseEther('10000'), baseFeePerGas = 1_000_000_000n, rpc = {} } = options
  const account = privateKeyToAccount(PRIVATE_KEY)
  const address = account.address.toLowerCase() as Hex
  const user: SessionUser = options.user ?? {
    id: '6f2b3a52-6c1e-4d0f-9a53-0b8f6d1c2e47',
    email: 'user@example.test',
    name: 'Test User',
  }
  const wallet: WalletInfo = {
    address,
    createdAt: '2026-01-01T00:00:00.000Z',
    provenance: {
      entropyHash: filler('provenance', 32),
      entropySig: filler('provenance signature', 64),
      satelliteSource: 'test-satellite',
    },
  }
  // Another test service had the same wallet on another chain.
  forgetSent()
  const chain = createTestChain({ chainId, baseFeePerGas, balances: new Map([[address, balance]]), handlers: rpc })
  const signings = createTestSignings({ mine: chain.mine })
  const vaults = createTestVaults()
  const own = { account, signer: { address, publicKey: account.publicKey, policyHash: null } }
  const requests: TestRequest[] = []
  const failures = new Map<string, (TestProblem | TestRpcError | 'network')[]>()
  let isSignedIn = options.signedIn ?? true
  let isProvisioned = options.provisioned ?? true
  let clientKey: string | undefined

  function findFailure(request: TestRequest) {
    requests.push(request)
    const failure = failures.get(request)?.shift()
    // The browser's message for a failed connection.
    if (failure === 'network') throw new TypeError('Failed to fetch')
    return failure
  }

  function assertSession(request: Request): void {
    // The service has another origin than the app, so a browser sends the cookie only with `include`.
    if (!isSignedIn || request.credentials !== 'include') throw new ProblemFailure({ code: 'not_authenticated' })
  }

  function toSession() {
    const nowMs = Date.now()
    const [createdAt = '', time = '', expiresAt = ''] = [nowMs - 60_000, nowMs, nowMs + 7_200_000].map((ms) =>
      new Date(ms).toISOString(),
    )
    return { kind: clientKey === undefined ? ('cookie' as const) : ('bound' as const), createdAt, expiresAt, time }
  }

  /** In a session with a client key, nothing is signed without its stamp. Unlike the enclave, accepts a stamp of any time. */
  async function assertStamp(stamp: Stamp | undefined, { signer, rule = null, kind, digest = null }: Stamped) {
    if (clientKey === undefined) return
    if (stamp === undefined) throw new ProblemFailure({ code: 'stamp_missing' })
    const { address, policyHash: policy } = signer
    const bytes = toStampBytes({
      address,
      vault: policy === null ? null : { policy, rule },
      kind,
      digest: digest && fromHex(digest.slice(2)),
      issuedMs: stamp.issuedMs,
    })
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', fromHex(clientKey), algorithm, false, ['verify'])
    if (await crypto.subtle.verify(algorithm, key, fromHex(stamp.signature), bytes)) return
    throw new ProblemFailure({ code: 'stamp_invalid' })
  }

  /** Parses the body. Throws first if there is no session. */
  async function readSigning<R>(request: Request, parse: (body: unknown) => R): Promise<R> {
    const [parsed] = await Promise.allSettled([readJsonBody(request).then(parse)])
    // Without a session, the caller learns nothing about the body.
    assertSession(request)
    if (parsed.status === 'rejected') throw parsed.reason
    return parsed.value
  }

  /** The requested key, the vault's rule and the hash of its approvals. Throws if that rule doesn't allow the request. */
  function findKey({ wallet: requested, rule, approvals }: WalletUse, digest: Hex, content: PolicyRequest) {
    if (requested !== undefined && requested !== address) {
      const vault = vaults.find(requested)
      if (rule === undefined) throw invalidRequest('rule is missing')
      const asked = { request: content, digest, rule, approvals, hasSession: true }
      return { ...vault, rule, ...assertVaultAllows(vault, asked) }
    }
    if (approvals !== undefined) throw invalidRequest('approvals are for a vault')
    if (rule !== undefined) throw invalidRequest('rule is for a vault')
    if (!isProvisioned) throw new ProblemFailure({ code: 'wallet_not_provisioned' })
    return { ...own, rule: null, approvals: null, session: 'cookie' as const, budget: undefined }
  }

  type FoundKey = ReturnType<typeof findKey>

  async function signDigest(request: Request) {
    const { digest, txMetadata, ...use } = await readSigning(request, (body) => {
      const { digest, txMetadata, ...use } = parseRequest('POST /sign/digest', body, invalidBody)
      return { ...parseTransaction({ digest, txMetadata }), ...parseWalletUse(use) }
    })
    const key = findKey(use, digest, { kind: 'transaction', txMetadata })
    await assertStamp(use.stamp, { signer: key.signer, rule: key.rule, kind: 'transaction', digest })
    return addTransaction(key, { digest, txMetadata })
  }

  async function addTransaction(
    { account, signer, rule, approvals, session, budget }: FoundKey,
    { digest, txMetadata }: SignDigestRequest,
  ) {
    const permission = { rule, approvals, session, budget }
    const signed = { digest, txMetadata, ...permission, signature: await account.sign({ hash: digest }) }
    const { signature, slug } = signings.addTransaction(signer, signed)
    return { signature, slug }
  }

  async function signOffChain(request: Request, kind: OffChainKind) {
    const { content, digest, ...use } = await readSigning(request, (body) => {
      const { wallet, rule, approvals, stamp, ...rest } = parseRequest(`POST /sign/${kind}`, body, invalidBody)
      const content = { kind, content: rest } as OffChainContent
      return { content, digest: hashOffChain(content), ...parseWalletUse({ wallet, rule, approvals, stamp }) }
    })
    const key = findKey(use, digest, content)
    await assertStamp(use.stamp, { signer: key.signer, rule: key.rule, kind, digest })
    return addOffChain(key, { digest, ...content, ...(use.approvals && { approvals: use.approvals }) })
  }

  async function addOffChain(
    { account, signer, rule, approvals, session, budget }: FoundKey,
    content: OffChainContent & { digest: Hex; approvals?: readonly Approval[] },
  ) {
    const signature = await account.sign({ hash: content.digest })
    const salt = (half: string) => filler(`${half} salt ${signings.all.length}`, 32)
    const opening: Opening = {
      content: { salt: salt('content'), ...content, ...(budget && { budget }) },
      signature: { salt: salt('signature'), signature },
    }
    const commitment = toHex(computeCommitment(opening))
    const permission = { rule, approvals, session }
    const { slug } = signings.add(signer, { kind: 'off-chain', subject: { commitment } }, permission)
    return { signature, slug, opening }
  }

  /** Without a session. Unknown vaults and wrong approvals get the same answer. */
  async function signForVault(request: Request, address: Hex) {
    const body = parseRequest('POST /vaults/:address/sign', await readJsonBody(request), invalidBody)
    const vault = vaults.list().some((one) => one.address === address) ? vaults.find(address) : undefined
    const allow = (content: PolicyRequest, digest: Hex) => {
      if (vault === undefined) throw new ProblemFailure({ code: 'approval_invalid' })
      const { rule, approvals } = body
      return {
        ...vault,
        rule,
        ...assertVaultAllows(vault, { request: content, digest, rule, approvals, hasSession: false }),
      }
    }
    if (body.kind === 'transaction') {
      const { digest, txMetadata } = parseTransaction(body)
      return addTransaction(allow({ kind: body.kind, txMetadata }, digest), { digest, txMetadata })
    }
    const { kind, rule: _, approvals, ...typedData } = body
    const content = { kind, content: typedData }
    const digest = hashOffChain(content)
    return addOffChain(allow(content, digest), { digest, ...content, approvals })
  }

  async function revokeKey(request: Request, address: Hex) {
    const body = parseRequest('POST /vaults/:address/revoke', await readJsonBody(request), invalidBody)
    const { key, approvals, stamp } = body
    const hasSession = approvals === undefined
    if (hasSession) assertSession(request)
    const vault = vaults.find(address)
    const { signer } = vault
    if (hasSession) await assertStamp(stamp, { signer, kind: 'revocation', digest: sha256(`0x${key}`) })
    revokeTestKey(vault, { key, approvals, hasSession })
    const subject = { address: signer.address, policy: vault.info.policyHash, key }
    return { slug: signings.add(signer, { kind: 'revocation', subject }).slug }
  }

  async function attest(request: Request, find: () => { signer: TestSigner }) {
    assertSession(request)
    const { stamp } = parseRequest('POST /wallet/attest', (await readJsonBody(request)) ?? {}, invalidBody)
    const { signer } = find()
    await assertStamp(stamp, { signer, kind: 'address' })
    const identity = { issuer: 'https://issuer.example', subject: user.id, email: user.email }
    const owner: OwnerOpening = { salt: filler(`owner salt ${signer.address}`, 32), identity }
    const subject = { address: signer.address, policy: signer.policyHash, owner: toHex(hashOwner(owner)) }
    return { slug: signings.add(signer, { kind: 'address', subject }).slug, owner }
  }

  async function signAuthorization(request: Request) {
    const { implementations = [] } = options
    const allowed = implementations.map((implementation) => implementation.toLowerCase() as Hex)
    const { authorization, stamp } = await readSigning(request, (body) => {
      const { stamp, ...given } = parseRequest('POST /sign/authorization', body, invalidBody)
      return { authorization: parseAllowed(given, allowed), stamp }
    })
    if (!isProvisioned) throw new ProblemFailure({ code: 'wallet_not_provisioned' })
    const digest = toPrefixedHex(hashAuthorization(authorization))
    await assertStamp(stamp, { signer: own.signer, kind: 'authorization', digest })
    const subject = { ...authorization, digest, signature: await account.sign({ hash: digest }) }
    const { signature, slug } = signings.add(own.signer, { kind: 'authorization', subject })
    return { signature, slug }
  }

  function getProof(slug: string): ProofPayload {
    const signing = signings.find(slug)
    if (signing === undefined) throw new ProblemFailure({ code: 'proof_not_found' })
    const proof = signings.toProof(signing)
    if (options.autoComplete === true && !isTerminalProofStatus(signing.status)) signings.advance(signing)
    return proof
  }

  const routes: {
    [Name in TestRoute]: (request: Request, url: URL) => EndpointResponse<Name> | Promise<EndpointResponse<Name>>
  } = {
    'GET /auth/me': (request) => {
      assertSession(request)
      return user
    },
    'GET /auth/session': (request) => {
      assertSession(request)
      const { time, ...session } = toSession()
      return { ...session, clientKey: clientKey ?? null, time }
    },
    'GET /auth/sessions': (request) => {
      assertSession(request)
      const { time: lastSeenAt, ...session } = toSession()
      return { sessions: [{ id: SESSION_ID, ...session, lastSeenAt, isCurrent: true }] }
    },
    'POST /auth/logout': async (request) => {
      assertSession(request)
      const { session } = parseRequest('POST /auth/logout', (await readJsonBody(request)) ?? {}, invalidBody)
      if (session === undefined || session === SESSION_ID) isSignedIn = false
      return { ok: true }
    },
    'GET /wallet/me': (request) => {
      assertSession(request)
      if (!isProvisioned) throw new ProblemFailure({ code: 'wallet_not_found' })
      return wallet
    },
    'POST /wallet/provision': async (request) => {
      assertSession(request)
      assertEmptyBody(await readJsonBody(request))
      isProvisioned = true
      return wallet
    },
    'GET /wallet/transactions': (request, { searchParams }) => {
      assertSession(request)
      const limit = parseLimit(searchParams.getAll('limit'))
      return signings.toPage({ limit, cursor: parseCursor(searchParams.getAll('cursor')) })
    },
    'POST /wallet/attest': (request) =>
      attest(request, () => {
        if (!isProvisioned) throw new ProblemFailure({ code: 'wallet_not_provisioned' })
        return own
      }),
    'GET /vaults': (request) => {
      assertSession(request)
      return { vaults: [...vaults.list()] }
    },
    'POST /vaults': async (request) => {
      const { policy, address } = await readSigning(request, (body) => parseRequest('POST /vaults', body, invalidBody))
      return vaults.create({ policy, address: toLowerCase(address) })
    },
    'POST /vaults/:address/attest': (request, { pathname }) =>
      attest(request, () => vaults.find(toVaultAddress(pathname))),
    'POST /vaults/:address/sign': (request, { pathname }) => signForVault(request, toVaultAddress(pathname)),
    'GET /vaults/:address/budget': (request, { pathname }) => {
      assertSession(request)
      return toBudgetInfo(vaults.find(toVaultAddress(pathname)))
    },
    'POST /vaults/:address/revoke': (request, { pathname }) => revokeKey(request, toVaultAddress(pathname)),
    'POST /sign/digest': signDigest,
    ...toSignEndpoints((kind) => (request: Request) => signOffChain(request, kind)),
    'POST /sign/authorization': signAuthorization,
    'GET /proof/:slug': (_request, { pathname }) => getProof(decodeURIComponent(pathname.slice('/proof/'.length))),
  }

  async function answer(request: Request, url: URL): Promise<Response> {
    const { method } = request
    const path = url.pathname
      .replace(/^\/proof\/[^/]+$/, '/proof/:slug')
      .replace(/^\/vaults\/[^/]+\//, '/vaults/:address/')
    const route = testRoutes.find((candidate) => candidate === `${method} ${path}`)
    if (route === undefined) {
      const other = testRoutes.find((candidate) => candidate.endsWith(` ${path}`))
      if (other === undefined) throw new ProblemFailure({ code: 'not_found' })
      throw new ProblemFailure({ code: 'method_not_allowed', headers: { allow: other.split(' ')[0] ?? '' } })
    }
    const failure = findFailure(route)
    if (failure !== undefined) throw new ProblemFailure(failure as TestProblem)
    const status = route === 'POST /vaults' ? 201 : 200
    return Response.json(await routes[route](request, url), { status })
  }

  async function answerApi(request: Request, url: URL): Promise<Response> {
    const requestId = filler(`request ${requests.length}`, 16)
    try {
      const response = await answer(request, url)
      response.headers.set('x-request-id', requestId)
      return response
    } catch (error) {
      if (!(error instanceof ProblemFailure)) throw error
      return toProblemResponse(error.problem, { origin: API_ORIGIN, requestId })
    }
  }

  const rpcDeps = { chain, takeFailure: (method: string) => findFailure(method) as TestRpcError | undefined }

  async function fetchFromService(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    // Node's `Request` rejects a signal of jsdom.
    const { signal = input instanceof Request ? input.signal : undefined, ...rest } = init ?? {}
    signal?.throwIfAborted()
    const request = new Request(input, rest)
    const url = new URL(request.url)
    if (!isOurs(url)) throw new TypeError(`Failed to fetch: ${url.origin} is not an origin of this test service`)
    const response = await (url.origin === API_ORIGIN ? answerApi(request, url) : answerRpc(rpcDeps, request))
    signal?.throwIfAborted()
    return response
  }

  function failNext(request: TestRequest, failure: TestProblem | TestRpcError | 'network'): void {
    const isRoute = (testRoutes as readonly string[]).includes(request)
    // With a misspelt name, the failure would never happen and the test would prove nothing.
    if (!isRoute && !/^[a-z0-9]+_[A-Za-z0-9_]+$/.test(request)) throw new Error(`no such route: ${request}`)
    if (failure !== 'network') {
      const isProblem = typeof failure.code === 'string'
      if (isRoute !== isProblem) throw new Error(`${request} fails with ${isRoute ? 'a problem' : 'an RPC error'}`)
      if (isProblem && !Object.hasOwn(errorCodes, failure.code)) throw new Error(`no such code: ${failure.code}`)
    }
    failures.set(request, [...(failures.get(request) ?? []), failure])
  }

  return {
    config: { apiBaseUrl: API_ORIGIN, chainId, rpcUrl: RPC_ORIGIN },
    user,
    wallet,
    fetch: fetchFromService,
    install() {
      const previous = globalThis.fetch
      let isInstalled = true
      const installed: typeof globalThis.fetch = (input, init) => {
        const url = toUrl(input)
        // If other code has wrapped this function, it can't be removed. It then passes everything on.
        return isInstalled && url !== undefined && isOurs(url) ? fetchFromService(input, init) : previous(input, init)
      }
      globalThis.fetch = installed
      return () => {
        isInstalled = false
        if (globalThis.fetch === installed) globalThis.fetch = previous
      }
    },
    signIn(options = {}) {
      isSignedIn = true
      clientKey = options.clientKey
    },
    signOut() {
      isSignedIn = false
    },
    advanceProof(slug, to) {
      const signing = signings.find(slug)
      if (signing === undefined) throw new Error(`there is no proof ${slug}`)
      signings.advance(signing, to)
      return signings.toProof(signing)
    },
    completeProofs() {
      for (const signing of signings.all) while (!isTerminalProofStatus(signing.status)) signings.advance(signing)
    },
    failNext,
    get transactions() {
      return chain.transactions
    },
    get proofs() {
      return signings.all.map(signings.toProof)
    },
    get requests() {
      return [...requests]
    },
  }
}

const toVaultAddress = (pathname: string) => parseAddress(pathname.split('/')[2])

function isOurs({ origin }: URL): boolean {
  return origin === API_ORIGIN || origin === RPC_ORIGIN
}

/** Undefined for a relative URL, which only a page can resolve. */
function toUrl(input: RequestInfo | URL): URL | undefined {
  const text = typeof input === 'string' ? input : input instanceof URL ? input.href : input.url
  return URL.canParse(text) ? new URL(text) : undefined
}
