import { createSign, generateKeyPairSync } from 'node:crypto'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSelfSignedCertificate } from '@countersign/attestation/certificates'
import { afterEach, describe, expect, test } from 'vitest'
import { callPeer } from './callPeer.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

/** A key and a certificate without an authority, as in enclaves. */
function createIdentity() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = createSelfSignedCertificate({
    commonName: 'enclave',
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    sign: (message) => createSign('sha256').update(message).sign(privateKey),
    validity: { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 60_000) },
  })
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
}

async function listen(answer: RequestListener, isTls = false): Promise<string> {
  const server = isTls ? createHttpsServer(createIdentity(), answer) : createServer(answer)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `${isTls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('an enclave', () => {
  test.each([false, true])('is called over HTTP, with TLS: %s', async (isTls) => {
    const url = await listen((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += chunk))
      request.on('end', () => response.end(JSON.stringify([request.method, request.url, JSON.parse(body)])))
    }, isTls)
    expect(await callPeer(url, '/recovery', { a: 1 })).toEqual(['POST', '/recovery', { a: 1 }])
  })

  test('that does not run is unreachable', async () => {
    const url = await listen(() => {})
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
    await expect(callPeer(url, '/', {})).rejects.toMatchObject({ code: 'peer_unreachable', details: 'ECONNREFUSED' })
  })

  test('that does not respond in time is unreachable', async () => {
    const url = await listen(() => {})
    const answer = callPeer(url, '/', {}, 30)
    await expect(answer).rejects.toMatchObject({ code: 'peer_unreachable', details: 'not in time' })
  })

  test('that closes the connection is unreachable', async () => {
    const url = await listen((request) => request.destroy())
    await expect(callPeer(url, '/', {})).rejects.toMatchObject({ code: 'peer_unreachable' })
  })

  test.each<[string, RequestListener, object]>([
    [
      'refuses with a code',
      (_, response) => response.writeHead(403).end('{"error":{"code":"transfer_refused","message":"no"}}'),
      { code: 'peer_refused', details: 'transfer_refused', status: 403 },
    ],
    [
      'refuses with a text that is not a code',
      (_, response) => response.writeHead(500).end('{"error":{"code":"<b>no</b>"}}'),
      { code: 'peer_refused', details: 'HTTP 500' },
    ],
    ['refuses with nothing', (_, response) => response.writeHead(500).end('null'), { code: 'peer_refused' }],
    [
      'sends elsewhere',
      (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end('{}'),
      { code: 'peer_refused', details: 'HTTP 302' },
    ],
    ['answers no JSON', (_, response) => response.end('<html>'), { code: 'peer_not_accepted' }],
    [
      'answers without an end',
      (_, response) => {
        const more = () => {
          while (response.write(Buffer.alloc(65_536, ' ')) && !response.destroyed);
        }
        response.on('drain', more)
        more()
      },
      { code: 'peer_not_accepted', message: 'the response is too large' },
    ],
  ])('that %s', async (_, answer, error) => {
    await expect(callPeer(await listen(answer), '/', {})).rejects.toMatchObject(error)
  })
})
