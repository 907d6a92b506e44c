import { fromHex, isPlainObject, type OffChainContent, type TypedData } from '@countersign/protocol'
import { type Grant, nameTokenGrant } from './nameTokenGrant.ts'
import { toPrintable, toPrintableLines } from './toPrintable.ts'

/** A name and a value in printable lines. */
export type Fact = { name: string; value: string }

/** Signed content in words. Every text is printable. */
export type ContentWords = Grant & { facts: readonly Fact[] }

/** The context in which content is shown. */
export type DisplayContext = {
  wallet: string
  /** The signing page and its chain. Undefined after signing. */
  page?: { host: string; chainId: number }
}

/** A message or typed data, before signing or from an opening. */
export type ShownContent = OffChainContent

const UNKNOWN_USE = 'The effect of the signature depends on the contract or app.'

/**
 * Describes a message or typed data field by field. Recognises EIP-4361, EIP-2612, Permit2 and EIP-3009, and warns if the signature gives
 * access to something without a transaction. Also describes content that no enclave would sign.
 *
 * @example
 * const { title, warnings, facts } = describeContent({ kind: 'typed-data', content: typedData }, { wallet })
 */
export function describeContent(signed: ShownContent, context: DisplayContext): ContentWords {
  return signed.kind === 'message'
    ? describeMessage(signed.content.message, context)
    : describeTypedData(signed.content, context.wallet)
}

function describeMessage(message: string, context: DisplayContext): ContentWords {
  const hex = message.slice(2).toLowerCase()
  const text = decode(hex)
  const bytes: Fact = { name: 'Bytes', value: `0x${hex}` }
  if (text === undefined) {
    return {
      title: 'A message in bytes',
      sentence: `${hex.length / 2} bytes, as a personal message (EIP-191).`,
      warnings: ['These bytes are not text. They may be the hash of something else.'],
      facts: [bytes],
    }
  }
  const lines = toPrintableLines(text)
  const isAltered = lines !== text
  const facts = [{ name: 'Message', value: lines }, ...(isAltered ? [bytes] : [])]
  const hidden = isAltered
    ? ['The text has invisible, control or right-to-left characters, shown as \u{fffd}. The bytes are below.']
    : []
  const signIn = describeSignIn(text, context)
  if (signIn !== undefined) {
    return { ...signIn, warnings: [...signIn.warnings, ...hidden], facts: [...signIn.facts, ...facts] }
  }
  return { title: 'A message', sentence: 'A personal message (EIP-191).', warnings: hidden, facts }
}

function describeTypedData(data: TypedData, wallet: string): ContentWords {
  const facts = flattenTypedData(data)
  const hidden = facts.some(({ value }) => value.includes('\u{fffd}'))
    ? ['A field has invisible, control or right-to-left characters, shown as \u{fffd}.']
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

/** Undefined for invalid UTF-8. */
function decode(hex: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromHex(hex))
  } catch {
    return undefined
  }
}

/**
 * EIP-4361, "Message Format": the first two lines. The scheme is optional. Some parsers, such as viem's, accept white space before it, or no
 * site.
 */
const HEAD = /^\s*(?:[a-z][a-z0-9+.-]*:\/\/)?(\S*) wants you to sign in with your Ethereum account:\r?\n(\S*)/i

/** RFC 3339 §5.6. */
const TIME = '\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?:[Zz]|[+-]\\d\\d:\\d\\d)'

/** EIP-4361, "ABNF Message Format". The authority is ASCII (RFC 3986 §3.2), so it has no look-alike letters. */
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

/** Describes a message that is a login or starts like one. Undefined for others. */
function describeSignIn(text: string, { wallet, page }: DisplayContext): ContentWords | undefined {
  const [, site, account] = HEAD.exec(text) ?? []
  if (site === undefined || account === undefined) return undefined
  const domain = nameSite(site)
  const fields = FORM.exec(text)?.groups
  // Uses only the strict form: the statement is free text and can imitate any field, such as an expiry time that a site ignores.
  const until = fields === undefined ? '. It may never expire' : toUntil(fields.ends)
  const uri = fields ? fields.uri : readField(text, 'URI')
  // RFC 3986 §3.2.1: the part before @ is a user name, even if it looks like a site.
  const host = site.slice(site.lastIndexOf('@') + 1)
  return {
    title: `Sign in with Ethereum: ${domain}`,
    sentence: `A sign-in request for ${domain} (EIP-4361).`,
    warnings: [
      `Anyone with the signature can sign in to ${domain} as this wallet${until}.`,
      ...(account.toLowerCase() === wallet.toLowerCase()
        ? []
        : [`It is for another account than this wallet: ${toPrintable(account)}.`]),
      ...(uri === undefined || readHost(uri) === host.toLowerCase()
        ? []
        : [`Its URI belongs to another site: ${toPrintable(uri)}.`]),
      ...(host === site ? [] : [`The site is ${toPrintable(host)}. The part before @ is a user name.`]),
      ...(page === undefined
        ? []
        : warnOfPage(page, { host, chain: fields ? fields.chain : readField(text, 'Chain ID') })),
      ...(fields ? [] : [MALFORMED]),
    ],
    facts: fields ? toFacts(fields) : [],
  }
}

function nameSite(site: string): string {
  return site === '' ? 'an unnamed site' : toPrintable(site)
}

function toUntil(expires: string | undefined): string {
  return expires === undefined ? '. It never expires' : `, until ${expires}`
}

/** A page where users paste messages can't see which site requested them. */
function warnOfPage(
  page: NonNullable<DisplayContext['page']>,
  { host, chain }: { host: string; chain: string | undefined },
) {
  const shownHost = nameSite(host)
  return [
    ...(host.toLowerCase() === page.host
      ? []
      : [
          `It is for ${shownHost}, not for this page. Sign it only if you got it from ${shownHost} itself. Otherwise another site can sign in there as you.`,
        ]),
    ...(chain === undefined || chain === String(page.chainId)
      ? []
      : [`It is for chain ${toPrintable(chain)}, and this wallet is on chain ${page.chainId}.`]),
  ]
}

const MALFORMED = 'It doesn’t follow the standard (EIP-4361), but a site may accept it. Read every line.'

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

/** In the order of the type, followed by undeclared members. */
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
