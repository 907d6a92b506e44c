/** A client that is busy may take some seconds to notice that a connection was closed. */
const MARGIN_S = 5
/** For how long the SDK waits for a signing, and for how long the port may be closed at a restart. */
const SIGNING_S = 30
const CLOSED_S = 45

/** Our own rules for HAProxy's configuration, beyond what HAProxy itself checks. One sentence for each fault. */
export function checkProxy(text: string): string[] {
  const faults: string[] = []
  const sections = toSections(text)
  const find = (name: string) => sections.get(name) ?? []
  const [global, defaults, frontend] = [find('global'), find('defaults'), find('frontend public')]
  const coordinators = find('backend coordinators')
  const lines = [...sections.values()].flat()

  const formats = lines.filter((line) => line.startsWith('log-format '))
  // %r and %HU have the query, and so the code of a sign-in; httplog has %r, and comes back where a section asks for it.
  const hasQuery = formats.some((line) => /%(\{[^}]*\})?(r|HU|HQ)\b/.test(line))
  if (hasQuery || lines.includes('option httplog') || !defaults.some((line) => line.startsWith('log-format '))) {
    faults.push('it logs queries')
  }
  if (!coordinators.includes('option redispatch 1')) faults.push('a call stays with a coordinator that is gone')
  if (!coordinators.some((line) => /^retries [1-9]$/.test(line))) faults.push('nothing is tried again')
  const retried = coordinators.find((line) => line.startsWith('retry-on '))?.split(' ') ?? []
  for (const reason of ['conn-failure', 'empty-response']) {
    if (!retried.includes(reason)) faults.push(`a call is not repeated after ${reason}`)
  }
  if (!coordinators.includes('option http-buffer-request')) {
    faults.push('a call is not repeated whose body comes after its head')
  }
  const once = frontend.find((line) => line.startsWith('use_backend once if ')) ?? ''
  for (const path of ['/sign/message', '/sign/typed-data', '^/auth/[^/]+/callback$']) {
    if (!once.split(' ').includes(path)) faults.push(`${path} is sent twice`)
  }
  if (!coordinators.includes('http-request disable-l7-retry if { fe_name itself }')) {
    faults.push('the proxy repeats what must not be repeated')
  }
  // A call that is not the first of its connection: HAProxy has the client repeat it.
  if (!find('backend once').includes('option http-server-close')) {
    faults.push('clients are asked to repeat what must not be repeated')
  }
  if (!frontend.includes('use_backend unready if { nbsrv(coordinators) lt 1 }')) {
    faults.push('nobody says why no coordinator is ready')
  }
  const toServers = (lines: readonly string[]) => lines.filter((line) => line.startsWith('server ')).join()
  if (toServers(coordinators) !== toServers(find('backend unready'))) {
    faults.push('those that are asked when none is ready are others')
  }
  const isCounted = frontend.includes('tcp-request connection track-sc0 src')
  if (
    !isCounted ||
    !frontend.some((line) => /^tcp-request connection reject if \{ sc0_conn_cur gt \d+ \}$/.test(line))
  ) {
    faults.push('one address may open any number of connections')
  }
  if (!frontend.includes('http-request del-header X-Forwarded-For')) faults.push('clients say where they come from')
  const told = findSeconds(frontend, /^http-after-response set-header Keep-Alive timeout=(\d+)$/)
  const kept = findSeconds(defaults, /^timeout http-keep-alive (\d+)s$/)
  if (!(kept >= told + MARGIN_S)) faults.push('clients keep connections that are being closed')
  const stopped = findSeconds(global, /^hard-stop-after (\d+)s$/)
  if (stopped < SIGNING_S) faults.push('a stop cuts signings')
  if (!(stopped <= CLOSED_S)) faults.push('a restart closes the port for as long as event streams last')
  return faults
}

function findSeconds(lines: readonly string[], pattern: RegExp): number {
  return Number(lines.map((line) => pattern.exec(line)?.[1]).find((seconds) => seconds !== undefined))
}

/** Lines by the section that they are in, without comments. */
function toSections(text: string): Map<string, string[]> {
  const sections = new Map<string, string[]>()
  let lines: string[] = []
  for (const line of text.split('\n')) {
    if (line.trim() === '' || line.trim().startsWith('#')) continue
    if (line.startsWith(' ')) lines.push(line.trim())
    else {
      lines = []
      sections.set(line.trim(), lines)
    }
  }
  return sections
}
