import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { hashLogin, type OpenSessionRequest } from '@countersign/protocol'
import { listen } from '@countersign/testing/stack'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** An OpenID issuer on loopback that signs ID tokens for the subject in the test. */
export type TestIssuer = {
  url: string
  audience: string
  /** How far the `Date` of its responses is ahead of the local clock. */
  aheadMs: number
  /** Returns 503. */
  isDown: boolean
  /** A token and its login secret, for a browser with this key, if it has one. */
  login(subject: string, clientKey?: string): Promise<OpenSessionRequest>
  close(): Promise<void>
}

export async function startTestIssuer(audience = 'countersign'): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'test', alg: 'ES256', use: 'sig' }
  const server = createServer((request, response) => {
    if (issuer.isDown) return void response.writeHead(503).end()
    response.setHeader('content-type', 'application/json')
    response.setHeader('date', new Date(Date.now() + issuer.aheadMs).toUTCString())
    if (request.url === '/jwks') response.end(JSON.stringify({ keys: [jwk] }))
    else response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/jwks` }))
  })
  const { url, stop } = await listen(server)
  const issuer: TestIssuer = {
    url,
    audience,
    aheadMs: 0,
    isDown: false,
    async login(subject, clientKey) {
      const loginSecret = randomBytes(32)
      const nonce = Buffer.from(hashLogin({ loginSecret, clientKey })).toString('base64url')
      const idToken = await new SignJWT({ nonce })
        .setProtectedHeader({ alg: 'ES256', kid: 'test' })
        .setIssuer(url)
        .setAudience(audience)
        .setSubject(subject)
        .setIssuedAt()
        .setExpirationTime('5 minutes')
        .sign(privateKey)
      return { idToken, loginSecret: loginSecret.toString('hex'), ...(clientKey && { clientKey }) }
    },
    close: stop,
  }
  return issuer
}
