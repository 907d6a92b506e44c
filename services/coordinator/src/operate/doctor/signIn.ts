import { createProviders, getPreset, type ProviderConfig } from '../../accounts/providers.ts'
import type { Config } from '../../config.ts'
import { CoordinatorError } from '../../errors.ts'
import { systemRandom } from '../../system.ts'
import { type Check, type Context, type Finding, fault, ok, warning } from './check.ts'
import { explain, findCode, toShownUrl } from './reasons.ts'

/** Starts a sign-in with every provider, like the coordinator. It can't check client secrets, which are only used at the end. */
export function createSignInChecks({ subject, clock, fetch }: Context): Check[] {
  const config = subject.coordinator as Config
  const { publicUrl } = config.app

  async function checkProvider(each: ProviderConfig, signal: AbortSignal): Promise<Finding> {
    const { id, issuer } = each
    const where = `${id} at ${toShownUrl(issuer)}`
    const random = () => Buffer.from(systemRandom(32)).toString('base64url')
    let why: unknown
    const onUnavailable = (cause: unknown) => {
      why = cause
    }
    const provider = createProviders([each], { publicUrl, clock, fetch, onUnavailable }).get(id)
    if (provider === undefined || 'direct' in provider) {
      return ok(`${where}: pages sign in there themselves`)
    }
    let url: URL | undefined
    try {
      url = await provider.start({ state: random(), nonce: random(), codeVerifier: random(), mustChoose: false })
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error
      return describeError(why, where, `OIDC_${id.toUpperCase()}_ISSUER`)
    }
    const redirectUri = `${publicUrl}/auth/${id}/${getPreset(issuer).responseMode === 'form_post' ? 'form' : 'callback'}`
    return evaluateAnswer(url && (await ask(url, signal)), { where, redirectUri, id })
  }

  /** Requests the sign-in page without following redirects. */
  async function ask(url: URL, signal: AbortSignal): Promise<Answer | undefined> {
    try {
      const response = await fetch(url, { redirect: 'manual', signal, headers: { accept: 'text/html' } })
      await response.body?.cancel()
      const { status, headers } = response
      return { status, location: headers.get('location') ?? '' }
    } catch {
      return undefined
    }
  }

  return [
    {
      name: 'sign-in',
      settings: /^(OIDC_.*|PUBLIC_URL)$/,
      run: ({ signal }) => Promise.all(config.providers.map((each) => checkProvider(each, signal))),
    },
  ]
}

type Answer = { status: number; location: string }

export function evaluateAnswer(
  answer: Answer | undefined,
  { where, redirectUri, id }: { where: string; redirectUri: string; id: string },
): Finding {
  const fix = `Register ${redirectUri} at the provider, for the client in OIDC_${id.toUpperCase()}_CLIENT_ID.`
  if (answer === undefined)
    return warning(`${where}: no answer from its sign-in page`, 'Check that users can reach it.')
  const { status, location } = answer
  const isError = /[?&](error|authError)=|\/error\b/.test(location)
  if (status === 400 || status === 401 || isError)
    return fault(`${where}: rejected the client or its redirect URI`, fix)
  // Some providers block programs.
  if (status > 400) return warning(`${where}: its sign-in page returned ${status}`, fix)
  return ok(`${where}: metadata, client and redirect URI accepted`)
}

function describeError(cause: unknown, where: string, setting: string): Finding {
  const code = findCode(cause)
  const known = explain(code)
  if (known !== undefined) return fault(`${where}: ${known.text}`, `${known.fix}, in ${setting}.`)
  if (cause instanceof CoordinatorError || code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') {
    return fault(
      `${where}: its metadata names another issuer`,
      `Set ${setting} exactly to "issuer" in its /.well-known/openid-configuration.`,
    )
  }
  if (code === 'OAUTH_TIMEOUT')
    return fault(`${where}: no answer`, `Check the address in ${setting}, the network and the firewall.`)
  return fault(
    `${where}: no OpenID provider metadata (${code ?? 'no reason'})`,
    `Correct ${setting}. The metadata is at /.well-known/openid-configuration below it.`,
  )
}
