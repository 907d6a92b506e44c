import { createHash, randomBytes } from 'node:crypto'
import { simulatedRoots } from '@countersign/attestation/simulator'
import { createPolicy } from '@countersign/policy'
import {
  type AttestAddressResponse,
  enclavePaths,
  fromHex,
  type Hex,
  hashMessage,
  hashTypedData,
  type OwnerOpening,
  type ProofPayload,
  toCanonicalJson,
  type VaultInfo,
} from '@countersign/protocol'
import { checkReceipt, parseReceiptCar } from '@countersign/receipt'
import { createTestBrowser } from '@countersign/testing'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createTx, toDigest, waitForCompleteProofs, withScope } from '@countersign/testing/stack'
import { createClient } from '../../../services/enclave/test/clientKey.ts'
import { callEnclave, createTestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import { createWitness } from '../../../services/enclave/test/witness.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import {
  type Client,
  createLogin,
  finishSignIn,
  type Mode,
  modes,
  openDirectly,
  post,
  readClaims,
  readCode,
  readFragment,
  type Service,
  type Session,
  signIn,
  startServices,
  startSignIn,
  toAuthorizationUrl,
  visit,
} from '../sessions/startServices.ts'
import { SIGNED } from '../vaults/callSign.ts'
import { callSignItems } from '../vaults/enclaveForgeries.ts'

/* Attacks by the operator, who terminates TLS and has the database: on whose wallet it is, who asked, and who signed in. */

type Attempt = {
  service: Service
  /** Records what an attempt gave. The table shows it, and a fault if it isn't the expected outcome. */
  note(name: string, outcome: string, expected: string | Partial<Record<Mode, string>>): void
}

const permit = {
  domain: { name: 'Token', version: '1', chainId: 1, verifyingContract: `0x${'11'.repeat(20)}` },
  types: {
    Permit: [
      { name: 'owner', type: 'address' },
      { name: 'spender', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'nonce', type: 'uint256' },
      { name: 'deadline', type: 'uint256' },
    ],
  },
  primaryType: 'Permit',
}

/** Everything in this token, for the attacker. */
function createPermit(owner: Hex) {
  const most = String(2n ** 256n - 1n)
  return { ...permit, message: { owner, spender: `0x${'66'.repeat(20)}`, value: most, nonce: '0', deadline: most } }
}

const greeting = { message: '0x68656c6c6f' } as const
const policy = createPolicy({
  version: 1,
  log: null,
  approvers: [],
  rules: [
    {
      kind: 'transaction',
      chainIds: 'any',
      to: 'any',
      maxValueWei: String(10n ** 18n),
      maxFeeWei: String(10n ** 16n),
      approvals: 0,
      approvers: 'any',
    },
  ],
})

async function sign(service: Service, { headers }: Pick<Session, 'headers'>, path: string, body: object) {
  const response = await post(service, headers, path, body)
  return response.ok ? SIGNED : readCode(response)
}

/** Stamps a permit of the session's wallet, or of another address. */
function stampPermit({ address }: Pick<Session, 'address'>, by: Client) {
  const digest = hashTypedData(createPermit(address))
  return by.stamp({ address, vault: null, kind: 'typed-data', digest, issuedMs: Date.now() })
}

/** Signs a permit as the holder of this session. */
function signPermit(service: Service, session: Session) {
  const stamp = service.mode === 'cookie' ? {} : { stamp: stampPermit(session, session.client) }
  return sign(service, session, '/sign/typed-data', { ...createPermit(session.address), ...stamp })
}

/** Calls for a statement about an address, as the page of `client` does. */
async function attest(service: Service, session: Session, client: Client, vault?: VaultInfo) {
  const address = vault?.address ?? session.address
  const use = vault === undefined ? null : { policy: vault.policyHash, rule: null }
  const stamp = client.stamp({ address, vault: use, kind: 'address', digest: null, issuedMs: Date.now() })
  const path = vault === undefined ? '/wallet/attest' : `/vaults/${address}/attest`
  const response = await post(service, session.headers, path, service.mode === 'cookie' ? {} : { stamp })
  if (!response.ok) throw new Error(`address not attested: ${await readCode(response)}`)
  return (await response.json()) as AttestAddressResponse
}

/** Reads an address proof as a page or a reader does. Returns `accepted` or the failed steps. */
async function createReader({ backend }: Service, slug: string) {
  const [proof] = await waitForCompleteProofs({ url: backend.url, slugs: [slug], timeoutMs: 90_000 })
  const { ipfsCid } = proof as ProofPayload
  const car = await fetch(`${backend.url}/ipfs/${ipfsCid}?format=car`)
  const { bytes, collateral, blocks } = parseReceiptCar(new Uint8Array(await car.arrayBuffer()))
  return async (opening?: OwnerOpening) => {
    const { steps } = await checkReceipt(bytes, collateral as Uint8Array, {
      roots: simulatedRoots(),
      mockEntropyKeys: [backend.satellite.publicKey],
      cid: ipfsCid ?? '',
      blocks,
      ...(opening && { opening: toCanonicalJson(opening) }),
    })
    const failed = steps.filter(({ status }) => status === 'fail').map(({ id }) => id)
    if (failed.length > 0) return `failed: ${failed}`
    return opening === undefined ? 'owner sealed' : `owner is ${opening.identity.subject}`
  }
}

/** Bob's session with the public key of Alice's browser, so that the stamps of her page are valid in it. */
const signInAsTwin = (service: Service, { client }: Pick<Session, 'client'>) => signIn(service, { as: 'bob', client })

/** The operator passes Alice's calls on in Bob's session, so that her deposits go to Bob's vault. */
async function attackOwner({ service, note }: Attempt) {
  const alice = await signIn(service, { as: 'alice' })
  const twin = await signInAsTwin(service, alice)
  const created = await post(service, twin.headers, '/vaults', { policy })
  note('creates Alice’s vault in Bob’s name', created.ok ? 'created' : await readCode(created), 'created')
  const vault = (await created.json()) as VaultInfo
  const { slug, owner } = await attest(service, twin, alice.client, vault)
  const own = await attest(service, alice, alice.client)
  const read = await createReader(service, slug)
  note('shows its proof without the owner', await read(), 'owner sealed')
  note('shows its proof with the owner', await read(owner), 'owner is bob')
  const renamed = { ...owner, identity: own.owner.identity }
  note('puts Alice’s name into the opening', await read(renamed), 'failed: opening')
  note('shows the opening of Alice’s wallet', await read(own.owner), 'failed: opening')
  const txMetadata = createTx(1, { value: String(10n ** 18n) })
  const digest = toDigest(txMetadata)
  const bob = await signIn(service, { as: 'bob' })
  const stamp = bob.client.stamp({
    address: vault.address,
    vault: { policy: vault.policyHash, rule: 0 },
    kind: 'transaction',
    digest: fromHex(digest.slice(2)),
    issuedMs: Date.now(),
  })
  const body = { digest, txMetadata, wallet: vault.address, rule: 0, ...(service.mode !== 'cookie' && { stamp }) }
  note('pays from it as Bob', await sign(service, bob, '/sign/digest', body), SIGNED)
}

/** After Alice has signed out, the operator restores her session and uses what it has seen of her. */
async function attackSignedOut({ service, note }: Attempt) {
  const { backend, mode } = service
  const alice = await signIn(service, { as: 'alice' })
  const { headers, sid, address } = alice
  const thief = createClient()
  const digest = hashMessage(greeting.message)
  const seen = alice.client.stamp({ address, vault: null, kind: 'message', digest, issuedMs: Date.now() })
  const recorded = { ...greeting, ...(mode !== 'cookie' && { stamp: seen }) }
  note('(Alice signs a message)', await sign(service, alice, '/sign/message', recorded), SIGNED)
  const keyId = await readKeyId(service, address)
  const where = `sid_hash = sha256(decode('${sid}', 'hex'))`
  const [row] = await backend.withDatabase((query) =>
    query(`select to_jsonb(sessions) as row from sessions where ${where}`),
  )
  await post(service, headers, '/auth/logout', {})
  const before = await countSignings(service)
  const body = createPermit(address)
  const trySign = (stamp?: object) => sign(service, alice, '/sign/typed-data', { ...body, ...(stamp && { stamp }) })
  note('signs a permit after the sign-out', await trySign(stampPermit(alice, thief)), 'not_authenticated')
  const restore = (change?: string) =>
    backend.withDatabase(async (query) => {
      await query(`delete from sessions where ${where}`)
      await query('insert into sessions select * from jsonb_populate_record(null::sessions, $1)', [
        JSON.stringify(row?.row),
      ])
      if (change !== undefined) await query(`update sessions set ${change} where ${where}`)
    })
  const missing = { cookie: SIGNED, bound: 'stamp_missing', direct: 'stamp_missing' }
  await restore()
  note('restores the session', await trySign(), missing)
  note('… and stamps with its own key', await trySign(stampPermit(alice, thief)), 'stamp_invalid')
  note('… and adds Alice’s stamp of a message', await trySign(seen), 'stamp_invalid')
  note('… and repeats Alice’s message', await sign(service, alice, '/sign/message', recorded), SIGNED)
  await restore('client_key = null')
  note('… without its key', await trySign(), missing)
  await restore(`client_key = decode('${thief.clientKey}', 'hex')`)
  const expected = { cookie: 'stamp_invalid', bound: 'stamp_invalid', direct: 'stamp_invalid' }
  note('… with the thief’s key, and stamps', await trySign(stampPermit(alice, thief)), expected)
  const count = String((await countSignings(service)) - before)
  // With a key, only the repeated message.
  note('(new signatures)', count, { cookie: '3', bound: '1', direct: '1' })
  const enclave = { url: backend.enclaveUrl, coordinator: createTestCoordinator() }
  const grant = (row?.row as { grant_token?: string } | undefined)?.grant_token
  const toItem = (stamp?: object) => {
    const item = { kind: 'typed-data', sid, grant, keyId, content: body, witness: createWitness() }
    return { ...item, ...(stamp && { stamp }) }
  }
  note('calls the enclave itself', await callSignItems(enclave, toItem()), missing)
  const stamped = toItem(stampPermit(alice, thief))
  note('calls the enclave itself, and stamps', await callSignItems(enclave, stamped), 'stamp_invalid')
}

async function countSignings({ backend }: Service): Promise<number> {
  const [row] = await backend.withDatabase((query) => query('select count(*)::int as count from signings'))
  return Number(row?.count)
}

async function readKeyId({ backend }: Service, address: Hex): Promise<string> {
  const [row] = await backend.withDatabase((query) =>
    query(`select encode(kms_key_id, 'hex') as key from wallets where address = decode($1, 'hex')`, [address.slice(2)]),
  )
  return String(row?.key)
}

/** The operator starts a sign-in of its own and sends Alice's browser through it, which the provider still knows. */
async function attackSilently(attempt: Attempt) {
  const { service, note } = attempt
  const { mode, backend } = service
  const browser = createTestBrowser()
  const alice = await signIn(service, { as: 'alice', browser })
  const [operator, own] = [createTestBrowser(), createClient()]
  const go = async (clientKey: string | undefined) => {
    const url = await startSignIn(service, operator, clientKey)
    if (!(url instanceof URL)) return url
    url.searchParams.set('prompt', 'none')
    const callback = await visit(browser, url, { as: 'nobody', until: backend.url })
    if (callback === undefined) return 'no callback'
    const session = await finishSignIn(service, operator, callback, own)
    if (typeof session === 'string') return session
    return session.address === alice.address ? signPermit(service, session) : 'another wallet'
  }
  const through = { cookie: SIGNED, bound: SIGNED, direct: 'not_found' }
  note('signs in silently through the service', await go(mode === 'cookie' ? undefined : own.clientKey), through)
  if (mode === 'bound') note('signs in silently without a key', await go(undefined), 'session_not_bound')
  if (mode === 'direct') await attackDirectly(attempt, { browser, alice, own })
}

/** The operator has the page's client id, its own client at the same provider, and everything that Alice's page sent. */
async function attackDirectly(
  { service, note }: Attempt,
  { browser, alice, own }: { browser: ReturnType<typeof createTestBrowser>; alice: Session; own: Client },
) {
  const { url, enclaveUrl } = service.backend
  const login = createLogin(own)
  const { loginSecret } = login
  const callback = `${url}/auth/google/callback`
  const silent = { prompt: 'none' }
  const stolen = await visit(browser, toAuthorizationUrl(service, login, { ...silent, redirect_uri: callback }), {
    as: 'nobody',
    until: url,
  })
  note('redirects the page’s client to itself', stolen === undefined ? 'refused by the provider' : 'code received', {
    direct: 'refused by the provider',
  })
  // The token reaches only the page: browsers send no fragment to a server.
  const page = await visit(browser, toAuthorizationUrl(service, login, silent), { as: 'nobody', until: APP_ORIGIN })
  const fragment = readFragment(page)
  const places = [page?.search === '' ? '' : 'query', fragment.has('id_token') ? 'fragment' : '']
  note('sends the page a token it did not ask for', `in the ${places.join('')} only`, {
    direct: 'in the fragment only',
  })

  const open = async (token: object) => {
    const { status, body } = await callEnclave(enclaveUrl, createTestCoordinator(), enclavePaths.openSession, token)
    return status === 200 ? 'opened' : (body as { error: { code: string } }).error.code
  }
  const idToken = await exchangeCode(service, browser, { nonce: login.nonce, callback })
  if (readClaims({ idToken }).sub !== 'alice') throw new Error('expected a token of Alice for the operator’s client')
  const operators = { idToken, loginSecret, clientKey: own.clientKey }
  note('signs in silently with its own client', await open(operators), { direct: 'id_token_invalid' })
  const { token } = alice
  note('sends Alice’s token with its own key', await open({ ...token, clientKey: own.clientKey }), {
    direct: 'id_token_invalid',
  })
  // Valid otherwise, or the code would be another.
  note('sends Alice’s token again', await open({ ...token }), { direct: 'id_token_replayed' })
  // Before Alice's page does: a session opens, but only for her key.
  const early = createLogin(alice.client)
  const asked = await visit(browser, toAuthorizationUrl(service, early), { as: 'alice', until: APP_ORIGIN })
  const fresh = { idToken: readFragment(asked).get('id_token') ?? '', loginSecret: early.loginSecret }
  const taken = await openDirectly(service, { ...fresh, clientKey: alice.client.clientKey }, own)
  if (typeof taken === 'string') throw new Error(`expected a session, got ${taken}`)
  note('uses Alice’s token before her page does', await signPermit(service, taken), { direct: 'stamp_invalid' })
}

/** Gets an ID token of Alice's for the client whose redirect URI and secret the operator has. */
async function exchangeCode(
  { backend: { oidc, url } }: Service,
  browser: ReturnType<typeof createTestBrowser>,
  { nonce, callback }: { nonce: string; callback: string },
): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const start = new URL('/auth', oidc.issuer)
  start.search = String(
    new URLSearchParams({
      client_id: oidc.clientId,
      redirect_uri: callback,
      response_type: 'code',
      scope: 'openid email profile',
      state: 'x',
      nonce,
      prompt: 'none',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }),
  )
  const landed = await visit(browser, start, { as: 'nobody', until: url })
  const response = await fetch(new URL('/token', oidc.issuer), {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${oidc.clientId}:${oidc.clientSecret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: landed?.searchParams.get('code') ?? '',
      redirect_uri: callback,
      code_verifier: verifier,
    }),
  })
  return String(((await response.json()) as { id_token?: string }).id_token)
}

/** The operator ends Alice's sign-in with Bob's, so that her page works in Bob's wallet. */
async function attackWithOwnAccount({ service, note }: Attempt) {
  const { mode, backend } = service
  const [page, bobs] = [createTestBrowser(), createTestBrowser()]
  const alice = await signIn(service, { as: 'alice', browser: page })
  const bob = await signIn(service, { as: 'bob', browser: bobs })
  const { client } = alice
  const own = await attest(service, alice, client)
  let swapped: Session
  if (mode === 'direct') {
    const { idToken = '' } = bob.token ?? {}
    const token = { idToken, loginSecret: alice.token?.loginSecret ?? '', clientKey: client.clientKey }
    const opened = await openDirectly(service, token, client)
    note('gives Alice’s page Bob’s token', typeof opened === 'string' ? opened : 'opened', 'oauth_exchange_failed')
    swapped = await signInAsTwin(service, alice)
  } else {
    const url = await startSignIn(service, page, mode === 'bound' ? client.clientKey : undefined)
    const callback = url instanceof URL ? await visit(bobs, url, { as: 'bob', until: backend.url }) : undefined
    const finished = callback && (await finishSignIn(service, page, callback, client))
    if (finished === undefined || typeof finished === 'string') throw new Error(`expected a session, got ${finished}`)
    swapped = finished
  }
  const isBobs = swapped.address === bob.address ? 'Bob’s wallet' : 'another wallet'
  note('gives Alice’s page Bob’s session', isBobs, 'Bob’s wallet')
  const { slug, owner } = await attest(service, swapped, client)
  const read = await createReader(service, slug)
  note('… and its address proof', await read(owner), 'owner is bob')
  note('… with Alice’s name in the opening', await read({ ...owner, identity: own.owner.identity }), 'failed: opening')
  // What the page compares the owner with: no one but the provider could have signed it.
  if (mode === 'direct') {
    const { sub } = readClaims(alice.token ?? { idToken: '' })
    note('… to a page that has Alice’s token', sub === owner.identity.subject ? 'same owner' : 'another owner', {
      direct: 'another owner',
    })
  }
}

const attacks = {
  'another’s address': attackOwner,
  'signed out': attackSignedOut,
  'silent sign-in': attackSilently,
  'Bob’s sign-in': attackWithOwnAccount,
}

/** The attacks that decide what a browser key and a direct sign-in are good for, on a service of each mode. */
export async function sessions({ say }: AttackContext): Promise<AttackResult> {
  return withScope(async (scope) => {
    const services = await startServices(scope)
    const rows = new Map<string, Partial<Record<Mode, string>>>()
    const faults: string[] = []
    let tried = 0
    for (const [attack, run] of Object.entries(attacks)) {
      for (const service of services) {
        const { mode } = service
        say(`${attack}, ${mode}`)
        await run({
          service,
          note(name, outcome, expected) {
            tried += 1
            const wanted = typeof expected === 'string' ? expected : expected[mode]
            if (outcome !== wanted) faults.push(`${attack}, ${mode}: ${name}: expected ${wanted}, got ${outcome}`)
            rows.set(`${attack}\n${name}`, { ...rows.get(`${attack}\n${name}`), [mode]: outcome })
          },
        })
      }
    }
    const table = {
      head: ['Attack', 'The operator', 'Cookie', 'Browser key, through the service', 'Browser key, direct'],
      rows: [...rows].map(([name, outcomes]) => [...name.split('\n'), ...modes.map((mode) => outcomes[mode] ?? '–')]),
    }
    return { tried, figures: {}, faults, table }
  })
}
