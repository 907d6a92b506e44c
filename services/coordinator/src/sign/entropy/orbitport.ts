import type { Witness } from '@countersign/receipt'
import { z } from 'zod'
import type { Clock } from '../../system.ts'
import { type EntropySource, EntropySourceError } from './entropySource.ts'
import { type Fetch, fetchJson } from './fetchJson.ts'

export type CreateOrbitportSourceParameters = {
  /** The gateway's base URL, without `/api/v1/services/trng`. */
  url: string
  /** The URL that exchanges client credentials for an access token. */
  tokenUrl: string
  clientId: string
  clientSecret: string
  fetch: Fetch
  clock: Clock
  timeoutMs?: number
}

const AUDIENCE = 'https://op.spacecomputer.io/api'
/** The gateway allows about four requests per second and token, and returns one sample each. */
const MAX_REQUESTS = 4
const TOKEN_MARGIN_MS = 60_000
const MAX_TOKEN_LIFE_MS = 86_400_000

const token = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.number().positive().optional(),
})
const answer = z.object({
  service: z.literal('trng'),
  src: z.string().regex(/^[\w-]{1,64}$/),
  data: z.string().regex(/^[0-9a-f]{64}$/),
})

/**
 * SpaceComputer's cTRNG over REST (spacecomputer-io/orbitport `docs/USER_GUIDE.md`). Its answers name no key and no time, so there is no
 * signature to verify: `isSigned` is false, the source needs `ENTROPY_ALLOW_UNSIGNED`, and verifiers fail that step of the receipt. Samples
 * carry the time of the answer by our clock, 0 as sequence, zeros as key and signature, and the origin that the gateway names.
 */
export function createOrbitportSource(parameters: CreateOrbitportSourceParameters): EntropySource {
  const { url, tokenUrl, clientId, clientSecret, fetch, clock, timeoutMs = 1_500 } = parameters
  const endpoint = `${url.replace(/\/+$/, '')}/api/v1/services/trng`
  let cached: { accessToken: string; expiresAt: number } | undefined
  let pending: Promise<string> | undefined

  async function requestToken(): Promise<string> {
    const credentials = { client_id: clientId, client_secret: clientSecret }
    const body = { ...credentials, audience: AUDIENCE, grant_type: 'client_credentials' }
    const parsed = token.safeParse(await fetchJson({ fetch }, { url: tokenUrl, timeoutMs, body }))
    if (!parsed.success) throw new EntropySourceError('malformed', { details: 'token' })
    const { access_token: accessToken, expires_in: expiresInS = 0 } = parsed.data
    const lifeMs = Math.min(expiresInS * 1000, MAX_TOKEN_LIFE_MS) - TOKEN_MARGIN_MS
    cached = { accessToken, expiresAt: clock.now() + lifeMs }
    return accessToken
  }

  async function getToken(): Promise<string> {
    if (cached && clock.now() < cached.expiresAt) return cached.accessToken
    pending ??= requestToken().finally(() => {
      pending = undefined
    })
    return pending
  }

  async function getSample(): Promise<Witness> {
    const accessToken = await getToken()
    try {
      const headers = { authorization: `Bearer ${accessToken}` }
      return parseAnswer(await fetchJson({ fetch }, { url: endpoint, timeoutMs, headers }))
    } catch (error) {
      // The gateway revoked the token early. The next call requests another.
      const isRefused = error instanceof EntropySourceError && error.code === 'unauthorized'
      if (isRefused && cached?.accessToken === accessToken) cached = undefined
      throw error
    }
  }

  function parseAnswer(value: unknown): Witness {
    const parsed = answer.safeParse(value)
    if (!parsed.success) throw new EntropySourceError('malformed', { details: 'not a trng answer' })
    const { src, data } = parsed.data
    return {
      source: `orbitport/${src}`,
      valueHex: data,
      signatureHex: '00'.repeat(64),
      publicKey: '00'.repeat(32),
      timestamp: new Date(clock.now()).toISOString(),
      sequence: 0,
    }
  }

  return {
    name: 'orbitport',
    isSigned: false,
    async getSamples(count) {
      const requests = Array.from({ length: Math.min(count, MAX_REQUESTS) }, getSample)
      const outcomes = await Promise.allSettled(requests)
      const samples = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
      const failed = outcomes.find((outcome) => outcome.status === 'rejected')
      if (samples.length === 0 && failed) throw failed.reason
      return samples
    },
  }
}
