import { fromHex, isPlainObject, type OffChainContent, type TypedData } from '@countersign/protocol'
import { type Grant, nameTokenGrant } from './nameTokenGrant.ts'
import { toPrintable, toPrintableLines } from './toPrintable.ts'

/** One thing that was signed: its name, and its value in printable lines. */
export type Fact = { name: string; value: string }

/** What is or was signed, for a person. Every text is printable. */
export type ContentWords = Grant & { facts: readonly Fact[] }

/** Where content is shown. */
export type Shown = {
  /** The address that signs. */
  wallet: string
  /** The page on which it is about to be signed, and its chain; left out where it was signed before. */
  page?: { host: string; chainId: number }
}

/** A message or typed data, as a person is shown it before signing, or as an opening shows it after. */
export type ShownContent = OffChainContent

const UNKNOWN_USE = 'What its contract or app lets somebody do with the signature is not known here.'

/**
 * What is signed off the chain, in words, field by field: with the name of what is known (EIP-4361, EIP-2612, Permit2, EIP-3009) and
 * a warning where the signature alone gives something away. Content that no enclave would sign is described too.
 *
 * @example
 * const { title, warnings, facts } = describeContent({ kind: 'typed-data', content: typedData }, { wallet })
 */
export function describeContent(shown: ShownContent, where: Shown): ContentWords {
  return shown.kind === 'message'
    ? describeMessage(shown.content.message, where)
    : describeTypedData(shown.content, where.wallet)
}

function describeMessage(message: string, where: Shown): ContentWords {
  const hex = message.slice(2).toLowerCase()
  const text = decode(hex)
  const bytes: Fact = { name: 'Bytes', value: `0x${hex}` }
  if (text === undefined) {
    return {
      title: 'A message that is no text',
      sentence: `${hex.length / 2} bytes, as a personal message (EIP-191).`,
      warnings: ['Nobody can tell from these bytes what they mean. They may be the hash of something else.'],
      facts: [bytes],
    }
  }
  const lines = toPrintableLines(text)
  const isAltered = lines !== text
  const facts = [{ name: 'Message', value: lines }, ...(isAltered ? [bytes] : [])]
  const hidden = isAltered
    ? [
        'The text has invisible, control or right-to-left characters. They are shown as \u{fffd}; the bytes are below it.',
      ]
    : []
  const signIn = describeSignIn(text, where)
  if (signIn !== undefined) {
    return { ...signIn, warnings: [...signIn.warnings, ...hidden], facts: [...signIn.facts, ...facts] }
  }
  return { title: 'A message', sentence: 'A personal message (EIP-191).', warnings: hidden, facts }
}

function describeTypedData(data: TypedData, wallet: string): ContentWords {
  const facts = flattenTypedData(data)
  const hidden = facts.some(({ value }) => value.includes('\u{fffd}'))
    ? ['A text in it has invisible, control or right-to-left characters. They are shown as \u{fffd}.']
    : []
  const grant = nameTokenGrant(data, wallet)
  if (grant !== undefined) return { ...grant, warnings: [...grant.warnings, ...hidden], facts }
  return {
    title: `Typed data: ${toPrintableLines(String(data.primaryType))}`,
    sentence: `Typed data (EIP-712). ${UNKNOWN_USE}`,
    warnings: hidden,
    facts,
  }
}

/** Undefined for what is no UTF-8. */
function decode(hex: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromHex(hex))
  } catch {
    return undefined
  }
}

/**
 * EIP-4361, "Message Format": the first two lines. The scheme is optional. White space before it, or no site at all, is taken by some
 * readers, viem's among them.
 */
const HEAD = /^\s*(?:[a-z][a-z0-9+.-]*:\/\/)?(\S*) wants you to sign in with your Ethereum account:\r?\n(\S*)/i

/** RFC 3339 §5.6. */
const TIME = '\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?:[Zz]|[+-]\\d\\d:\\d\\d)'

/**
 * EIP-4361, "ABNF Message Format", as a whole. The authority is ASCII (RFC 3986 §3.2): no letter only looks like another.
 */
const FORM = new RegExp(
  [
    '^(?:[a-z][a-z0-9+.-]*://)?(?<domain>(?:(?![/?#])[!-~])+) wants you to sign in with your Ethereum account:',
    '(?<account>0x[0-9a-fA-F]{40})',
    '(?:\n(?<statement>[^\n]+))?',
    '\nURI: (?<uri>[!-~]+)',
    'Version: (?<version>1)',
    'Chain ID: (?<chain>[0-9]+)',
    'Nonce: (?<nonce>[a-zA-Z0-9]{8,})',
    `Issued At: (?<issued>${TIME})`,
  ].join('\n') +
    [
      `(?:\nExpiration Time: (?<ends>${TIME}))?`,
      `(?:\nNot Before: (?<begins>${TIME}))?`,
      '(?:\nRequest ID: (?<request>[!-~]*))?',
      '(?:\nResources:(?<resources>(?:\n- [!-~]+)*))?$',
    ].join(''),
)

const NAMES = {
  domain: 'Site',
  account: 'Account',
  statement: 'Statement',
  uri: 'URI',
  version: 'Version',
  chain: 'Chain',
  nonce: 'Nonce',
  issued: 'Issued',
  ends: 'Ends',
  begins: 'Not before',
  request: 'Request',
  resources: 'Resources',
} as const

/** A message that a site takes for a login, or that begins like one. Undefined for every other. */
function describeSignIn(text: string, { wallet, page }: Shown): ContentWords | undefined {
  const [, site, account] = HEAD.exec(text) ?? []
  if (site === undefined || account === undefined) return undefined
  const domain = nameSite(site)
  const fields = FORM.exec(text)?.groups
  // Never the first line that looks like it: a statement is free text, and may look like any field. In another form a site may read
  // no end where a person sees one.
  const until = fields === undefined ? '. It may not expire' : toUntil(fields.ends)
  const uri = fields ? fields.uri : readField(text, 'URI')
  // RFC 3986 §3.2.1: what stands before the sign is a user name, however much it looks like a site.
  const host = site.slice(site.lastIndexOf('@') + 1)
  return {
    title: `Sign in with Ethereum: ${domain}`,
    sentence: `A login for ${domain} (EIP-4361).`,
    warnings: [
      `Whoever has the signature can sign in to ${domain} as this wallet${until}.`,
      ...(account.toLowerCase() === wallet.toLowerCase()
        ? []
        : [`It names another account than this wallet: ${toPrintable(account)}.`]),
      ...(uri === undefined || readHost(uri) === host.toLowerCase()
        ? []
        : [`Its URI is of another site: ${toPrintable(uri)}.`]),
      ...(host === site ? [] : [`The site is ${toPrintable(host)}: what stands before it is a user name.`]),
      ...(page === undefined
        ? []
        : warnOfPage(page, { host, chain: fields ? fields.chain : readField(text, 'Chain ID') })),
      ...(fields ? [] : [MALFORMED]),
    ],
    facts: fields ? toFacts(fields) : [],
  }
}

function nameSite(site: string): string {
  return site === '' ? 'a site that it does not name' : toPrintable(site)
}

function toUntil(expires: string | undefined): string {
  return expires === undefined ? '. It does not expire' : `, until ${expires}`
}

/** A page on which somebody pastes a message cannot see who asks for it. */
function warnOfPage(page: NonNullable<Shown['page']>, { host, chain }: { host: string; chain: string | undefined }) {
  const shownHost = nameSite(host)
  return [
    ...(host.toLowerCase() === page.host
      ? []
      : [
          `It is for ${shownHost}, which is not this page. Sign it only if ${shownHost} itself gave it to you: a site that shows you the login of another can enter there as you.`,
        ]),
    ...(chain === undefined || chain === String(page.chainId)
      ? []
      : [`It is for chain ${toPrintable(chain)}, and this wallet is on chain ${page.chainId}.`]),
  ]
}

const MALFORMED =
  'It does not have the form of the standard (EIP-4361). A site may take it all the same: read every line.'

function toFacts(fields: Record<string, string | undefined>): Fact[] {
  return Object.entries(NAMES).flatMap(([key, name]) => {
    const value = key === 'resources' ? fields[key]?.replace(/^\n- /, '').replaceAll('\n- ', '\n') : fields[key]
    return value === undefined ? [] : [{ name, value: toPrintableLines(value) }]
  })
}

function readField(text: string, name: string): string | undefined {
  return text
    .split('\n')
    .find((line) => line.startsWith(`${name}: `))
    ?.slice(name.length + 2)
}

function readHost(uri: string): string | undefined {
  return URL.canParse(uri) ? new URL(uri).host : undefined
}

/** Every field of typed data under its path, domain first, in the order of the types. */
function flattenTypedData({ domain, types, primaryType, message }: TypedData): Fact[] {
  const facts: Fact[] = [{ name: 'Type', value: toPrintable(String(primaryType)) }]
  const add = (path: string, value: unknown, type: string) => {
    if (Array.isArray(value)) {
      if (value.length === 0) return void facts.push({ name: path, value: '(none)' })
      return value.forEach((item, index) => {
        add(`${path}[${index}]`, item, type.replace(/\[\d*\]$/, ''))
      })
    }
    if (!isPlainObject(value)) return void facts.push({ name: path, value: toText(value) })
    for (const [name, memberType] of orderMembers(value, types, type)) {
      add(`${path}.${toPrintable(name)}`, value[name], memberType)
    }
  }
  add('domain', domain, 'EIP712Domain')
  add('message', message, primaryType)
  return facts
}

/** As the type has them; what it does not name comes after, since nothing that is shown may be left out. */
function orderMembers(value: Record<string, unknown>, types: TypedData['types'], type: string): [string, string][] {
  const declared = Object.hasOwn(types, type) ? types[type] : undefined
  const named = (Array.isArray(declared) ? declared : []).filter(
    (member) => isMember(member) && Object.hasOwn(value, member.name),
  )
  const names = new Set(named.map(({ name }) => name))
  const others = Object.keys(value).filter((name) => !names.has(name))
  return [
    ...named.map(({ name, type: memberType }): [string, string] => [name, memberType]),
    ...others.map((name): [string, string] => [name, '']),
  ]
}

function isMember(member: unknown): member is { name: string; type: string } {
  return isPlainObject(member) && typeof member.name === 'string' && typeof member.type === 'string'
}

function toText(value: unknown): string {
  return toPrintableLines(typeof value === 'string' ? value : String(value))
}
