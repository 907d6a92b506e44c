import type { ContentWords } from './contentWords.ts'
import { toPrintable } from './toPrintable.ts'

/** EIP-4361, "Message Format": the first two lines. The scheme is optional. */
const HEAD = /^(?:[a-z][a-z0-9+.-]*:\/\/)?(\S+) wants you to sign in with your Ethereum account:\n(\S*)/i

/** A message that a site takes for a login, or that begins like one. Undefined for every other. */
export function describeSignIn(text: string, wallet: string): Omit<ContentWords, 'facts'> | undefined {
  const [, site, account] = HEAD.exec(text) ?? []
  if (site === undefined || account === undefined) return undefined
  const domain = toPrintable(site)
  const expires = readField(text, 'Expiration Time')
  const until = expires === undefined ? '. It does not expire' : `, until ${toPrintable(expires)}`
  const uri = readField(text, 'URI')
  return {
    title: `Sign in with Ethereum: ${domain}`,
    sentence: `A login for ${domain} (EIP-4361).`,
    warnings: [
      `Whoever has the signature can sign in to ${domain} as this wallet${until}.`,
      ...(account.toLowerCase() === wallet.toLowerCase()
        ? []
        : [`It names another account than this wallet: ${toPrintable(account)}.`]),
      ...(uri === undefined || readHost(uri) === site.toLowerCase()
        ? []
        : [`Its URI is of another site: ${toPrintable(uri)}.`]),
    ],
  }
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
