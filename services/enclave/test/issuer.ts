import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { tags, toTagBytes } from '@countersign/protocol'
import { listen } from '@countersign/testing/stack'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** An OpenID issuer on loopback that signs ID tokens for the subject that a test names. */
export type TestIssuer = {
  url: string
  audience: string
  /** A token and the login secret that it is bound to. */
  login(subject: string): Promise<{ idToken: string; loginSecret: string }>
  close(): Promise<void>
}

export async function startTestIssuer(audience = 'countersign'): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'test', alg: 'ES256', use: 'sig' }
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.url === '/jwks') response.end(JSON.stringify({ keys: [jwk] }))
    else response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/jwks` }))
  })
  const { url, stop } = await listen(server)
  return {
    url,
    audience,
    async login(subject) {
      const loginSecret = randomBytes(32)
      const nonce = createHash('sha256').update(toTagBytes(tags.login)).update(loginSecret).digest('base64url')
      const idToken = await new SignJWT({ nonce })
        .setProtectedHeader({ alg: 'ES256', kid: 'test' })
        .setIssuer(url)
        .setAudience(audience)
        .setSubject(subject)
        .setIssuedAt()
        .setExpirationTime('5 minutes')
        .sign(privateKey)
      return { idToken, loginSecret: loginSecret.toString('hex') }
    },
    close: stop,
  }
}
