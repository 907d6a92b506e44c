import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'

/** The TLS peer's key differs from the attested key. */
export class KeyChangedError extends Error {
  override name = 'KeyChangedError'
}

/**
 * Connects by TLS to any peer and passes SHA-256 of the peer's SubjectPublicKeyInfo (hex) to `accept`. No certificate authority is involved:
 * a quote vouches for the key. A rejected connection is closed before any HTTP is sent.
 */
export function createAttestedConnector(
  accept: (keyHash: string) => boolean,
  { timeoutMs }: { timeoutMs: number },
): buildConnector.connector {
  return ({ hostname, port }, callback) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    let isSettled = false
    const socket = connect({
      host,
      port: Number(port === '' ? 443 : port),
      // RFC 6066 §3: server names only, no IP addresses.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.3',
      rejectUnauthorized: false,
    })
    const finish = (result: Error | TLSSocket) => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      if (result instanceof Error) {
        socket.destroy()
        callback(result, null)
      } else {
        callback(null, result)
      }
    }
    const timer = setTimeout(() => finish(new Error('no connection in time')), timeoutMs)
    socket.setNoDelay(true)
    // Keep both listeners: an error between this one and the client's own would otherwise be unhandled.
    socket.on('error', finish)
    socket.on('close', () => finish(new Error('closed before it was connected')))
    socket.once('secureConnect', () => {
      finish(accept(readKeyHash(socket)) ? socket : new KeyChangedError('the peer has another key'))
    })
  }
}

function readKeyHash(socket: TLSSocket): string {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return ''
  return hash('sha256', certificate.publicKey.export({ type: 'spki', format: 'der' }), 'hex')
}
