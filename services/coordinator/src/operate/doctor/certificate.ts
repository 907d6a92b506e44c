import { isIP } from 'node:net'
import { checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { type Finding, fault, ok, warning } from './check.ts'
import { explain, findCode } from './reasons.ts'

const DAY_MS = 86_400_000
const SOON_MS = 14 * DAY_MS

type Seen = { certificate: PeerCertificate; authorizationError: string | undefined }

/** The certificate that browsers get at that address, judged as they would. */
export async function checkCertificate(
  url: URL,
  { now, isProduction, signal }: { now: number; isProduction: boolean; signal: AbortSignal },
): Promise<Finding> {
  let seen: Seen
  try {
    seen = await getCertificate(url, signal)
  } catch (error) {
    const known = explain(findCode(error))
    // The proxy may start after the coordinator.
    return warning(
      `${url.host}: ${known?.text ?? 'no TLS there'}`,
      `${known?.mend ?? 'Have the proxy speak TLS'}; before the first start of the proxy this is as it should be.`,
    )
  }
  const { certificate, authorizationError } = seen
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const ends = Date.parse(certificate.valid_to)
  const day = Number.isFinite(ends) ? new Date(ends).toISOString().slice(0, 10) : 'no day'
  if (!(ends > now))
    return fault(`${url.host}: the certificate has expired, ${day}`, 'Renew it, and have the proxy load it.')
  if (checkServerIdentity(host, certificate) !== undefined) {
    return fault(`${url.host}: the certificate is for another name`, `Get one for ${host}, or correct PUBLIC_URL.`)
  }
  if (authorizationError !== undefined) {
    const text = `${url.host}: browsers do not trust the certificate (${authorizationError})`
    const mend = 'Use a certificate of a known authority, and have the proxy send its whole chain.'
    return isProduction ? fault(text, mend) : warning(text, mend)
  }
  if (ends - now < SOON_MS)
    return warning(`${url.host}: the certificate ends ${day}`, 'Renew it, and have the proxy load it.')
  return ok(`${url.host}: valid until ${day}`)
}

function getCertificate(url: URL, signal: AbortSignal): Promise<Seen> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(url.port || 443),
      // RFC 6066 §3: names only, no addresses.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // Looked at, whatever it is: nothing is sent.
      rejectUnauthorized: false,
    })
    const abort = () => socket.destroy(new DOMException('timed out', 'TimeoutError'))
    signal.addEventListener('abort', abort, { once: true })
    socket.once('secureConnect', () => {
      const error: unknown = socket.authorizationError
      const code = typeof error === 'string' ? error : findCode(error)
      // By its name and date it is judged apart.
      const isOther = code === undefined || code === 'CERT_HAS_EXPIRED' || code === 'ERR_TLS_CERT_ALTNAME_INVALID'
      resolve({
        certificate: socket.getPeerCertificate(),
        authorizationError: socket.authorized || isOther ? undefined : code,
      })
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
  })
}
