import { hash } from 'node:crypto'
import { isSafeUrl } from '@countersign/protocol'
import { type Env, type Fault, readBoolean, readSecret } from '@countersign/service'
import { defaultIssuers, getPreset, type Preset, type ProviderConfig, parseAppleKey } from './providers.ts'

const PARTS = ['ISSUER', 'CLIENT_ID', 'DIRECT', 'CLIENT_SECRET', 'CLIENT_SECRET_FILE', 'NAME', 'PROMPT', 'ICON_FILE']
/** For providers whose client secret is derived from a key. */
const KEY_PARTS = ['TEAM_ID', 'KEY_ID', 'PRIVATE_KEY', 'PRIVATE_KEY_FILE']
const NAME = new RegExp(`^OIDC_([A-Z0-9]+)_(?:${[...PARTS, ...KEY_PARTS].join('|')})$`)
/** Paths under `/auth` with another meaning. */
const RESERVED = ['ME', 'LOGOUT', 'SESSION', 'SESSIONS']
const PROMPTS = ['select_account', 'login', 'off'] as const
const MAX_ICON_LENGTH = 16_384

type ReadFile = (path: string) => string
/** Settings of one provider, by the last part of their names. */
type Settings = { env: Env; name(part: string): string; get(part: string): string; readFile: ReadFile; fault: Fault }

/**
 * Reads `OIDC_<ID>_ISSUER`, `_CLIENT_ID`, `_CLIENT_SECRET` and the rest for each provider. The id is in lower case in `/auth/:provider`.
 */
export function readProviders(env: Env, readFile: ReadFile, report: Fault): ProviderConfig[] {
  const fault: Fault = (
    setting,
    problem,
    fix = `Set ${setting} as docs/build/sign-in.md explains for your provider.`,
  ) => report(setting, problem, fix)
  const isOfProvider = (name: string) => /^OIDC_/i.test(name) && name !== 'OIDC_ISSUERS' && env[name] !== undefined
  const names = Object.keys(env).filter(isOfProvider)
  const ids = new Set<string>()
  for (const name of names) {
    const id = NAME.exec(name)?.[1]
    if (id === undefined) fault(name, `unknown; ${suggestProviderName(name)}`)
    else if (RESERVED.includes(id)) fault(name, `reserved: /auth/${id.toLowerCase()} has another meaning`)
    else ids.add(id)
  }
  if (names.length === 0) fault('OIDC_GOOGLE_CLIENT_ID', 'expected at least one identity provider')
  return [...ids].toSorted().map((id) => {
    const name = (part: string) => `OIDC_${id}_${part}`
    return readProvider(id.toLowerCase(), { env, name, get: (part) => env[name(part)] ?? '', readFile, fault })
  })
}

function readProvider(id: string, settings: Settings): ProviderConfig {
  const { name, get, fault } = settings
  const issuer = get('ISSUER') || (defaultIssuers[id] ?? '')
  const isValid = isSafeUrl(issuer)
  if (!isValid) fault(name('ISSUER'), 'expected an https URL, or http on loopback')
  const clientId = get('CLIENT_ID')
  if (clientId === '') fault(name('CLIENT_ID'), 'missing')
  const preset = getPreset(issuer)
  const clientSecret = readClientSecret(settings, preset)
  // The id doesn't say which provider it is: `google` may name another issuer.
  const shown = get('NAME') || preset.name || (isValid ? new URL(issuer).host : '')
  if (shown.length > 40 || /[\p{Cc}\p{Cs}]/u.test(shown)) {
    fault(name('NAME'), 'expected at most 40 characters on one line')
  }
  const prompt = PROMPTS.find((value) => value === get('PROMPT'))
  if (prompt === undefined && get('PROMPT') !== '') fault(name('PROMPT'), `expected ${PROMPTS.join(', ')}`)
  return {
    id,
    issuer,
    clientId,
    clientSecret,
    ...(prompt === undefined ? {} : { prompt }),
    name: shown,
    icon: readIcon(settings) ?? drawIcon(shown),
  }
}

/** A secret, or for Apple the key that creates one. */
function readClientSecret(settings: Settings, { hasKey = false }: Preset): ProviderConfig['clientSecret'] {
  const { env, name, get, readFile, fault } = settings
  if (readBoolean(env, name('DIRECT'), fault)) {
    const secrets = ['CLIENT_SECRET', 'CLIENT_SECRET_FILE', ...KEY_PARTS].filter((part) => get(part) !== '')
    for (const part of secrets) fault(name(part), `expected none with ${name('DIRECT')}=true`)
    return undefined
  }
  const clientSecret = readSecret(env, name('CLIENT_SECRET'), readFile, fault)
  const given = KEY_PARTS.filter((part) => Object.hasOwn(env, name(part)) && get(part) !== '')
  if (!hasKey || given.length === 0) {
    for (const part of given) fault(name(part), 'only for Apple')
    if (clientSecret === '') fault(name('CLIENT_SECRET'), 'missing')
    return clientSecret ?? ''
  }
  const privateKey = readSecret(env, name('PRIVATE_KEY'), readFile, fault)
  const [teamId, keyId] = [get('TEAM_ID'), get('KEY_ID')]
  if (clientSecret !== '') fault(`${name('CLIENT_SECRET')}, ${name('PRIVATE_KEY')}`, 'both are set, expected only one')
  if (teamId === '' || keyId === '') fault(name('PRIVATE_KEY'), `requires ${name('TEAM_ID')} and ${name('KEY_ID')}`)
  try {
    parseAppleKey(privateKey ?? '')
  } catch {
    fault(name('PRIVATE_KEY'), 'expected a P-256 private key in PEM')
  }
  return { teamId, keyId, privateKey: privateKey ?? '' }
}

function readIcon({ name, get, readFile, fault }: Settings): string | undefined {
  const path = get('ICON_FILE')
  if (path === '') return undefined
  try {
    const svg = readFile(path)
    if (/^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/.test(svg) && svg.length <= MAX_ICON_LENGTH) return toIconUrl(svg)
  } catch {
    // An unreadable file is the same fault.
  }
  fault(name('ICON_FILE'), 'expected an SVG file of at most 16 KiB')
  return undefined
}

/** Suggests the closest valid name. Ids have no separators, because they would be ambiguous within the name. */
function suggestProviderName(name: string): string {
  const parts = /^OIDC_(.+?)[_-]?(ISSUER|CLIENT[_-]?ID|CLIENT[_-]?SECRET)S?$/i.exec(name)
  const id = parts?.[1]?.toUpperCase().replace(/[^A-Z0-9]/g, '') ?? ''
  const part = parts?.[2]?.toUpperCase().replace(/^CLIENT[_-]?/, 'CLIENT_')
  if (id === '' || part === undefined) return 'expected OIDC_<ID>_ISSUER, _CLIENT_ID or _CLIENT_SECRET'
  return `expected an id of capital letters and digits; did you mean OIDC_${id}_${part}?`
}

/** White letters have a contrast of at least 4.5 to 1 on these. */
const COLOURS = ['#2f5fd0', '#a8324a', '#1f7a4d', '#7a4bb8', '#9a5b00', '#0f7282', '#5a6472']

/** A key icon, for names without a letter. */
const KEY =
  '<path d="M14.5 5a4.5 4.5 0 0 0-4.2 6.1L5 16.4V19h3v-2h2v-2h2l.9-1.3A4.5 4.5 0 1 0 14.5 5zm1 3.2a1.3 1.3 0 1 1 0 2.6 1.3 1.3 0 0 1 0-2.6z" fill="#fff"/>'

/** Draws the first letter of a name on a colored square. We don't use the providers' trademarks. */
export function drawIcon(name: string): string {
  const letter = /[\p{L}\p{N}]/u.exec(name)?.[0]?.toUpperCase()
  // This byte gives the best-known providers different colors: two begin with G.
  const colour = COLOURS[hash('sha256', name, 'buffer').readUInt8(3) % COLOURS.length]
  const sign =
    letter === undefined
      ? KEY
      : `<text x="12" y="17" text-anchor="middle" font-family="system-ui,sans-serif" font-size="14" font-weight="700" fill="#fff">${letter}</text>`
  return toIconUrl(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="${colour}"/>${sign}</svg>`,
  )
}

/** As an image source, an SVG document cannot run scripts or load anything. */
function toIconUrl(svg: string): string {
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
}
