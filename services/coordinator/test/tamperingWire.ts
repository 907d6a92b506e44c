import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { enclavePaths } from '@countersign/protocol'

/** An answer to `signTransactions`, as loosely as somebody sees it who wants to change it. */
export type SignedAnswer = {
  batches: Record<string, unknown>[]
  results: { statement: Record<string, unknown>; [member: string]: unknown }[]
}

/** What lies between enclave and coordinator, and may change what the enclave answers. */
export type TamperingWire = {
  url: string
  /** From the next signing on; without a change it is an honest wire again. */
  setTamper(tamper?: (answer: SignedAnswer) => void): void
  stop(): Promise<void>
}

export async function startTamperingWire(enclaveUrl: string): Promise<TamperingWire> {
  let tamper: ((answer: SignedAnswer) => void) | undefined

  function pass(request: IncomingMessage, response: ServerResponse) {
    const { method, url: path = '/', headers } = request
    const onward = send(new URL(path, enclaveUrl), { method, headers, agent: false }, async (answer) => {
      try {
        let text = ''
        for await (const chunk of answer) text += chunk
        if (tamper !== undefined && path === enclavePaths.signTransactions) {
          const changed = JSON.parse(text)
          tamper(changed)
          text = JSON.stringify(changed)
        }
        response.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' }).end(text)
      } catch {
        response.destroy()
      }
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  }

  const server = createServer(pass)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setTamper(next) {
      tamper = next
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
