import { developmentSeed } from '@countersign/attestation/simulator'
import {
  createNoteKey,
  formatCheckpoint,
  formatNote,
  parseCheckpoint,
  parseNote,
  parseTlogProof,
  parseVkey,
  signNote,
  toVkey,
} from '@countersign/log'
import { createPolicy } from '@countersign/policy'
import { fromHex, hashLeaf, toCanonicalJson, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { describe, expect, test } from 'vitest'
import { GOLDEN_SIGNED_AT, goldenSignings, issueGolden, parseGolden } from '../../spec/createSpecFiles.ts'
import { createLogTamperings, goldenLog } from '../../spec/tamperedLog.ts'
import { tamperV2 } from '../../spec/tamperedV2.ts'
import { check, failures, issue, service, stepOf } from '../../test/checkReceipt.ts'
import { approved, approveWith } from '../../test/vaults.ts'
import type { CheckReceiptOptions } from '../checkReceipt.ts'
import { createSimulatedLog, type SimulatedAttestation } from '../simulator/index.ts'

const honest = await issueGolden({ kind: 'transaction' }, { log: goldenLog })
const golden = parseGolden(honest)
const { setting } = createSimulatedLog(developmentSeed, goldenLog)

const withLog = (files: SimulatedAttestation, log: string) => ({
  ...files,
  bytes: toCanonicalJson({ ...files.receipt, log }),
})

describe('a receipt in a log', () => {
  const kinds = [...Object.entries(goldenSignings), ['address', { kind: 'address' }] as const]

  test.each(kinds)('%s: passes, and shows the entry', async (_, signing) => {
    const result = await check(await issueGolden(signing, { log: goldenLog }))
    expect([result.verdict, failures(result)]).toEqual(['mock', []])
    expect(result.logged).toEqual({
      origin: 'log.example/enclave-a',
      index: 6,
      timesS: [1_781_524_801, 1_781_524_801],
      size: 11,
      cosigners: [setting.witnesses[0], setting.witnesses[2]],
      witnesses: 3,
      quorum: 2,
      cosignedAt: '2026-06-15T12:00:01.000Z',
    })
    expect(stepOf(result, 'log')).toMatchObject({
      status: 'pass',
      detail: expect.stringContaining(
        'Entry 6 of the log log.example/enclave-a, in a tree of 11. 2 of 3 witnesses cosigned',
      ),
    })
  })

  test.each([
    { size: 1, index: 0 },
    { size: 2, index: 1 },
    { size: 1_000, index: 767 },
    { witnesses: 1, quorum: 1 },
    { witnesses: 32, quorum: 17 },
  ])('passes for any size of tree and quorum: %j', async (log) => {
    expect(await check(await issue({ log }))).toMatchObject({
      verdict: 'mock',
      logged: log.size ? { size: log.size } : {},
    })
  })

  test('without the batch it is unknown whether there is a log', async () => {
    const { batch: _, ...blocks } = honest.blocks
    const result = await check(honest, { blocks })
    expect([result.verdict, stepOf(result, 'log')?.status]).toEqual(['incomplete', 'skip'])
  })
})

describe('without a log', () => {
  const NOTHING_PROVED = 'nothing proves that there are no other signatures'

  test('version 2: the verdict is unchanged, and the step names what is missing', async () => {
    const result = await check(await issueGolden({ kind: 'transaction' }))
    expect(result).toMatchObject({ verdict: 'mock', logged: undefined })
    expect(stepOf(result, 'log')).toMatchObject({ status: 'skip', detail: expect.stringContaining(NOTHING_PROVED) })
  })

  test('version 1: the same', async () => {
    const v1 = await service.issue({ signedAt: GOLDEN_SIGNED_AT })
    const result = await check(v1)
    expect(result).toMatchObject({ verdict: 'mock', logged: undefined })
    expect(stepOf(result, 'log')).toMatchObject({ status: 'skip', detail: expect.stringContaining(NOTHING_PROVED) })
  })

  test('rejects a proof or a key that the settings do not require', async () => {
    const bare = await issueGolden({ kind: 'transaction' })
    const { log = '' } = honest.receipt
    expect(failures(await check(withLog(bare, log)))).toEqual(['log'])
    const changes = [{ path: ['logKey'], value: golden.batch.logKey }]
    const keyed = tamperV2(parseGolden(bare), { block: 'batch', isNamedAnew: true, changes })
    expect(failures(await check({ ...bare, ...keyed }))).toEqual(['log', 'release'])
  })

  test.each([1, 2])('version %i: the step fails for a reader who requires witnesses', async (version) => {
    const bare =
      version === 1 ? await service.issue({ signedAt: GOLDEN_SIGNED_AT }) : await issueGolden({ kind: 'transaction' })
    const result = await check(bare, { anchors: { ...bare.anchors, logWitnesses: [setting] } })
    expect(result).toMatchObject({ verdict: 'failed', isNotListed: true })
    expect(result.steps.filter(({ status }) => status === 'fail')).toMatchObject([
      { id: 'log', code: 'not_in_manifest' },
    ])
  })
})

test('without the proof, or without the key of the log', async () => {
  const { log: _, ...receipt } = honest.receipt
  const stripped = await check({ ...honest, bytes: toCanonicalJson(receipt) })
  expect([stripped.verdict, failures(stripped)]).toEqual(['failed', ['log']])
  expect(stepOf(stripped, 'log')?.detail).toContain('does not prove that it is in one')
  const changes = [{ path: ['logKey'] }]
  const keyless = await check({ ...honest, ...tamperV2(golden, { block: 'batch', isNamedAnew: true, changes }) })
  expect([keyless.verdict, failures(keyless)[0]]).toEqual(['failed', 'log'])
})

describe('the golden receipt', () => {
  test.each(createLogTamperings(golden).map((tampering) => [tampering.name, tampering.step, tampering] as const))(
    '%s is caught by %s',
    async (_, step, tampering) => {
      const result = await check({ ...honest, ...tamperV2(golden, tampering) })
      expect([result.verdict, failures(result)[0], result.logged]).toEqual(['failed', step, undefined])
    },
  )
})

/* From here on, the log, its enclave or the service is dishonest. All other steps pass, and only one step fails. */

describe('another log', () => {
  test('in the settings, but with another key than in the batch', async () => {
    const log = { ...setting, origins: ['log.example/enclave-a', 'log.example/enclave-b'] }
    const files = await issue({ log: goldenLog, settings: { log } })
    expect(failures(await check(files))).toEqual([])
    const other = await issue({ log: { ...goldenLog, origin: 'log.example/enclave-b' }, settings: { log } })
    expect(failures(await check(other))).toEqual([])
    expect(failures(await check(withLog(files, other.receipt.log ?? '')))).toEqual(['log'])
  })

  test('with an origin that is not in the settings, though its witnesses cosigned', async () => {
    const files = await issue({ log: { origin: 'log.example/secret' }, settings: { log: setting } })
    const result = await check(files)
    expect(failures(result)).toEqual(['log'])
    expect(stepOf(result, 'log')?.detail).toContain('do not name the log log.example/secret')
  })

  test('the proof of another receipt', async () => {
    const other = await issue({ log: goldenLog, txMetadata: { nonce: 1 } })
    expect(failures(await check(other))).toEqual([])
    const swapped = withLog(other, honest.receipt.log ?? '')
    expect(failures(await check(swapped))).toEqual(['log'])
    expect(stepOf(await check(swapped), 'log')?.code).toBe('inclusion_invalid')
  })

  test('a witness’s key instead of the log’s', async () => {
    const key = parseVkey(golden.batch.logKey ?? '')
    const cosigner = toVkey(createNoteKey({ ...key, type: 'cosignature-ed25519' }))
    const changes = [{ path: ['logKey'], value: cosigner }]
    const result = await check({ ...honest, ...tamperV2(golden, { block: 'batch', isNamedAnew: true, changes }) })
    expect(failures(result)[0]).toBe('log')
    expect(stepOf(result, 'log')?.detail).toContain('wrong type')
  })
})

describe('witnesses', () => {
  test('rejects one fewer than the quorum, for any number', async () => {
    for (const [witnesses, quorum] of [
      [1, 1],
      [2, 2],
      [3, 2],
      [3, 3],
      [5, 4],
    ] as const) {
      const cosigners = Array.from({ length: quorum }, (_, place) => place)
      expect(failures(await check(await issue({ log: { witnesses, quorum, cosigners } })))).toEqual([])
      const short = await issue({ log: { witnesses, quorum, cosigners: cosigners.slice(1) } })
      expect(failures(await check(short))).toEqual(['log'])
    }
  })

  test('counts a witness once, however often it cosigned', async () => {
    const s = GOLDEN_SIGNED_AT.getTime() / 1000
    const times = [Math.floor(s), Math.floor(s) + 1]
    const files = await issue({ log: { ...goldenLog, cosigners: [0, 0], timestampS: times } })
    expect(stepOf(await check(files), 'log')?.code).toBe('quorum_missing')
    const more = await issue({ log: { ...goldenLog, cosigners: [0, 0, 2], timestampS: [...times, times[0] ?? 0] } })
    expect(failures(await check(more))).toEqual(['log'])
    expect(stepOf(await check(more), 'log')?.detail).toContain('other lines')
  })

  test('rejects settings that let a minority cosign', async () => {
    const changes = [{ path: ['settings', 'log', 'quorum'], value: 1 }]
    const result = await check({ ...honest, ...tamperV2(golden, { block: 'batch', isNamedAnew: true, changes }) })
    expect(stepOf(result, 'log')?.code).toBe('witness_policy_malformed')
  })

  test('rejects a checkpoint with an extra line, even if log and witnesses signed it', async () => {
    const secretOf = (name: string, type: string) =>
      sha256(new TextEncoder().encode(`${developmentSeed} ${type} ${name}`))
    const { index, proof, checkpoint } = parseTlogProof(honest.receipt.log ?? '')
    const { text, signatures } = parseNote(checkpoint)
    const names = signatures.map(({ name }) => name)
    const extended = formatCheckpoint({ ...parseCheckpoint(text), extensions: ['hello'] })
    const note = signNote(
      extended,
      names.map((name, place) => {
        const type = place === 0 ? 'ed25519' : 'cosignature-ed25519'
        const secret = secretOf(name, type)
        const key = createNoteKey({ name, type, publicKey: ed25519.getPublicKey(secret) })
        const sign = (message: Uint8Array) => ed25519.sign(message, secret)
        return { key, sign, ...(place > 0 && { timestampS: 1_781_524_801 }) }
      }),
    )
    const start = (honest.receipt.log ?? '').slice(0, -checkpoint.length)
    expect([index, proof.length]).toEqual([6, 4])
    const result = await check(withLog(honest, `${start}${note}`))
    expect([failures(result), stepOf(result, 'log')?.detail]).toEqual([
      ['log'],
      'The checkpoint has more lines than origin, size and root.',
    ])
    // The same change without the line passes.
    expect(formatNote({ text, signatures })).toBe(checkpoint)
    expect(failures(await check(withLog(honest, `${start}${checkpoint}`)))).toEqual([])
  })
})

describe('the time', () => {
  const at = async (timestampS: readonly number[], more: Partial<CheckReceiptOptions> = {}) => {
    const files = await issue({ log: { witnesses: 3, quorum: 2, timestampS } })
    return check(files, { ...more, anchors: { ...files.anchors, ...more.anchors } })
  }

  test('is when a quorum had cosigned, in any order', async () => {
    expect((await at([300, 100, 200])).logged?.cosignedAt).toBe('1970-01-01T00:03:20.000Z')
    expect((await at([100, 200, 300])).logged?.cosignedAt).toBe('1970-01-01T00:03:20.000Z')
  })

  test('includes the reader’s witnesses if there are any', async () => {
    const { witnesses } = createSimulatedLog(developmentSeed, {}).setting
    const reader = { witnesses: [witnesses[2] ?? ''], quorum: 1 }
    const result = await at([100, 200, 300], { anchors: { logWitnesses: [reader] } })
    expect(result.logged?.cosignedAt).toBe('1970-01-01T00:05:00.000Z')
  })

  test('of a lying witness can be invalid without a failure', async () => {
    const most = Number.MAX_SAFE_INTEGER
    expect((await at([most, 100, 200])).logged?.cosignedAt).toBe('1970-01-01T00:03:20.000Z')
    expect(await at([most, most, most])).toMatchObject({
      verdict: 'mock',
      logged: { cosignedAt: '+275760-09-13T00:00:00.000Z' },
    })
  })
})

describe('the reader’s witnesses', () => {
  const runCheck = (...logWitnesses: NonNullable<NonNullable<CheckReceiptOptions['anchors']>['logWitnesses']>) =>
    check(honest, { anchors: { ...honest.anchors, logWitnesses } })
  const [first = '', silent = '', third = ''] = setting.witnesses
  const stranger = toHex(ed25519.getPublicKey(sha256(new Uint8Array(1))))

  test('pass if enough of them cosigned', async () => {
    for (const policy of [
      { witnesses: [first], quorum: 1 },
      { witnesses: [third, first], quorum: 2 },
      { witnesses: [first, stranger, third], quorum: 2 },
    ]) {
      expect(failures(await runCheck(policy))).toEqual([])
    }
    expect(failures(await runCheck({ witnesses: [first], quorum: 1 }, { witnesses: [third], quorum: 1 }))).toEqual([])
  })

  test('fail if too few cosigned, independent of the settings', async () => {
    for (const policy of [
      { witnesses: [silent], quorum: 1 },
      { witnesses: [stranger], quorum: 1 },
      { witnesses: [first, silent], quorum: 2 },
      { witnesses: [first, stranger, silent], quorum: 2 },
    ]) {
      const result = await runCheck(policy)
      expect([result.verdict, failures(result)]).toEqual(['failed', ['log']])
      expect(stepOf(result, 'log')?.detail).toContain('of the anchors’ witnesses')
      expect(failures(await runCheck({ witnesses: [first], quorum: 1 }, policy))).toEqual(['log'])
    }
  })

  test.each([
    ['no witness', { witnesses: [], quorum: 0 }],
    ['no quorum', { witnesses: [first], quorum: 0 }],
    ['a minority', { witnesses: [first, third], quorum: 1 }],
    ['one twice', { witnesses: [first, first, stranger], quorum: 2 }],
    ['no key', { witnesses: ['00'.repeat(32)], quorum: 1 }],
  ])('%s is no policy, and passes nothing', async (_, policy) => {
    const result = await runCheck(policy)
    expect([result.verdict, stepOf(result, 'log')?.code]).toEqual(['failed', 'witness_policy_malformed'])
  })
})

describe('a vault with a policy that requires a log', () => {
  const [first = '', silent = '', third = ''] = setting.witnesses
  const toVault = (witnesses: string[], quorum: number) => {
    const policy = createPolicy({ ...approved, log: { witnesses, quorum } })
    return { policy, approve: approveWith(policy) }
  }

  test('has a separate quorum among the cosigners', async () => {
    for (const [witnesses, quorum] of [
      [[first, third], 2],
      [[first], 1],
      [[first, silent, third], 2],
    ] as const) {
      const result = await check(await issue({ log: goldenLog, vault: toVault([...witnesses], quorum) }))
      expect([result.verdict, failures(result)]).toEqual(['mock', []])
    }
  })

  test('fails if they are too few, even if they are enough for the settings', async () => {
    for (const [witnesses, quorum] of [
      [[silent], 1],
      [[first, silent], 2],
      [[first, silent, third], 3],
    ] as const) {
      const result = await check(await issue({ log: goldenLog, vault: toVault([...witnesses], quorum) }))
      expect(failures(result)).toEqual(['vault-rule'])
      expect(stepOf(result, 'vault-rule')?.detail).toContain('The policy requires a log')
    }
  })

  test('fails without a log, and with an invalid proof', async () => {
    const vault = toVault([first], 1)
    expect(failures(await check(await issue({ vault })))).toEqual(['vault-rule'])
    const short = await issue({ log: { ...goldenLog, cosigners: [0] }, vault })
    expect(failures(await check(short))).toEqual(['log', 'vault-rule'])
  })

  test('fails even if the signed content is not shown', async () => {
    const signing = { kind: 'message' } as const
    expect(failures(await check(await issue({ signing, log: goldenLog, vault: toVault([silent], 1) })))).toEqual([
      'vault-rule',
    ])
    const result = await check(await issue({ signing, log: goldenLog, vault: toVault([first], 1) }))
    expect([failures(result), stepOf(result, 'vault-rule')?.status]).toEqual([[], 'skip'])
  })
})

test('accepts every free form on the page of the format', async () => {
  const { log = '' } = honest.receipt
  const [line = '', name = '', base64 = ''] = /— (w\d\.example) (\S+)\n/.exec(log) ?? []
  const [witness = ''] = setting.witnesses
  const renamed = createNoteKey({ name: 'w9.example', type: 'cosignature-ed25519', publicKey: fromHex(witness) })
  const bytes = Buffer.concat([Buffer.from(renamed.id, 'hex'), Buffer.from(base64, 'base64').subarray(4)])
  const other = createSimulatedLog(developmentSeed, { ...goldenLog, cosigners: [0, 1, 2] })
  const { statement } = honest.receipt.signer
  const entry = { kind: 'signature', keyId: statement.keyId, leaf: toHex(hashLeaf(statement)) } as const
  const timeMs = GOLDEN_SIGNED_AT.getTime()
  const forms = {
    'another name of a witness': log.replace(line, `— w9.example ${bytes.toString('base64')}\n`),
    'more witnesses': other.prove({ ...entry, timeMs }),
    'a later checkpoint': createSimulatedLog(developmentSeed, { ...goldenLog, size: 12 }).prove({ ...entry, timeMs }),
  }
  expect(name).not.toBe('')
  for (const [form, text] of Object.entries(forms)) {
    const result = await check(withLog(honest, text))
    expect([form, text === log, failures(result), result.cid === honest.cid]).toEqual([form, false, [], false])
  }
})

test('requires the entry of the statement', () => {
  const { statement } = honest.receipt.signer
  const entry = { kind: 'signature', keyId: statement.keyId, leaf: toHex(hashLeaf(statement)) } as const
  const proved = createSimulatedLog(developmentSeed, goldenLog).prove({ ...entry, timeMs: GOLDEN_SIGNED_AT.getTime() })
  expect(proved).toBe(honest.receipt.log)
})
