/** What is particular about a provider, by its issuer. Everybody else is plain OpenID Connect. */
export type Preset = {
  /** For people. */
  name?: string
  scope: string
  /** How the answer comes back: a redirect with a query, or a form that the browser posts. */
  responseMode: 'query' | 'form_post'
  /** Its client secret is made with a key. */
  hasKey?: boolean
}

const PLAIN: Preset = { scope: 'openid email profile', responseMode: 'query' }

/** Apple has no scope `profile`, and posts a form to whoever asks for an e-mail address. */
const APPLE: Preset = { name: 'Apple', scope: 'openid email name', responseMode: 'form_post', hasKey: true }

/** Where a provider with this id is, unless the settings say otherwise. */
export const defaultIssuers: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  apple: 'https://appleid.apple.com',
}

export function getPreset(issuer: string): Preset {
  if (issuer === defaultIssuers.google) return { ...PLAIN, name: 'Google' }
  if (issuer === defaultIssuers.apple) return APPLE
  if (issuer.startsWith('https://login.microsoftonline.com/')) return { ...PLAIN, name: 'Microsoft' }
  return PLAIN
}
