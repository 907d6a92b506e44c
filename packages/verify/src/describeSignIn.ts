import type { ContentWords, Fact, Shown } from './contentWords.ts'
import { toPrintable, toPrintableLines } from './toPrintable.ts'

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
export function describeSignIn(text: string, { wallet, page }: Shown): ContentWords | undefined {
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
