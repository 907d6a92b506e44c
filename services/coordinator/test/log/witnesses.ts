import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hashOrigin, parseNote, parseVkey, toVkey } from '@countersign/log'
import { createSigner } from '../../../../packages/log/test/logs.ts'
import { createWitness, type Reply } from '../../../witness/src/witness.ts'
import { createMemoryStore } from '../../../witness/test/witness.ts'
import type { WitnessSite } from '../../src/log/witnessClient.ts'

/** A witness's response to a request. It may forward to the honest one first. `undefined`: no response. */
export type Behaviour = (honest: () => Promise<Reply>, body: string) => Promise<Reply | undefined>

export const honest: Behaviour = (ask) => ask()

/** A real witness on loopback whose responses can be changed. */
export async function startTestWitness(name: string, origins: readonly string[], clock: { now(): number }) {
  const signer = createSigner(name, 'cosignature-ed25519')
  const store = createMemoryStore()
  const log = { info() {}, warn() {}, error() {} }
  const listed = new Map(origins.map((origin) => [origin, [createSigner(origin).key]]))
  const witness = createWitness({
    logs: listed,
    store,
    signers: [{ key: signer.key, sign: async (message) => signer.sign(message) }],
    clock,
    log,
  })
  const fake = {
    behave: honest,
    /** Returned statuses, and the requests. */
    answers: [] as number[],
    requests: [] as string[],
    store,
    listed,
    /** In hex. */
    key: Buffer.from(signer.key.publicKey).toString('hex'),
    site: undefined as unknown as WitnessSite,
    /** The sizes of a log that it has cosigned. */
    getSize: (origin: string) => store.latest(hashOrigin(origin))?.checkpoint.size ?? 0,
    stop: async () => {},
    /** Closes its port. */
    kill: async () => {},
    /** Opens the port again. */
    revive: async () => {},
  }
  let port = 0
  let server: Server | undefined
  async function listen() {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks).toString()
      fake.requests.push(body)
      const reply = await fake.behave(() => witness.addCheckpoint(Buffer.from(body)), body)
      if (reply === undefined) return
      fake.answers.push(reply.status)
      response.writeHead(reply.status, { 'content-type': reply.type ?? 'text/plain' }).end(reply.body)
    })
    await new Promise<void>((resolve) => (server as Server).listen(port, '127.0.0.1', resolve))
    port = ((server as Server).address() as AddressInfo).port
  }
  await listen()
  fake.site = { key: parseVkey(toVkey(signer.key)), url: `http://127.0.0.1:${port}` }
  fake.revive = listen
  fake.kill = async () => {
    const closed = new Promise((resolve) => server?.close(resolve))
    server?.closeAllConnections()
    await closed
  }
  fake.stop = fake.kill
  return fake
}

export type TestWitness = Awaited<ReturnType<typeof startTestWitness>>

/** The lines of an honest response with one changed byte in the signature. */
export const forge: Behaviour = async (ask) => {
  const reply = await ask()
  if (reply.status !== 200) return reply
  const { signatures } = parseNote(`x\n\n${reply.body}`)
  const [first] = signatures
  if (first === undefined) return reply
  const bytes = Buffer.concat([Buffer.from(first.keyId, 'hex'), first.bytes])
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
  return { ...reply, body: `— ${first.name} ${bytes.toString('base64')}\n` }
}
