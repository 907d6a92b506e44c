import { createProviders, getPreset, type ProviderConfig } from '../../accounts/providers.ts'
import type { Config } from '../../config.ts'
import { CoordinatorError } from '../../errors.ts'
import { systemRandom } from '../../system.ts'
import { type Check, type Context, type Finding, fault, ok, warning } from './check.ts'
import { explain, findCode, toShownUrl } from './reasons.ts'

/** Begins a sign-in with every provider, as the coordinator does, and leaves it at that. A client secret is only used when one ends. */
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
    let url: URL | undefined
    try {
      url = await provider?.start({ state: random(), nonce: random(), codeVerifier: random(), mustChoose: false })
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error
      return describeRefusal(why, where, `OIDC_${id.toUpperCase()}_ISSUER`)
    }
    const redirectUri = `${publicUrl}/auth/${id}/${getPreset(issuer).responseMode === 'form_post' ? 'form' : 'callback'}`
    return evaluateAnswer(url && (await ask(url, signal)), { where, redirectUri, id })
  }

  /** What its page of sign-in says to our client, without following it anywhere. */
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
  const mend = `Register ${redirectUri} for the client of OIDC_${id.toUpperCase()}_CLIENT_ID at the provider.`
  if (answer === undefined)
    return warning(`${where}: its page of sign-in gives no answer`, 'Check that people can reach it.')
  const { status, location } = answer
  const isError = /[?&](error|authError)=|\/error\b/.test(location)
  if (status === 400 || status === 401 || isError)
    return fault(`${where}: it does not accept the client, or its redirect URI`, mend)
  // Some providers keep programs away, and tell us nothing.
  if (status > 400) return warning(`${where}: its page of sign-in answers ${status}`, mend)
  return ok(`${where}: metadata, client and redirect URI are accepted`)
}

function describeRefusal(cause: unknown, where: string, setting: string): Finding {
  const code = findCode(cause)
  const known = explain(code)
  if (known !== undefined) return fault(`${where}: ${known.text}`, `${known.mend}, in ${setting}.`)
  if (cause instanceof CoordinatorError || code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') {
    return fault(
      `${where}: its metadata are of another issuer`,
      `Write ${setting} exactly as "issuer" of its /.well-known/openid-configuration has it.`,
    )
  }
  if (code === 'OAUTH_TIMEOUT')
    return fault(`${where}: no answer from there`, `Check address, network and firewall, in ${setting}.`)
  return fault(
    `${where}: there are no metadata of an OpenID provider (${code ?? 'no reason'})`,
    `Correct ${setting}: /.well-known/openid-configuration is looked for below it.`,
  )
}
