import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hashOwner, type OwnerOpening, toCanonicalJson, toChecksumAddress, toHex } from '@countersign/protocol'
import { encodeReceiptCar, parseBlock, quantumNote, toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { goldenLog } from '../../../packages/receipt/spec/tamperedLog.ts'
import { goldenVaults } from '../../../packages/receipt/test/vaults.ts'
import { issueGolden, issueGoldenV2 } from '../../../packages/verify/test/issues.ts'
import { createFakeNetwork, gatewayUrl } from '../../../packages/verify/test/network.ts'
import { createFolder, toFlags } from '../test/folder.ts'
import { deps } from '../test/runCli.ts'
import { toExitCode } from './exitCodes.ts'
import { runCli } from './runCli.ts'

const golden = await issueGolden()
const transaction = await issueGoldenV2()
const message = await issueGoldenV2({ signing: { kind: 'message', content: { message: '0x68691b5b324b' } } })
const beacon = await issueGoldenV2({ isBeacon: true })
const logged = await issueGoldenV2({ log: goldenLog })
const vault = await issueGoldenV2(goldenVaults.transaction)
const wallet = await issueGoldenV2(goldenVaults['wallet-address'])
const vaultAddress = await issueGoldenV2(goldenVaults.address)
const nobody = { ...deps, fetch: () => Promise.reject(new Error('touched the network')) }
const offline = (issue: typeof message) => ['--offline', '--allow-mock', ...toFlags(issue)]
const flat = (text: string) => text.replace(/\s+/g, ' ')

describe('blocks of version 2', () => {
  test.each(['names', 'CIDs'])('are found next to the receipt by their %s, offline', async (kind) => {
    const parts = { ...transaction.blocks, collateral: transaction.collateral }
    const files = Object.entries(parts).map(([name, bytes]) => [
      kind === 'names' ? `${name}.json` : toCid(bytes),
      bytes,
    ])
    const folder = await createFolder({ 'receipt.json': transaction.bytes, ...Object.fromEntries(files) })
    expect((await runCli(nobody, [join(folder, 'receipt.json'), ...offline(transaction)])).exitCode).toBe(7)
  })

  test('count as missing evidence, with advice', async () => {
    const folder = await createFolder({ 'receipt.json': transaction.bytes })
    const { exitCode, stdout } = await runCli(nobody, [join(folder, 'receipt.json'), ...offline(transaction)])
    expect(exitCode).toBe(5)
    expect(flat(stdout)).toContain('Each block matches its CID. Not checked')
    expect(stdout).toContain('or use a CAR file')
  })
})

describe('--car', () => {
  test.each([
    ['1', golden],
    ['2', message],
  ])('writes a downloaded receipt of version %s, and the file verifies', async (_, issue) => {
    const folder = await createFolder({})
    const car = join(folder, 'receipt.car')
    const { fetch } = createFakeNetwork(issue)
    const flags = ['--allow-mock', ...toFlags(issue)]
    const fetched = await runCli({ ...deps, fetch }, [issue.cid, '--ipfs', gatewayUrl, '--car', car, ...flags])
    expect(fetched.exitCode).toBe(7)
    const { bytes, collateral } = issue
    const blocks = 'blocks' in issue ? issue.blocks : {}
    expect(Uint8Array.from(await readFile(car))).toEqual(encodeReceiptCar({ bytes, collateral, blocks }))
    expect((await runCli(nobody, [car, '--offline', ...flags])).exitCode).toBe(7)
  })

  test('never overwrites a file, and says so before it uses the network', async () => {
    const folder = await createFolder({ 'receipt.json': transaction.bytes })
    const taken = join(folder, 'receipt.json')
    const { exitCode, stderr } = await runCli(nobody, [transaction.cid, '--ipfs', gatewayUrl, '--car', taken])
    expect(exitCode).toBe(4)
    expect(stderr).toContain('would overwrite')
    expect(Uint8Array.from(await readFile(taken))).toEqual(transaction.bytes)
  })

  test('reports a file that can’t be written', async () => {
    const folder = await createFolder({ 'receipt.car': encodeReceiptCar(transaction) })
    const car = join(folder, 'nowhere', 'out.car')
    const { exitCode, stderr } = await runCli(nobody, [join(folder, 'receipt.car'), '--offline', '--car', car])
    expect(exitCode).toBe(4)
    expect(stderr).toContain('[file_unwritable]')
  })

  test('prints the verdict for a receipt with a repeated block, and reports that no file was written', async () => {
    const { batch } = transaction.blocks
    const release = toCanonicalJson({ ...parseBlock('release', transaction.blocks.release), collateral: toCid(batch) })
    const receipt = toCanonicalJson({ ...transaction.receipt, coordinator: { release: toCid(release) } })
    const { coordinator } = transaction.blocks
    const files = { 'batch.json': batch, 'release.json': release, 'coordinator.json': coordinator }
    const folder = await createFolder({ 'receipt.json': receipt, ...files })
    const car = join(folder, 'out.car')
    const argv = [join(folder, 'receipt.json'), ...offline(transaction), '--car', car]
    const { exitCode, stdout, stderr } = await runCli(nobody, argv)
    expect(exitCode).toBe(1)
    expect(stdout).toContain('\nNot verified\n')
    const line = `could not write ${car}: its blocks don't fit a CAR file (a block twice)`
    expect(stderr).toBe(`countersign-verifier: ${line}\n`)
    const json = JSON.parse((await runCli(nobody, [...argv, '--json'])).stdout)
    expect(json).toMatchObject({ verdict: 'failed', exitCode: 1, problems: [line] })
    await expect(readFile(car)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('is no success if the file wasn’t written, unless the verdict is worse', () => {
    const outcome = { receipt: {}, unwritten: 'could not write it' }
    expect(toExitCode({ ...outcome, conclusion: 'accepted' })).toBe(4)
    expect(toExitCode({ ...outcome, conclusion: 'failed' })).toBe(1)
    expect(toExitCode({ ...outcome, conclusion: 'unbounded' })).toBe(7)
  })
})

describe('explain', () => {
  test('prints a receipt of version 2 and its blocks', async () => {
    const car = encodeReceiptCar(transaction)
    const folder = await createFolder({
      'receipt.json': transaction.bytes,
      'receipt.car': car,
      'cut.car': car.slice(0, -1),
    })
    const alone = await runCli(nobody, ['explain', join(folder, 'receipt.json')])
    const whole = await runCli(nobody, ['explain', join(folder, 'receipt.car')])
    expect([alone.exitCode, whole.exitCode]).toEqual([0, 0])
    for (const { stdout } of [alone, whole]) expect(stdout).toContain(transaction.cid)
    expect(alone.stdout).not.toMatch(/TDX QUOTE|SEV-SNP/)
    expect(whole.stdout).toMatch(/TDX QUOTE.*SEV-SNP REPORT/s)
    expect((await runCli(nobody, ['explain', join(folder, 'cut.car')])).stderr).toContain('[car_malformed]')
  })

  test('prints the whole configuration of version 2 with its settings', async () => {
    const authorization = await issueGoldenV2({ signing: { kind: 'authorization' } })
    const folder = await createFolder({ 'receipt.car': encodeReceiptCar(authorization) })
    const { stdout } = await runCli(nobody, ['explain', join(folder, 'receipt.car')])
    const { config, settings } = parseBlock('batch', authorization.blocks.batch)
    const [issuer] = config.issuers
    const [source] = settings.entropy
    const [implementation] = settings.implementations
    if (source === undefined || source.kind === 'unsigned') throw new Error('the simulator’s source signs')
    expect(stdout).toContain(`configuration hash         ${authorization.anchors.configHashes[0]}\n`)
    expect(stdout).toContain(`accepts sign-ins from    ${issuer?.issuer} for ${issuer?.audience}`)
    expect(stdout).toContain(`entropy sources          ${source.kind}, key ${source.key}\n`)
    expect(stdout).toContain(`allowed delegation code  ${implementation}\n`)
    expect(stdout).toContain('sessions                 any (a cookie is enough)\n')
    expect(stdout).toMatch(/^ {2}session +cookie$/m)
    expect(stdout).toContain(`version                  ${config.version}\n`)
  })
})

describe('what was signed', () => {
  const say = async (issue: typeof message, opening?: Uint8Array) => {
    const files = { 'receipt.car': encodeReceiptCar(issue), ...(opening && { 'opening.json': opening }) }
    const folder = await createFolder(files)
    const given = opening === undefined ? [] : ['--opening', join(folder, 'opening.json')]
    const { stdout } = await runCli(nobody, [join(folder, 'receipt.car'), ...given, ...offline(issue)])
    return stdout
  }

  test('is only stated for an off-chain signature, and shown without control characters with an opening', async () => {
    expect(flat(await say(message))).toContain(
      'signed a message or typed data on 2026-06-15T12:00:00.123Z. Only its owner can show the content',
    )
    const opened = await say(message, toCanonicalJson(message.opening))
    expect(opened).toContain('Message     hi\u{fffd}[2K\n')
    expect(opened).toContain('Bytes       0x68691b5b324b\n')
    expect(opened).not.toContain('\u001b')
    const { signature } = message.opening ?? {}
    expect(opened).not.toContain(typeof signature === 'object' ? signature.signature : 'nothing')
  })

  test('is not shown for another signature’s opening', async () => {
    const other = await issueGoldenV2({ signing: { kind: 'message' }, signedAt: new Date('2026-06-15T12:00:01Z') })
    const text = await say(message, toCanonicalJson(other.opening))
    expect(text).toContain('\nNot verified\n')
    expect(text).not.toMatch(/hello|^Message/m)
  })

  test('names the quantum-safe parts and a shared beacon', async () => {
    expect(flat(await say(transaction))).toContain(quantumNote)
    expect(flat(await say(transaction))).not.toContain('public beacon')
    expect(flat(await say(beacon))).toContain('a public beacon, shared by all signatures of its round')
  })
})

describe('the owner of an address', () => {
  const run = async (issue: typeof wallet, opening: unknown, ...flags: string[]) => {
    const files = {
      'receipt.car': encodeReceiptCar(issue),
      ...(opening ? { 'owner.json': toCanonicalJson(opening) } : {}),
    }
    const folder = await createFolder(files)
    const given = opening === undefined ? [] : ['--opening', join(folder, 'owner.json')]
    return runCli(nobody, [join(folder, 'receipt.car'), ...given, ...offline(issue), ...flags])
  }

  test('is sealed without an opening, which is no fault', async () => {
    const { exitCode, stdout } = await run(wallet, undefined)
    expect(exitCode).toBe(7)
    expect(stdout).toContain('– The opening belongs to this signature\n       Not checked: the owner is sealed.\n')
    expect(stdout).toContain('Owner       sealed\n')
    expect(stdout).not.toContain('alice')
  })

  test.each([
    ['wallet', wallet],
    ['vault', vaultAddress],
  ])('of a %s is said with its opening, for people and for programs', async (_, issue) => {
    const { exitCode, stdout } = await run(issue, issue.owner)
    expect(exitCode).toBe(7)
    const address = toChecksumAddress(issue.receipt.signer.statement.address)
    expect(flat(stdout)).toContain(`${address} belongs to alice@example.com at https://idp.example.`)
    expect(stdout).toContain('Owner       alice@example.com at https://idp.example\n')
    expect(stdout).toContain('Subject     alice\n')
    const json = JSON.parse((await run(issue, issue.owner, '--json')).stdout)
    expect(json.address.owner).toEqual({
      commitment: toHex(hashOwner(issue.owner as OwnerOpening)),
      opened: { issuer: 'https://idp.example', subject: 'alice', email: 'alice@example.com' },
    })
    expect(JSON.stringify(json)).not.toContain(issue.owner?.salt)
  })

  test.each([
    ['another address of the same owner', vaultAddress.owner],
    ['another owner', { ...wallet.owner, identity: { ...wallet.owner?.identity, subject: 'bob' } }],
    ['another salt', { ...wallet.owner, salt: '00'.repeat(32) }],
    ['a message', message.opening],
  ])('the opening of %s fails like that of another signature, and names nobody', async (_, opening) => {
    const { exitCode, stdout } = await run(wallet, opening)
    expect(exitCode).toBe(1)
    expect(stdout).toContain('\nNot verified\n')
    expect(stdout).toContain('Owner       sealed\n')
    expect(stdout).not.toMatch(/0x\w{40} belongs to|alice|bob/)
    const json = JSON.parse((await run(wallet, opening, '--json')).stdout)
    expect(json).toMatchObject({ verdict: 'failed', exitCode: 1 })
    expect(json.address.owner).not.toHaveProperty('opened')
  })
})

describe('a log', () => {
  const toRun = async (issue: typeof logged, ...flags: string[]) => {
    const folder = await createFolder({ 'receipt.car': encodeReceiptCar(issue) })
    return runCli(nobody, [join(folder, 'receipt.car'), ...offline(issue), ...flags])
  }
  const { log } = parseBlock('batch', logged.blocks.batch).settings
  const [first = '', silent = '', third = ''] = log?.witnesses ?? []

  test('is named with entry, tree and witnesses, as text and JSON', async () => {
    const { stdout, exitCode } = await toRun(logged)
    expect(exitCode).toBe(7)
    expect(stdout).toContain('Log         entry 6 of log.example/enclave-a, tree size 11\n')
    expect(stdout).toContain('Witnesses   2 of 3 cosigned (2 required)\n')
    expect(flat(stdout)).toContain('They had a quorum by 2026-06-15T12:00:01.000Z, according to their own clocks')
    const json = JSON.parse((await toRun(logged, '--json')).stdout)
    expect(json.log).toEqual({
      origin: 'log.example/enclave-a',
      index: 6,
      timesS: [1_781_524_801, 1_781_524_801],
      size: 11,
      cosigners: [first, third],
      witnesses: 3,
      quorum: 2,
      cosignedAt: '2026-06-15T12:00:01.000Z',
    })
  })

  test('is explained as stated, also if its proof is invalid', async () => {
    const broken = toCanonicalJson({ ...logged.receipt, log: 'nothing' })
    const folder = await createFolder({ 'receipt.car': encodeReceiptCar(logged), 'broken.json': broken })
    const { stdout } = await runCli(nobody, ['explain', join(folder, 'receipt.car')])
    for (const text of ['log.example/enclave-a', '2 of 3 witnesses', first, silent, third]) {
      expect(stdout).toContain(text)
    }
    const unreadable = await runCli(nobody, ['explain', join(folder, 'broken.json')])
    expect([unreadable.exitCode, unreadable.stdout.includes('unreadable')]).toEqual([0, true])
  })
})

describe('a vault', () => {
  test.each(['transfer', 'revocation'] as const)('with budgets: its %s verifies, and is shown', async (name) => {
    const issue = await issueGoldenV2(goldenVaults[name])
    const folder = await createFolder({ 'receipt.car': encodeReceiptCar(issue) })
    const { exitCode, stdout } = await runCli(nobody, [join(folder, 'receipt.car'), '--json', ...offline(issue)])
    expect(exitCode).toBe(7)
    const { vault, revocation } = JSON.parse(stdout)
    expect(vault.budget).toEqual(goldenVaults[name].vault?.budget)
    expect(revocation?.key).toBe(issue.receipt.kind === 'revocation' ? issue.receipt.subject.key : undefined)
  })

  test('is verified with policy.json next to the receipt, offline, and described', async () => {
    const parts = Object.entries({ ...vault.blocks, collateral: vault.collateral })
    const files = Object.fromEntries(parts.map(([name, bytes]) => [`${name}.json`, bytes]))
    const folder = await createFolder({ 'receipt.json': vault.bytes, ...files })
    const { exitCode, stdout } = await runCli(nobody, [join(folder, 'receipt.json'), ...offline(vault)])
    expect(exitCode).toBe(7)
    expect(stdout).toMatch(/✓ The policy allows what was signed/)
    expect(stdout).toContain('Approved by passkey 1 of 2, at vault.example\n')
    const json = await runCli(nobody, [join(folder, 'receipt.json'), '--json', ...offline(vault)])
    expect(JSON.parse(json.stdout)).toMatchObject({ kind: 'transaction', vault: { policy: { version: 1 } } })
  })

  test('is explained with its rules if they are present', async () => {
    const folder = await createFolder({ 'receipt.json': vault.bytes, 'receipt.car': encodeReceiptCar(vault) })
    const alone = await runCli(nobody, ['explain', join(folder, 'receipt.json')])
    const whole = await runCli(nobody, ['explain', join(folder, 'receipt.car')])
    for (const { stdout } of [alone, whole]) {
      expect(stdout).toContain(vault.receipt.policy)
      expect(stdout).toMatch(new RegExp(`^ {2}rule +${(vault.receipt.signer.statement.rule ?? 0) + 1}$`, 'm'))
    }
    expect(alone.stdout).not.toContain('Up to 0.1')
    expect(whole.stdout).toContain('Up to 0.1')
  })
})
