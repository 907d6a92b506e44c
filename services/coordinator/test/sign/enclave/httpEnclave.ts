import type { IncomingHttpHeaders } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { createSimulator, type SimulatedQuoteOptions } from '@countersign/attestation/simulator'
import {
  type AttestRequest,
  type AttestResponse,
  computeEnclaveAttestReportData,
  createEnclaveSettings,
  type EnclaveConfig,
  type EnclaveSettings,
  enclavePaths,
  fromHex,
  hashEnclaveConfig,
  toEnclaveVersion,
  toHex,
} from '@countersign/protocol'
import { createTlsIdentity, type Listen, startServer } from '../../../../enclave/src/server.ts'

type Reply = { status: number; body: unknown }
type RawCall = { headers: IncomingHttpHeaders; body: Uint8Array }
type Handler = (call: RawCall) => Reply | Promise<Reply>

/** An enclave on loopback whose responses the test controls, with really signed quotes. */
export type FakeEnclave = {
  url: string
  /** Its calls in order. */
  paths: string[]
  requests: unknown[]
  /** Its attested terms. */
  bootId: string
  config: EnclaveConfig
  settings: EnclaveSettings
  commitment: AttestResponse['commitment']
  logs: AttestResponse['logs']
  /** Its health: `waiting` until it knows the time. */
  health: 'ok' | 'waiting'
  /** Changes the content or coverage of its quotes. */
  quote: Partial<SimulatedQuoteOptions>
  cover: { nonce?: string; config?: EnclaveConfig; tlsKeyHash?: string }
  handlers: Partial<Record<'/attest' | '/open-session' | '/sign' | '/vault' | '/log' | '/release', Handler>>
  close(): Promise<void>
}

export const fakeSettings = createEnclaveSettings([{ kind: 'unsigned' }])

export const fakeConfig: EnclaveConfig = {
  issuers: [{ issuer: 'https://issuer.example', audience: 'app', jwksOrigin: 'https://issuer.example' }],
  caSet: 'bundled',
  rootSecret: 'file',
  quoteSource: 'mock',
  callerPolicy: 'any',
  version: toEnclaveVersion('0.1.0', fakeSettings),
}

export async function startFakeEnclave(kind: 'http' | 'https' = 'http'): Promise<FakeEnclave> {
  const simulator = createSimulator({ at: new Date() })
  const tls = kind === 'https' ? createTlsIdentity(Date.now()) : undefined
  const ownKeyHash = toHex(tls?.keyHash ?? new Uint8Array(32))

  function attest({ nonce }: AttestRequest): Reply {
    const { cover, config, settings, bootId, commitment, logs } = fake
    const reportData = computeEnclaveAttestReportData({
      tlsKeyHash: fromHex(cover.tlsKeyHash ?? ownKeyHash),
      nonce: fromHex(cover.nonce ?? nonce),
      configHash: hashEnclaveConfig(cover.config ?? config),
    })
    const quote = toHex(simulator.quote({ ...fake.quote, reportData }))
    // Undefined members are omitted.
    return { status: 200, body: { quote, config, settings, tlsKeyHash: ownKeyHash, bootId, commitment, logs } }
  }

  const app = {
    admit: async () => ({ admitted: undefined }),
    async handle({ path, headers, body }: RawCall & { path: string }): Promise<Reply> {
      if (path === '/health') return { status: 200, body: { status: fake.health } }
      const request = JSON.parse(Buffer.from(body).toString())
      fake.paths.push(path)
      fake.requests.push(request)
      const handler = fake.handlers[path as keyof FakeEnclave['handlers']]
      if (handler !== undefined) return handler({ headers, body })
      if (path === enclavePaths.attest) return attest(request)
      return { status: 200, body: path === enclavePaths.openSession ? fakeSession : fakeSigned(fake.bootId) }
    },
    isStopping: () => false,
    async stop() {},
  }
  const listen: Listen = { kind, host: '127.0.0.1', port: 0 }
  const server = await startServer(app, listen, tls)
  const fake: FakeEnclave = {
    url: server.address,
    paths: [],
    requests: [],
    bootId: 'b0'.repeat(16),
    config: fakeConfig,
    settings: fakeSettings,
    commitment: undefined,
    logs: undefined,
    health: 'ok',
    quote: {},
    cover: {},
    handlers: {},
    close: () => server.close(),
  }
  return fake
}

export const fakeSession = {
  sid: '51'.repeat(32),
  grant: 'grant',
  keyId: '1d'.repeat(16),
  address: `0x${'ad'.repeat(20)}`,
  owner: { salt: '0a'.repeat(32), identity: { issuer: 'https://issuer.example', subject: 'alice', email: null } },
  expiresAt: '2030-01-01T00:00:00.000Z',
}

/** The answer to one item. Its content is not checked here. */
export function fakeSigned(bootId: string) {
  return {
    batches: [{ bootId, sequence: 0, previous: '00'.repeat(32), leaves: ['22'.repeat(32)], quote: '04'.repeat(100) }],
    results: [{ statement: { type: 'countersign/signing/v1' }, batch: 0, leafIndex: 0 }],
  }
}

/** A proxy to an enclave that an attacker controls: bytes go to `target`, read when a connection is opened. */
export async function startSwitchableRelay(target: () => string) {
  const sockets = new Set<Socket>()
  const server = createServer((incoming) => {
    const { hostname, port } = new URL(target())
    const outgoing = connect(Number(port), hostname)
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    /** Closes the open connections and accepts new ones. */
    cut() {
      for (const socket of sockets) socket.destroy()
      sockets.clear()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
