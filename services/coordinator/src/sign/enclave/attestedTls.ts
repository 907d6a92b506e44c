import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'

/** The connection ends in another key than the one that was attested. */
export class KeyChangedError extends Error {
  override name = 'KeyChangedError'
}

/**
 * Connects by TLS to any peer, and lets `accept` judge SHA-256 of the peer's SubjectPublicKeyInfo, hex. No certificate
 * authority is asked: a quote vouches for the key. A connection that is not accepted is destroyed before a byte of HTTP is
 * written.
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
      // RFC 6066 §3: names only, no addresses.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.3',
      rejectUnauthorized: false,
    })
    const settle = (result: Error | TLSSocket) => {
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
    const timer = setTimeout(() => settle(new Error('no connection in time')), timeoutMs)
    socket.setNoDelay(true)
    // Both stay: an error must find a listener also between this one and the client's own.
    socket.on('error', settle)
    socket.on('close', () => settle(new Error('closed before it was connected')))
    socket.once('secureConnect', () => {
      settle(accept(readKeyHash(socket)) ? socket : new KeyChangedError('the peer has another key'))
    })
  }
}

function readKeyHash(socket: TLSSocket): string {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return ''
  return hash('sha256', certificate.publicKey.export({ type: 'spki', format: 'der' }), 'hex')
}
