import {
  fromHex,
  type Hex,
  isPlainObject,
  type Kind,
  sessionInfo,
  toHex,
  toStampBytes,
  vaultList,
  walletInfo,
} from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import { type RequestParameters, request } from '../client/request.ts'
import type { ClientKey, SessionKey } from './keyStore.ts'

export type Parameters = RequestParameters<unknown>

/** How to call the service in a session, and where its key is. */
export type StampContext = {
  apiBaseUrl: string
  /** Members of every request of this session. */
  shared: Partial<Pick<Parameters, 'headers' | 'credentials'>>
  findKey(session: SessionKey): Promise<ClientKey | undefined>
}

/** The clock of a device may differ from the service's by this. */
const MAX_CLOCK_OFFSET_MS = 10 * 60_000

const kindsOfPaths: Record<string, Kind> = {
  '/sign/digest': 'transaction',
  '/sign/message': 'message',
  '/sign/typed-data': 'typed-data',
  '/sign/authorization': 'authorization',
  '/wallet/attest': 'address',
  attest: 'address',
  revoke: 'revocation',
}

function read<R>({ apiBaseUrl, shared }: StampContext, path: string, schema: RequestParameters<R>['schema']) {
  return request({ apiBaseUrl }, { method: 'GET', path, schema, ...shared })
}

/** The key of the open session, and the service's time, which stamps use. Throws `session_not_bound` or `clock_wrong`. */
export async function readSession(context: StampContext): Promise<{ key: ClientKey; serviceMs: number }> {
  const { clientKey, expiresAt, time } = await read(context, '/auth/session', sessionInfo)
  if (clientKey === null) throw notBound('it is a cookie session')
  const serviceMs = Date.parse(time)
  const offsetMs = Math.abs(serviceMs - Date.now())
  // Before the key, which a wrong clock may count as expired.
  if (offsetMs > MAX_CLOCK_OFFSET_MS) {
    const details = `it differs from the service's by ${Math.round(offsetMs / 60_000)} minutes`
    throw createError('clock_wrong', 'the clock of this device is wrong', { details })
  }
  const key = await context.findKey({ clientKey, expiresMs: Date.parse(expiresAt) })
  if (key === undefined) throw notBound('this browser does not have its key')
  return { key, serviceMs }
}

function notBound(details: string) {
  return createError('session_not_bound', 'the session is not bound to this browser', { details })
}

/** The body of a request for a signature with its stamp. Undefined for other requests. */
export async function stampRequest(context: StampContext, { path, body, digest, signer: wallet }: Parameters) {
  const [, vaultOfPath, action = ''] = /^\/vaults\/(.*)\/(attest|revoke)$/.exec(path) ?? []
  const kind = kindsOfPaths[path] ?? kindsOfPaths[action]
  if (kind === undefined) return undefined
  const members: { wallet?: Hex; rule?: number; digest?: Hex } = isPlainObject(body) ? body : {}
  // Only requests for a vault have a rule.
  const vault = vaultOfPath ?? (members.rule === undefined ? undefined : members.wallet)
  const signer = vault ?? members.wallet ?? wallet ?? (await read(context, '/wallet/me', walletInfo)).address
  const address = signer.toLowerCase() as Hex
  const policy = vault === undefined ? undefined : await findPolicyHash(context, address)
  const signed = digest ?? members.digest
  const { key, serviceMs: issuedMs } = await readSession(context)
  const bytes = toStampBytes({
    address,
    vault: policy === undefined ? null : { policy, rule: members.rule ?? null },
    kind,
    digest: signed === undefined ? null : fromHex(signed.slice(2)),
    issuedMs,
  })
  return { ...members, stamp: { issuedMs, signature: toHex(await key.sign(bytes)) } }
}

/** Undefined for an unknown vault, which the service rejects. A wrong hash from the service makes the stamp invalid, and useless. */
async function findPolicyHash(context: StampContext, address: Hex): Promise<string | undefined> {
  const { vaults } = await read(context, '/vaults', vaultList)
  return vaults.find((vault) => vault.address === address)?.policyHash
}
