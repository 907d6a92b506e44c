import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { x402Facilitator } from '@x402/core/facilitator'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/hono'
import { Hono } from 'hono'
import { createWalletClient, type Hex, http, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { hardhat } from 'viem/chains'

const NETWORK = 'eip155:31337'

type Facilitator = InstanceType<typeof x402Facilitator>
/** The body of `POST /verify` and `POST /settle`. */
type Payment = {
  paymentPayload: Parameters<Facilitator['verify']>[0]
  paymentRequirements: Parameters<Facilitator['verify']>[1]
}

export type ShopParameters = {
  rpcUrl: string
  /** A token with EIP-3009, with its EIP-712 name and version. */
  token: { address: Hex; name: string; version: string }
  payTo: Hex
  /** Of one page, in the token's smallest unit. */
  price: string
  /** Pays for the facilitator's transactions. */
  fund(address: Hex): Promise<unknown>
}

/** An x402 server that sells weather reports, and the facilitator that settles its payments on the local chain. */
export async function startShop({ rpcUrl, token, payTo, price, fund }: ShopParameters) {
  const facilitator = await startServer(await createFacilitator({ rpcUrl, fund }))
  const { address: asset, ...extra } = token
  const accepts = { scheme: 'exact', network: NETWORK, payTo, price: { asset, amount: price, extra } } as const
  const client = new HTTPFacilitatorClient({ url: facilitator.url })
  const server = new x402ResourceServer(client).register(NETWORK, new ExactEvmScheme())
  const app = new Hono()
  app.use(paymentMiddleware({ 'GET /weather': { accepts, description: 'A weather report' } }, server))
  let count = 0
  app.get('/weather', (c) => c.text(`weather report ${++count}: sunny`))
  const shop = await startServer(app)
  const stop = async () => void (await Promise.all([shop.stop(), facilitator.stop()]))
  return { url: `${shop.url}/weather`, stop }
}

async function createFacilitator({ rpcUrl, fund }: Pick<ShopParameters, 'rpcUrl' | 'fund'>): Promise<Hono> {
  const account = privateKeyToAccount(generatePrivateKey())
  await fund(account.address)
  const chain = createWalletClient({ account, chain: hardhat, transport: http(rpcUrl), pollingInterval: 100 })
  const signer = Object.assign(chain.extend(publicActions), { address: account.address })
  const facilitator = new x402Facilitator()
  facilitator.register(NETWORK, new FacilitatorScheme(toFacilitatorEvmSigner(signer as never)))
  const app = new Hono()
  app.get('/supported', (c) => c.json(facilitator.getSupported()))
  app.post('/verify', async (c) => {
    const { paymentPayload, paymentRequirements } = await c.req.json<Payment>()
    return c.json(await facilitator.verify(paymentPayload, paymentRequirements))
  })
  app.post('/settle', async (c) => {
    const { paymentPayload, paymentRequirements } = await c.req.json<Payment>()
    return c.json(await facilitator.settle(paymentPayload, paymentRequirements))
  })
  return app
}

/** On a free port. */
function startServer({ fetch }: Hono): Promise<{ url: string; stop(): Promise<void> }> {
  return new Promise((resolve) => {
    const server = serve({ fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) => {
      const stop = () => new Promise<void>((done) => void server.close(() => done()))
      resolve({ url: `http://127.0.0.1:${port}`, stop })
    })
  })
}
