import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  enclavePaths,
  fromHex,
  type OpenSessionResponse,
  tags,
  toHex,
  toShareContext,
  toTagBytes,
} from '@countersign/protocol'
import { parseBackup } from '@countersign/root-secret'
import { open } from '@countersign/root-secret/sealing'
import { COMPILE_CACHE, toPath } from '@countersign/testing/launcher'
import { combine } from 'shamir-secret-sharing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createKeyFile, readKeyFile } from '../../../../apps/custodian/src/keyFile.ts'
import { callEnclave, createTestCoordinator } from '../../test/coordinator.ts'
import { type EnclaveProcess, spawnEnclave, startEnclave } from '../../test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../../test/issuer.ts'
import { signOne, toItem } from '../../test/items.ts'
import { measurement } from '../../test/peers.ts'
import { satelliteKey } from '../../test/witness.ts'

const run = promisify(execFile)
const TOOL = toPath('apps/custodian/src/cli.ts')
const coordinator = createTestCoordinator()
const running: EnclaveProcess[] = []
let folder = ''
let issuer: TestIssuer
let backupPath = ''
let policyPath = ''
const keyPaths: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drill-'))
  backupPath = join(folder, 'backup.json')
  policyPath = join(folder, 'policy.json')
  issuer = await startTestIssuer()
  const keys: string[] = []
  for (const index of [0, 1, 2]) {
    keyPaths.push(join(folder, `custodian-${index}.key`))
    keys.push(toHex((await createKeyFile(keyPaths[index] as string)).publicKey))
  }
  const policy = { measurements: [measurement], custodians: { threshold: 2, keys } }
  await writeFile(policyPath, JSON.stringify(policy))
})
afterAll(async () => {
  for (const enclave of running) await enclave.kill('SIGKILL')
  await issuer.close()
  await rm(folder, { recursive: true })
})

function toEnv(from: string): Record<string, string> {
  return {
    ROOT_SECRET: 'attested',
    ROOT_SECRET_FROM: from,
    ROOT_SECRET_POLICY_FILE: policyPath,
    ROOT_SECRET_BACKUP_FILE: backupPath,
    OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
    ENTROPY_PUBLIC_KEY: satelliteKey,
    MOCK_QUOTE_LATENCY_MS: '1',
  }
}

async function start(from: string, sentence?: string) {
  const enclave = await startEnclave(toEnv(from), sentence)
  running.push(enclave)
  return enclave
}

async function openSession({ url }: EnclaveProcess): Promise<OpenSessionResponse> {
  const { status, body } = await callEnclave(url, coordinator, enclavePaths.openSession, await issuer.login('alice'))
  expect(status).toBe(200)
  return body
}

const sign = (enclave: EnclaveProcess, session: OpenSessionResponse) => signOne(enclave, coordinator, toItem(session))

const custodian = (...parameters: string[]) =>
  run(process.execPath, ['-C', 'source', TOOL, ...parameters], {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE },
  })

const find = ({ output }: EnclaveProcess, msg: string) =>
  output.map((line) => JSON.parse(line)).find((line) => line.msg === msg)

/** Combines the shares of two custodians on one machine, which must never happen in production. */
async function combineShares(): Promise<string> {
  const backup = parseBackup(await readFile(backupPath, 'utf8'))
  const { threshold, policyHash, configHash, commitment } = backup
  const opened = backup.shares.slice(0, 2).map(async ({ enc, ciphertext }, index) => {
    const recipient = await readKeyFile(keyPaths[index] as string)
    const hashes = { policyHash: fromHex(policyHash), configHash: fromHex(configHash), commitment: fromHex(commitment) }
    const context = { info: toTagBytes(tags.rootShare), aad: toShareContext({ ...hashes, threshold, index }) }
    return open({ enc: fromHex(enc), ciphertext: fromHex(ciphertext) }, { recipient, ...context })
  })
  return toHex(await combine(await Promise.all(opened)))
}

test('genesis, a join, the loss of both, and a recovery by two of three custodians keep the same wallet', async () => {
  const first = await start('genesis')
  const backup = await readFile(backupPath, 'utf8')
  const session = await openSession(first)
  const signature = await sign(first, session)
  expect(signature).toMatch(/^0x[0-9a-f]{130}$/)

  const second = await start(`join:${first.url}`)
  // The grant, too: its key depends on the secret and the configuration, which are the same.
  expect(await sign(second, session)).toBe(signature)
  expect(await openSession(second)).toMatchObject({ address: session.address, keyId: session.keyId })

  // A second genesis would create a second set of wallets.
  const again = spawnEnclave({ PORT: '0', MOCK_ATTESTATION: 'true', QUOTE_SOURCE: 'mock', ...toEnv('genesis') })
  expect(await once(again.child, 'close')).toEqual([1, null])
  expect(again.output.join()).toContain('there is a backup already')
  expect(await readFile(backupPath, 'utf8')).toBe(backup)

  for (const enclave of [first, second]) await enclave.kill('SIGKILL')
  const third = await start('recover', 'Waiting for custodians')
  expect(await (await fetch(`${third.url}/health`)).json()).toMatchObject({ status: 'waiting' })
  const early = await callEnclave(third.url, coordinator, enclavePaths.openSession, await issuer.login('alice'))
  expect(early).toMatchObject({ status: 503, body: { error: { code: 'root_secret_missing' } } })

  const { configHash, commitment } = find(first, 'Started the enclave')
  expect(JSON.parse(backup)).toHaveProperty('commitment', commitment)
  const consent = ['--enclave', third.url, '--policy', policyPath, '--config-hash', configHash, '--mock']
  const checked = await custodian('check', backupPath, '--policy', policyPath, '--key', keyPaths[0] as string, '--mock')
  expect(checked.stdout).toContain('2 of 3 custodians can recover')
  const one = await custodian('submit', backupPath, '--key', keyPaths[2] as string, ...consent)
  expect(one.stdout).toContain('1 of 2')
  await expect(custodian('submit', backupPath, '--key', keyPaths[2] as string, ...consent)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('share_refused'),
  })
  const two = await custodian('submit', backupPath, '--key', keyPaths[1] as string, ...consent)
  expect(two.stdout).toContain('it has recovered the root secret')

  await expect.poll(() => find(third, 'Started the enclave')).toBeDefined()
  expect(await sign(third, session)).toBe(signature)
  expect(await openSession(third)).toMatchObject({ address: session.address, keyId: session.keyId })
  for (const enclave of [second, third]) {
    expect(find(enclave, 'Started the enclave')).toMatchObject({ configHash, commitment })
  }
  expect(await third.kill('SIGTERM')).toBe(0)

  const secret = await combineShares()
  const keys = await Promise.all(keyPaths.map((path) => readFile(path, 'utf8')))
  const outputs = [...running, again].flatMap(({ output }) => output)
  const files = (await readdir(folder)).filter((name) => !name.endsWith('.key'))
  expect(files.toSorted()).toEqual(['backup.json', 'policy.json'])
  const written = [...outputs, checked.stdout, one.stdout, two.stdout, backup].join('\n')
  for (const value of [secret, ...keys.map((key) => key.trim())]) expect(written).not.toContain(value)
})

test('an upgrade that drops an issuer’s client and signed entropy needs --allow-loss for both', async () => {
  const before = parseBackup(await readFile(backupPath, 'utf8'))
  const env = {
    ...toEnv('recover'),
    ENTROPY_PUBLIC_KEY: '',
    ENTROPY_ALLOW_UNSIGNED: 'true',
    OIDC_ISSUERS: `${issuer.url}=another`,
  }
  const enclave = await startEnclave(env, 'Waiting for custodians')
  running.push(enclave)
  const { configHash } = find(enclave, 'Waiting for custodians')
  const held = async () => (await (await fetch(`${enclave.url}/health`)).json()).shares.held
  const to = ['--enclave', enclave.url, '--policy', policyPath, '--mock']
  const losses = ['entropy', `issuer:${issuer.url}=${issuer.audience}`].flatMap((loss) => ['--allow-loss', loss])

  const looked = await custodian('check', backupPath, ...to).catch((error) => error)
  expect(looked).toMatchObject({ code: 1, stderr: expect.stringContaining(losses.join(' ')) })
  for (const line of [
    `configuration hash         ${configHash}`,
    `- configuration hash       ${before.configHash}`,
    `- accepts sign-ins from    ${issuer.url} for ${issuer.audience}`,
    `+ accepts sign-ins from    ${issuer.url} for another`,
    '+ entropy sources          an unsigned source',
  ]) {
    expect(looked.stdout).toContain(line)
  }
  const consent = ['submit', backupPath, '--key', keyPaths[0] as string, ...to, '--config-hash', configHash]
  for (const named of [[], losses.slice(0, 2), losses.slice(2)]) {
    await expect(custodian(...consent, ...named)).rejects.toMatchObject({ code: 1 })
  }
  expect(await held()).toBe(0)
  expect((await custodian('check', backupPath, ...to, ...losses)).stdout).toContain('Nothing was sent.')
  expect(await held()).toBe(0)
  await custodian(...consent, ...losses)
  expect(await held()).toBe(1)
})

test('on real hardware, enclave and custodian tool reject a policy without platforms', async () => {
  const production = {
    ...toEnv('recover'),
    NODE_ENV: 'production',
    QUOTE_SOURCE: 'configfs',
    LISTEN: 'https',
    CALLER_POLICY_FILE: join(folder, 'missing.json'),
    MOCK_QUOTE_LATENCY_MS: '',
  }
  const withPlatforms = join(folder, 'with-platforms.json')
  const policy = JSON.parse(await readFile(policyPath, 'utf8'))
  await writeFile(withPlatforms, JSON.stringify({ ...policy, platforms: [{ ppid: '11'.repeat(16) }] }))
  const faultsOf = async (path: string) => {
    const { child, output } = spawnEnclave({ ...production, ROOT_SECRET_POLICY_FILE: path })
    const [code] = await once(child, 'close')
    expect(code).toBe(1)
    return output.join('\n')
  }
  expect(await faultsOf(policyPath)).toContain('ROOT_SECRET_POLICY_FILE: missing platforms')
  expect(await faultsOf(withPlatforms)).not.toContain('ROOT_SECRET_POLICY_FILE')

  const consent = ['--key', keyPaths[0] as string, '--enclave', 'https://127.0.0.1:9', '--config-hash', '00'.repeat(32)]
  const submitted = custodian('submit', backupPath, ...consent, '--policy', policyPath)
  await expect(submitted).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('missing platforms'),
  })
  const listed = custodian('submit', backupPath, ...consent, '--policy', withPlatforms, '--backup-policy', policyPath)
  await expect(listed).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('on simulated hardware') })
})
