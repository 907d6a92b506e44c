/** A client that is busy may take some seconds to notice that a connection was closed. */
const MARGIN_S = 5

/** Our own rules for HAProxy's configuration, beyond what HAProxy itself checks. One sentence for each fault. */
export function checkProxy(text: string): string[] {
  const faults: string[] = []
  const sections = toSections(text)
  const [defaults, frontend, coordinators] = ['defaults', 'frontend public', 'backend coordinators'].map((name) => {
    return sections.get(name) ?? []
  }) as [string[], string[], string[]]
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
  if (!coordinators.includes('http-request disable-l7-retry if { path_beg /auth/ }')) {
    faults.push('the code of a sign-in is sent twice')
  }
  if (!frontend.includes('use_backend unready if { nbsrv(coordinators) lt 1 }')) {
    faults.push('nobody says why no coordinator is ready')
  }
  const toServers = (lines: readonly string[]) => lines.filter((line) => line.startsWith('server ')).join()
  if (toServers(coordinators) !== toServers(sections.get('backend unready') ?? [])) {
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
