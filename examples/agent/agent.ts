import { type CreateAgentParameters, createAgent, ServiceError } from '@countersign/sdk/agent'
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'

/** Buys from an x402 server until the budget ends. Returns what is left of it. */
export async function runAgent(url: string, parameters: CreateAgentParameters): Promise<string> {
  const scheme = { network: 'eip155:31337', client: new ExactEvmScheme(createAgent(parameters)) } as const
  // The vault's budget is the limit. x402's own would refuse the local chain's token.
  const client = x402Client.fromConfig({ schemes: [scheme], spendControls: false })
  // The error that `fetch` throws has only the message of this one.
  let failure: unknown
  client.onPaymentCreationFailure(async ({ error }) => {
    failure = error
  })
  const pay = wrapFetchWithPayment(fetch, client)
  for (;;) {
    const response = await pay(url).catch((error: unknown) => {
      if (failure instanceof ServiceError && failure.code === 'budget_exceeded') return failure
      throw failure ?? error
    })
    if (response instanceof ServiceError) return response.left ?? '0'
    if (!response.ok) throw new Error(`the server answered ${response.status}`)
    console.log(`Bought      ${await response.text()}`)
  }
}
