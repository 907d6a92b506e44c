import { text } from 'node:stream/consumers'
import { verifyMessage } from 'viem'
import { generateSiweNonce, parseSiweMessage, validateSiweMessage } from 'viem/siwe'
import type { Plugin } from 'vite'

/**
 * The server of a sign-in with Ethereum (EIP-4361), inside Vite's: it gives a nonce, and believes a message that has it, is for
 * this host, and is signed by the address that it names. A real server keeps nonces with an expiry, and answers with a session.
 */
export function siweServer(): Plugin {
  const nonces = new Set<string>()

  async function verify(body: string, host: string | undefined): Promise<string | undefined> {
    const { message, signature } = JSON.parse(body)
    const fields = parseSiweMessage(message)
    const { address, nonce = '' } = fields
    // Each nonce counts once, whatever comes of it.
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
