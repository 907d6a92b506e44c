import type { AttackContext, AttackResult } from '../attack.ts'
import { openSignIn } from '../openSignIn.ts'
import type { Target } from '../startTarget.ts'

const EVIL = 'evil.example'

/** Payloads that have bypassed comparisons of URLs. */
function listTargets(app: string): string[] {
  const { host, hostname, port } = new URL(app)
  const words = (text: string) => text.trim().split(/ +|\n */)
  const schemes = words('http: https: HTTP: ftp: ws: file: javascript: data: blob: about: view-source: vbscript:')
  const slashes = [...words(String.raw`// / \\ /\ \/ /// //// %2f%2f /%2f /%5c ／／ /.// /..//`), '/\t/', '/\n/', '']
  const hosts = [
    ...words(`${EVIL} ${host}.${EVIL} ${EVIL}/${host} ${EVIL}?${host} ${EVIL}#${host} ${EVIL}\\${host} ${host}@${EVIL}
      ${EVIL}@${host} user:password@${host} @${host} ${host}%40${EVIL} ${host}%2e${EVIL} ${hostname}. ${hostname}.:${port}
      evil${host} ${hostname}evil:${port} ${hostname}:${port}0 ${hostname}:0${port} ${hostname}: ${hostname}
      ${hostname}:80 ${hostname}:443 ${hostname}\u3002${EVIL} ${hostname}\uff0e${EVIL} ${hostname}\uff61${EVIL}:${port}
      loc\u0430lhost:${port} \u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:${port} 127.0.0.1:${port}
      0x7f000001:${port} 2130706433:${port} 127.1:${port} [::1]:${port} [::ffff:127.0.0.1]:${port} [::1]@${host}
      0:${port} ${host};${EVIL} ${host},${EVIL} ${host}&@${EVIL}`),
    ...['\t', '\n', '\r\n', '\0', ' '].map((odd) => `${host}${odd}.${EVIL}`),
  ]
  const built = [...schemes, ''].flatMap((scheme) =>
    slashes.flatMap((slash) => [EVIL, host].map((each) => `${scheme}${slash}${each}/`)),
  )
  const tricky = hosts.flatMap((each) => [`http://${each}`, `http://${each}/path`, `https://${each}/`, `//${each}`])
  const odd = ['\r\nSet-Cookie: a=b', `\u2028http://${EVIL}`, 'a'.repeat(1500), 'a'.repeat(3000)]
  return [
    ...[...built, ...tricky, ...odd.map((end) => `${app}/${end}`)],
    ...[' ', '\t', '\u0000', '\ufeff'].map((start) => `${start}${app}/`),
    ...words(`${app} ${app}/ ${app}/a/b?c=d#e ${app}/../..//${EVIL} ${app}//${EVIL} ${app}/\\${EVIL}
      ${app}/%0d%0aLocation:%20http://${EVIL} ${app}/?next=http://${EVIL} javascript://${host}/%0aalert(1)
      data:text/html,<script>location='//${EVIL}'</script> data:;base64,//${host} blob:${app}/b9a1 filesystem:${app}/t/x
      http:${host} http:/${host} http:\\\\${host} http:///${host} / . .. # ? \\ null undefined http:// https: http://[ http://%`),
    ...[`java\tscript:alert(1)//${host}`, `java\nscript://${host}/%0aalert(1)`, `ht\ttp://${host}/`],
    ...[`h\nttp://${EVIL}/`, '', 'a'.repeat(3000)],
  ]
}

/** The Accept header that a browser sends when it navigates. */
const PAGE = [['Accept', 'text/html,application/xhtml+xml,*/*;q=0.8']] as const

const toQuery = (text: string) => `?return_to=${encodeURIComponent(text)}`

/** Open redirects through `return_to` and similar parameters: the user must only land on the configured origin. */
export async function openRedirect({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const corpus = [...new Set(listTargets(target.app))]
  // The short run tries those that start with the allowed origin, and some of the others.
  const alike = corpus.filter((text) => text.startsWith(target.app))
  const chosen = size === 'full' ? corpus : [...new Set([...alike, ...random.shuffle(corpus).slice(0, 50)])]
  const faults: string[] = []
  let [tried, accepted, smuggled] = [0, 0, 0]
  for (const text of chosen) {
    tried += 1
    const answer = await target.call({ path: `/auth/google${toQuery(text)}` })
    const label = `return_to ${JSON.stringify(text.slice(0, 100))}`
    if (answer.status === 302) {
      accepted += 1
      // The first redirect may only lead to the provider.
      const next = new URL(answer.headers.get('location') ?? '', target.url)
      if (next.origin !== target.backend.oidc.issuer) faults.push(`${label}: leads to ${next.origin}`)
      const landing = await land(target, text)
      if (landing !== target.app) faults.push(`${label}: lands on ${landing}`)
    } else if (answer.status !== 400 || JSON.parse(answer.body).code !== 'invalid_request') {
      faults.push(`${label}: ${answer.status} ${answer.body.slice(0, 100)}`)
    }
    if (tried % 200 === 0) say(`${tried} of ${chosen.length} URLs tried`)
  }
  for (const good of [target.app, `${target.app}/a/b?c=d#e`]) {
    if ((await land(target, good)) !== target.app) faults.push(`${good} was rejected`)
  }
  for (const query of [
    '?return_to=a&return_to=b',
    `${toQuery(target.app)}&return_to=http://${EVIL}/`,
    `?return_to[]=http://${EVIL}/`,
    `?RETURN_TO=http://${EVIL}`,
    `?next=//${EVIL}`,
  ]) {
    tried += 1
    const { status, headers } = await target.call({ path: `/auth/google${query}` })
    const isSafe = status === 400 || (status === 302 && !(headers.get('location') ?? '').includes(EVIL))
    if (!isSafe) faults.push(`${query}: ${status}`)
    // Without a provider, the service redirects to its only sign-in, which checks the query.
    tried += 1
    const { headers: redirect } = await target.call({ path: `/auth${query}`, headers: PAGE })
    const next = new URL(redirect.get('location') ?? '', target.url)
    if (next.origin !== target.url || next.pathname !== '/auth/google') faults.push(`/auth${query}: leads to ${next}`)
  }
  const names = ['return_to', 'redirect_uri', 'next', 'continue', 'url', 'RelayState', 'location', 'returnTo']
  for (const name of size === 'full' ? names : names.slice(0, 2)) {
    for (const text of [`http://${EVIL}/`, `//${EVIL}`, `/\\${EVIL}`]) {
      tried += 1
      smuggled += 1
      const landing = await land(target, `${target.app}/kept`, `&${name}=${encodeURIComponent(text)}`)
      if (landing !== target.app && landing !== 'refused')
        faults.push(`${name}=${text} at the callback: lands on ${landing}`)
    }
  }
  const paths = `//${EVIL}/%2f.. /%2f%2f${EVIL} /docs//${EVIL} /.${EVIL} //${EVIL} /%5c${EVIL} /?//${EVIL} /;@${EVIL} /auth//${EVIL}
    /proof//${EVIL} /proof/%2f%2f${EVIL} /proof/@${EVIL} /proof/..%2f@${EVIL} /proof/AAAAAAAAAAAAAAAAAAAAAA?next=//${EVIL}`
  for (const path of paths.split(/\s+/)) {
    for (const accept of [[], PAGE]) {
      tried += 1
      const { status, headers } = await target.call({ path, headers: accept })
      const location = headers.get('location')
      // The page of a proof belongs to the app.
      const isKnown = location === undefined || [target.url, target.app].includes(new URL(location, target.url).origin)
      if (!isKnown || location?.includes(EVIL)) faults.push(`${path}: ${status} to ${location}`)
    }
  }
  return {
    tried,
    figures: {
      'URLs at the start': chosen.length,
      'of these, on the allowed origin': accepted,
      'smuggled into the callback': smuggled,
      'landed elsewhere': faults.length,
    },
    faults,
  }
}

/** Signs in and returns the origin on which a browser would land. */
async function land(target: Target, returnTo: string, smuggled = ''): Promise<string> {
  const { callback, login } = await openSignIn(target, 'erin', toQuery(returnTo))
  const response = await fetch(`${callback.href}${smuggled}`, {
    headers: { cookie: `${login.name}=${login.value}` },
    redirect: 'manual',
  })
  await response.body?.cancel()
  const location = response.headers.get('location')
  return location === null ? 'refused' : new URL(location, callback).origin
}
