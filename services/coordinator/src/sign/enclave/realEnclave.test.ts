import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSimulatedReportSource } from '@countersign/evidence'
import { createPolicy, hashPolicy, toPolicyBytes } from '@countersign/policy'
import { fromHex, hashOwner, hashUnsignedTransaction, toAddress, toHex } from '@countersign/protocol'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type EnclaveProcess, startEnclave } from '../../../../enclave/test/enclaveProcess.ts'
import { startTestIssuer, type TestIssuer } from '../../../../enclave/test/issuer.ts'
import { toItem } from '../../../../enclave/test/items.ts'
import {
  clock,
  setUp,
  signOne,
  simulator,
  unavailable,
  verifier,
  withCode,
} from '../../../test/sign/enclave/enclaveClient.ts'
import { startFakeEnclave, startSwitchableRelay } from '../../../test/sign/enclave/httpEnclave.ts'
import { createSelfReport } from './health/selfReport.ts'
import { createSnpCertificates } from './health/snpCertificates.ts'

describe('a real enclave', () => {
  let folder = ''
  let issuer: TestIssuer
  /** For tests that don't change their enclave. */
  let shared: Record<'http' | 'https', EnclaveProcess>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'http-enclave-'))
    issuer = await startTestIssuer()
    const http = await startProcess()
    shared = { http, https: await startProcess({ LISTEN: 'https' }) }
  })
  afterAll(async () => {
    await Promise.all([shared.http.kill('SIGKILL'), shared.https.kill('SIGKILL')])
    await issuer.close()
    await rm(folder, { recursive: true })
  })

  const startProcess = (changes: Record<string, string> = {}) =>
    startEnclave({
      ROOT_SECRET: `file:${folder}/root-secret`,
      OIDC_ISSUERS: `${issuer.url}=${issuer.audience}`,
      MOCK_QUOTE_LATENCY_MS: '1',
      ...changes,
    })

  async function start(changes: Record<string, string> = {}): Promise<EnclaveProcess> {
    const process = await startProcess(changes)
    onTestFinished(async () => void (await process.kill('SIGKILL')))
    return process
  }

  const listens = {
    http: () => ({}),
    unix: () => ({ LISTEN: `unix:${folder}/socket` }),
    https: () => ({ LISTEN: 'https' }),
  }

  test.each(['http', 'unix', 'https'] as const)(
    'over %s: signs in, signs, restarts and signs the same',
    async (kind) => {
      const first = await start(listens[kind]())
      const { enclave, attestations } = setUp([first.url])
      const session = await enclave.openSession(await issuer.login('alice'))
      expect(session.address).toMatch(/^0x[0-9a-f]{40}$/)
      const answer = await enclave.signItems([toItem(session)])
      expect(answer.config.issuers).toEqual([expect.objectContaining({ issuer: issuer.url })])
      const signature = await signOne(enclave, session)
      expect(attestations()).toBe(1)
      await first.kill('SIGKILL')
      await expect(signOne(enclave, session)).rejects.toEqual(unavailable)
      // At the same address: another boot, and over https another key.
      await start({ ...listens[kind](), ...(kind === 'unix' ? {} : { PORT: new URL(first.url).port }) })
      expect(await signOne(enclave, session)).toBe(signature)
      expect(attestations()).toBe(2)
    },
  )

  test.each(['http', 'https'] as const)(
    'over %s: attests again after an unnoticed restart between two calls',
    async (kind) => {
      const second = await start(listens[kind]())
      let target = shared[kind].url
      const relay = await startSwitchableRelay(() => target)
      onTestFinished(() => relay.close())
      const { enclave, attestations } = setUp([`${kind}://127.0.0.1:${relay.port}`])
      const session = await enclave.openSession(await issuer.login('alice'))
      const signature = await signOne(enclave, session)
      target = second.url
      relay.cut()
      expect(await signOne(enclave, session)).toBe(signature)
      expect(attestations()).toBe(2)
    },
  )

  test('if one of two is killed, the other is used and stays in use', async () => {
    const [first, second] = await Promise.all([start(), start({ LISTEN: 'https' })])
    const { enclave, lines } = setUp([first.url, second.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    const signature = await signOne(enclave, session)
    await first.kill('SIGKILL')
    const signatures = await Promise.all(Array.from({ length: 10 }, () => signOne(enclave, session)))
    expect(new Set(signatures)).toEqual(new Set([signature]))
    const before = lines.length
    expect(await signOne(enclave, session)).toBe(signature)
    expect(lines.length).toBe(before)
    await second.kill('SIGKILL')
    await expect(signOne(enclave, session)).rejects.toEqual(unavailable)
  })

  test('if two enclaves have different root secrets, no user gets an address of the second', async () => {
    const first = await start()
    const second = await start({ ROOT_SECRET: `file:${folder}/another-secret` })
    expect(await readConfigHash(second)).toBe(await readConfigHash(first))
    const { enclave, lines } = setUp([first.url, second.url])
    await enclave.openSession(await issuer.login('alice'))
    await first.kill('SIGKILL')
    await expect(enclave.openSession(await issuer.login('bob'))).rejects.toEqual(unavailable)
    expect(lines.at(-1)).toMatchObject({ enclave: second.url, reason: `another root secret than ${first.url}` })
  })

  test('the other answers pending calls of a killed enclave', async () => {
    const first = await start({ MOCK_QUOTE_LATENCY_MS: '700' })
    const { enclave } = setUp([first.url, shared.http.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    const pending = Promise.all(Array.from({ length: 8 }, () => signOne(enclave, session)))
    // A health check arrives after the calls sent before it.
    await fetch(`${first.url}/health`)
    await first.kill('SIGKILL')
    expect(new Set(await pending).size).toBe(1)
  })

  test('the other answers for a frozen enclave and stays in use', async () => {
    const first = await start({ LISTEN: 'https' })
    const { enclave, lines } = setUp([first.url, shared.https.url], { patienceMs: 50, timeoutMs: 3_600_000 })
    const session = await enclave.openSession(await issuer.login('alice'))
    const signature = await signOne(enclave, session)
    first.child.kill('SIGSTOP')
    // Its unanswered calls would delay the end.
    onTestFinished(() => void first.child.kill('SIGCONT'))
    const signatures = await Promise.all(Array.from({ length: 10 }, () => signOne(enclave, session)))
    expect(new Set(signatures)).toEqual(new Set([signature]))
    const isAboutFirst = ({ msg, enclave: at }: Record<string, unknown>) =>
      msg === 'An enclave does not respond' && at === first.url
    expect(lines.some(isAboutFirst)).toBe(true)
    const before = lines.length
    expect(await signOne(enclave, session)).toBe(signature)
    expect(lines.slice(before).some(isAboutFirst)).toBe(false)
  })

  test('a rejected ID token is the user’s failure, and a used one is not sent to the next enclave', async () => {
    const real = shared.http
    const other = await startFakeEnclave()
    onTestFinished(() => other.close())
    const { enclave } = setUp([real.url, other.url])
    const token = await issuer.login('alice')
    const tampered = { ...token, loginSecret: '00'.repeat(32) }
    other.handlers['/open-session'] = () => ({
      status: 403,
      body: { error: { code: 'id_token_invalid', message: '' } },
    })
    await expect(enclave.openSession(tampered)).rejects.toEqual(withCode('oauth_exchange_failed'))
    const shown = other.paths.length
    expect(shown).toBeGreaterThan(0)
    await enclave.openSession(token)
    await expect(enclave.openSession(token)).rejects.toEqual(withCode('oauth_exchange_failed'))
    expect(other.paths.length).toBe(shown)
  })

  test('another enclave accepts an ID token that is older than the start of the first', async () => {
    const [young, real] = [await startFakeEnclave(), shared.http]
    onTestFinished(() => young.close())
    young.handlers['/open-session'] = () => ({
      status: 403,
      body: { error: { code: 'id_token_invalid', message: '' } },
    })
    const { enclave } = setUp([young.url, real.url])
    expect(await enclave.openSession(await issuer.login('alice'))).toMatchObject({ grant: expect.any(String) })
  })

  test('uses another enclave to open sessions and sign while one does not know the time', async () => {
    const [young, real] = [await startFakeEnclave(), shared.http]
    onTestFinished(() => young.close())
    const unknown = () => ({ status: 503, body: { error: { code: 'time_unknown', message: '' } } })
    young.handlers['/open-session'] = unknown
    young.handlers['/sign'] = unknown
    const { enclave, lines } = setUp([young.url, real.url])
    const session = await enclave.openSession(await issuer.login('alice'))
    const again = setUp([young.url, real.url])
    expect(await signOne(again.enclave, session)).toMatch(/^0x[0-9a-f]{130}$/)
    for (const log of [lines, again.lines])
      expect(log).toContainEqual(expect.objectContaining({ reason: 'time_unknown' }))
    expect(await signOne(setUp([young.url]).enclave, session).catch((error) => error)).toEqual(unavailable)
  })

  test('uses another enclave if the memory for samples is full', async () => {
    const [full, real] = [await startFakeEnclave(), shared.http]
    onTestFinished(() => full.close())
    full.handlers['/sign'] = () => ({
      status: 200,
      body: { batches: [], results: [{ error: 'entropy_memory_full' }] },
    })
    const session = await setUp([real.url]).enclave.openSession(await issuer.login('alice'))
    expect(await signOne(setUp([full.url, real.url]).enclave, session)).toMatch(/^0x[0-9a-f]{130}$/)
  })

  test('an enclave with a caller policy gets the coordinator’s report, again after a restart', async () => {
    const configHash = 'c0'.repeat(32)
    const log = { info() {}, warn() {} }
    const selfReport = createSelfReport({
      reportSource: createSimulatedReportSource({ simulator, latencyMs: 0 }),
      certificates: createSnpCertificates({ verifier, log }),
      configHash,
      clock,
      log,
    })
    onTestFinished(() => selfReport.stop())
    await selfReport.ready()
    const { selfAttestation } = selfReport.current()
    const policyFile = join(folder, 'caller-policy.json')
    await writeFile(
      policyFile,
      JSON.stringify({ measurements: [selfAttestation.measurement], configHashes: [configHash] }),
    )
    const callerAttestation = () => {
      const { reportHex, certificates } = selfReport.current().selfAttestation
      return { report: reportHex, certificates, configHash }
    }
    const first = await start({ CALLER_POLICY_FILE: policyFile })
    const { enclave } = setUp([first.url], { caller: selfReport, callerAttestation })
    const session = await enclave.openSession(await issuer.login('alice'))
    const signature = await signOne(enclave, session)
    const stranger = setUp([first.url])
    await expect(stranger.enclave.openSession(await issuer.login('bob'))).rejects.toEqual(unavailable)
    expect(stranger.lines.at(-1)).toMatchObject({ code: 'refused', reason: 'caller_unknown' })
    await first.kill('SIGKILL')
    await start({ CALLER_POLICY_FILE: policyFile, PORT: new URL(first.url).port })
    expect(await signOne(enclave, session)).toBe(signature)
  })

  test('a man in the middle with another certificate gets only a nonce', async () => {
    const real = shared.https
    const middle = await startFakeEnclave('https')
    onTestFinished(() => middle.close())
    // It forwards the signed call and returns the real enclave's response.
    middle.handlers['/attest'] = async ({ headers, body }) => {
      const url = new URL('/attest', real.url)
      const outgoing = httpsRequest(url, { method: 'POST', headers, rejectUnauthorized: false, agent: false })
      outgoing.end(body)
      const [response] = await once(outgoing, 'response')
      let text = ''
      for await (const chunk of response) text += chunk
      return { status: response.statusCode, body: JSON.parse(text) }
    }
    const { enclave, lines } = setUp([middle.url])
    await expect(enclave.openSession(await issuer.login('alice'))).rejects.toEqual(unavailable)
    const reason = 'the quote is for another TLS key than the connection’s'
    expect(lines.at(-1)).toMatchObject({ code: 'not_attested', reason })
    expect(new Set(middle.paths)).toEqual(new Set(['/attest']))
  })

  test('a man in the middle after the attestation gets only a nonce', async () => {
    const real = shared.https
    const middle = await startFakeEnclave('https')
    onTestFinished(() => middle.close())
    let target = real.url
    const relay = await startSwitchableRelay(() => target)
    onTestFinished(() => relay.close())
    const { enclave, lines } = setUp([`https://127.0.0.1:${relay.port}`], {
      policy: { configHashes: [await readConfigHash(real)] },
    })
    const session = await enclave.openSession(await issuer.login('alice'))
    target = middle.url
    relay.cut()
    await expect(signOne(enclave, session)).rejects.toEqual(unavailable)
    expect(new Set(middle.paths)).toEqual(new Set(['/attest']))
    expect(lines.at(-1)).toMatchObject({ code: 'not_attested' })
    target = real.url
    relay.cut()
    expect(await signOne(enclave, session)).toMatch(/^0x[0-9a-f]{130}$/)
  })

  async function readConfigHash({ output }: EnclaveProcess): Promise<string> {
    return JSON.parse(output.find((line) => line.includes('configHash')) ?? '{}').configHash
  }

  test('one enclave derives a vault, another signs once it has the policy, and rejects what the rules do', async () => {
    const rule = {
      kind: 'transaction',
      chainIds: 'any',
      to: 'any',
      maxFeeWei: '42000',
      approvals: 0,
      approvers: 'any',
    } as const
    const policy = createPolicy({ version: 1, log: null, approvers: [], rules: [{ ...rule, maxValueWei: '1' }] })
    const text = Buffer.from(toPolicyBytes(policy)).toString()
    const first = setUp([shared.http.url]).enclave
    const session = await first.openSession(await issuer.login('alice'))
    const { sid, grant } = session
    const vault = await first.deriveVault({ sid, grant, policy: text })
    expect(vault.policy).toBe(toHex(hashPolicy(policy)))
    expect(vault.address).toBe(toAddress(fromHex(vault.publicKey)))
    expect(vault.address).not.toBe(session.address)

    const { enclave } = setUp([shared.https.url])
    const use = { keyId: vault.keyId, vault: { policy: vault.policy, rule: 0 } }
    const item = { ...toItem(session), ...use, statementVersion: 2 } as const
    expect((await enclave.signItems([item])).results).toEqual([{ error: 'policy_unknown' }])
    const { rule: _, ...vaultUse } = use.vault
    const stated = {
      kind: 'address',
      sid,
      grant,
      keyId: vault.keyId,
      vault: vaultUse,
      witness: toItem(session).witness,
    } as const
    const { results } = await enclave.signItems([item, stated], [text])
    expect(results).toMatchObject([
      { statement: { kind: 'transaction', address: vault.address, policy: vault.policy, rule: 0, approvals: null } },
      {
        statement: { kind: 'address' },
        subject: { address: vault.address, policy: vault.policy, owner: toHex(hashOwner(vault.owner)) },
      },
    ])
    const dear = { ...item.txMetadata, value: '2' }
    const digest = `0x${toHex(hashUnsignedTransaction(dear))}` as const
    const refused = await enclave.signItems([{ ...item, witness: toItem(session).witness, digest, txMetadata: dear }])
    const rules = [{ rule: 0, reasons: [{ code: 'value_above_max' }] }]
    expect(refused.results).toEqual([{ error: 'policy_refused', details: { reasons: [], rules, nearest: 0 } }])

    const logged = { ...policy, log: { witnesses: [vault.policy], quorum: 1 } }
    for (const [request, code] of [
      [{ sid, grant, policy: `${text} ` }, 'invalid_policy'],
      [{ sid, grant, policy: JSON.stringify(logged) }, 'invalid_policy'],
      [{ sid: '00'.repeat(32), grant, policy: text }, 'grant_invalid'],
    ] as const) {
      await expect(enclave.deriveVault(request)).rejects.toEqual(withCode(code))
    }
  })

  test('logs neither tokens nor secrets', async () => {
    const real = await start()
    const { enclave, lines } = setUp(['http://127.0.0.1:1', real.url])
    const token = await issuer.login('someone@example.com')
    const session = await enclave.openSession(token)
    await signOne(enclave, session)
    await enclave.openSession(token).catch(() => {})
    await real.kill('SIGKILL')
    await signOne(enclave, session).catch(() => {})
    const text = JSON.stringify(lines)
    expect(text).toContain('Could not use an enclave')
    for (const secret of [token.idToken, token.loginSecret, session.sid, session.grant])
      expect(text).not.toContain(secret)
  })
})
