import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { isLoopbackUrl } from '@countersign/protocol'
import { findFreePorts, startBackend, startFakeKubo } from '@countersign/testing'
import { toCoordinatorEnv } from '@countersign/testing/launcher'
import {
  createTx,
  createUser,
  listen,
  type Scope,
  startInScope,
  waitForCompleteProofs,
} from '@countersign/testing/stack'
import * as x509 from '@peculiar/x509'
import { startContract } from '../../../../contracts/startContract.ts'
import type { CheckName, State } from '../../src/operate/doctor/check.ts'
import { type DoctorResult, runDoctor } from '../../src/operate/doctor/runDoctor.ts'
import { type Clock, systemClock } from '../../src/system.ts'

export type Settings = Record<string, string | undefined>
export type Bed = Awaited<ReturnType<typeof startBed>>

/** Breaks something and returns the settings to change. */
export type Break = (scope: Scope, bed: Bed) => Promise<Settings> | Settings
/** A check, the text that it must report, and how to break it. */
export type Case = [
  name: CheckName,
  text: RegExp,
  breaking: Break,
  options?: { state?: State; args?: readonly string[]; now?: () => number },
]

export const PIN_TOKEN = 'a-token-of-the-pin-service'

/** A whole service on loopback with a complete proof, and its coordinator's settings. */
export function startBed() {
  return startInScope(async (scope) => {
    const contract = await startContract()
    scope.add(contract.chain, ({ stop }) => stop())
    const kubo = scope.add(await startFakeKubo({ token: PIN_TOKEN }), ({ stop }) => stop())
    const publishing = {
      ...contract.env,
      IPFS_PINNER: 'kubo',
      IPFS_API_URL: kubo.url,
      IPFS_API_TOKEN: PIN_TOKEN,
    }
    const backend = scope.add(await startBackend({ env: publishing }), ({ stop }) => stop())
    const user = createUser(backend)
    await user.signIn('alice')
    const { slug } = (await (await user.sign(createTx(0))).json()) as { slug: string }
    await waitForCompleteProofs({ url: backend.url, slugs: [slug] })
    const { oidc, enclaveUrl, satellite, dataDir, databaseUrl } = backend
    const env: Settings = {
      ...toCoordinatorEnv({
        port: Number(new URL(backend.url).port),
        oidc,
        enclaveUrls: [enclaveUrl],
        satellite,
        dataDir,
        databaseUrl,
      }),
      ...publishing,
    }
    const [port = 0] = await findFreePorts(1)
    const closedAddress = `127.0.0.1:${port}`
    return { backend, kubo, contract, env, closedAddress, folder: await scope.createFolder() }
  })
}

/** Fetches only from this machine, because random settings could name any host. */
const loopbackFetch: typeof fetch = async (input, init) => {
  const url = input instanceof Request ? input.url : String(input)
  if (!isLoopbackUrl(url))
    throw new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ENETUNREACH' }) })
  return fetch(input, init)
}

/** Runs the doctor in this process. */
export function runDoctorWith(
  env: Settings,
  args: readonly string[] = [],
  clock: Clock = systemClock,
): Promise<DoctorResult> {
  const readFile = (path: string) => readFileSync(path, 'utf8')
  return runDoctor([...args], { env, clock, fetch: loopbackFetch, readFile, version: '0.1.0' })
}

/** A server with this handler. */
export async function serve(scope: Scope, answer: RequestListener): Promise<string> {
  return scope.add(await listen(createHttpServer(answer)), ({ stop }) => stop()).url
}

/** Accepts every connection and never answers. */
export async function serveSilence(scope: Scope): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => void sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.add(server, async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

/** A TLS server with a self-signed certificate. */
export async function serveTls(scope: Scope, { name, notAfter }: { name: string; notAfter: Date }): Promise<string> {
  const keys = (await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
    'verify',
  ])) as CryptoKeyPair
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date('2020-01-01'),
    notAfter,
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: name }])],
  })
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  const server = createHttpsServer({ key, cert: certificate.toString('pem') }, (_, response) => void response.end())
  const { port } = scope.add(await listen(server as unknown as Server), ({ stop }) => stop())
  return `https://localhost:${port}`
}

export async function writeJson(bed: Pick<Bed, 'folder'>, name: string, value: unknown): Promise<string> {
  const path = join(bed.folder, name)
  await writeFile(path, JSON.stringify(value))
  return path
}
