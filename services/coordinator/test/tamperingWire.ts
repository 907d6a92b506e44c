import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { enclavePaths, readBounded } from '@countersign/protocol'
import { listen } from '@countersign/testing/stack'

/** A response to `signItems`, typed loosely, because tests change it. */
export type SignedAnswer = {
  batches: Record<string, unknown>[]
  results: { statement: Record<string, unknown>; [member: string]: unknown }[]
}

/** A proxy between enclave and coordinator that can change the enclave's responses. */
export type TamperingWire = {
  url: string
  /** Applies from the next signing on. Without a change, the proxy is honest again. */
  setTamper(tamper?: (answer: SignedAnswer) => void): void
  stop(): Promise<void>
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024

export async function startTamperingWire(enclaveUrl: string): Promise<TamperingWire> {
  let tamper: ((answer: SignedAnswer) => void) | undefined

  function pass(request: IncomingMessage, response: ServerResponse) {
    const { method, url: path = '/', headers } = request
    const onward = send(new URL(path, enclaveUrl), { method, headers, agent: false }, async (answer) => {
      try {
        let text = Buffer.from(await readBounded(answer, MAX_ANSWER_BYTES)).toString('utf8')
        if (tamper !== undefined && path === enclavePaths.sign) {
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
  const { url, stop } = await listen(server)
  return {
    url,
    setTamper(next) {
      tamper = next
    },
    stop,
  }
}
