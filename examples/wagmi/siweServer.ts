import { text } from 'node:stream/consumers'
import { verifyMessage } from 'viem'
import { generateSiweNonce, parseSiweMessage, validateSiweMessage } from 'viem/siwe'
import type { Plugin } from 'vite'

/**
 * A server for sign-in with Ethereum (EIP-4361), inside Vite's. It issues a nonce and accepts a message with that nonce, for this host,
 * signed by the address in the message. A real server expires nonces and returns a session.
 */
export function siweServer(): Plugin {
  const nonces = new Set<string>()

  async function verify(body: string, host: string | undefined): Promise<string | undefined> {
    const { message, signature } = JSON.parse(body)
    const fields = parseSiweMessage(message)
    const { address, nonce = '' } = fields
    // Each nonce is valid once, even if a check fails.
    if (!nonces.delete(nonce) || address === undefined || host === undefined) return undefined
    if (!validateSiweMessage({ message: fields, domain: host, nonce })) return undefined
    return (await verifyMessage({ address, message, signature })) ? address : undefined
  }

  return {
    name: 'siwe',
    configureServer({ middlewares }) {
      middlewares.use('/siwe/nonce', (_, response) => {
        const nonce = generateSiweNonce()
        nonces.add(nonce)
        response.end(nonce)
      })
      middlewares.use('/siwe/verify', async (request, response) => {
        const address = await verify(await text(request), request.headers.host).catch(() => undefined)
        response.statusCode = address === undefined ? 401 : 200
        response.end(address)
      })
    },
  }
}
