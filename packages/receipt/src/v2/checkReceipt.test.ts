import { generateKeyPairSync, sign as signWithNode } from 'node:crypto'
import { createSimulator } from '@countersign/attestation/simulator'
import { attestationPublishedTopic, MAX_BLOCK_BYTES, toCanonicalJson, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js'
import { describe, expect, test } from 'vitest'
import { GOLDEN_SIGNED_AT, goldenSignings, issueGolden, parseGolden } from '../../spec/createSpecFiles.ts'
import { createTamperingsV2, tamperV2 } from '../../spec/tamperedV2.ts'
import {
  asHardware,
  check,
  detailOf,
  encodeCid,
  failures,
  issue,
  service,
  statusOf,
  verifier,
} from '../../test/checkReceipt.ts'
import { createFreeForms } from '../../test/quoteForms.ts'
import { isStepOf, requiredSteps, type StepId, stepTitles } from '../check/steps.ts'
import { checkReceipt } from '../checkReceipt.ts'
import { toCid } from '../cid.ts'
import { assembleRelease, toBlockRelease } from './assemble.ts'
import { encodeBlock } from './blocks.ts'

const honest = await issueGolden({ kind: 'transaction' })
const golden = parseGolden(honest)

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

describe('an honest receipt of version 2', () => {
  test.each(Object.entries(goldenSignings))('%s: passes every required step of its kind', async (kind, signing) => {
    const result = await check(await issueGolden(signing))
    expect(result).toMatchObject({ verdict: 'mock', isMock: true, isKnownCode: true, receipt: { kind } })
    for (const id of [...requiredSteps, 'blocks'] as const) {
      if (isStepOf(id, kind as 'transaction')) expect([id, statusOf(result, id)]).toEqual([id, 'pass'])
    }
  })

  test('is not mock if the roots are hardware', async () => {
    // Identified only by its registers, which would not be enough with dstack.
    const files = await issue({ config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` } })
    const result = await check(files, asHardware())
    expect(result).toMatchObject({ verdict: 'unbounded', isMock: false, isKnownCode: true })
    expect(failures(result)).toEqual([])
  })

  test.each([1, 2, 3, 16, 256])('in a batch of %d', async (treeSize) => {
    const files = await issue({ treeSize, leafIndex: treeSize - 1, signing: { kind: 'message' } })
    expect(await check(files)).toMatchObject({ verdict: 'mock' })
  })

  test('an attestation block has less than 5 kB without calldata, in the largest batch and with the largest sample', async () => {
    for (const signing of Object.values(goldenSignings)) {
      const { bytes } = await issue({ treeSize: 256, leafIndex: 123, signing, isBeacon: true })
      expect(bytes.length).toBeLessThan(5_000)
    }
  })

  test('every step has a title and a sentence', async () => {
    const files = await issueGolden({ kind: 'message' })
    for (const { id, title, detail } of (await check(files)).steps) {
      expect(title).toBe(stepTitles[id])
      expect(detail).toMatch(/^[A-Z0-9].*\.$/)
    }
  })
})

describe('the golden blocks', () => {
  const tamperings = createTamperingsV2(golden)

  test('every step that only the blocks can fail has a tampered variant', () => {
    const covered = new Set(tamperings.map(({ step }) => step))
    const byReader: StepId[] = ['measurement', 'entropy-key', 'coordinator-policy', 'coordinator-measurement']
    const rest: StepId[] = ['coordinator-config', 'time']
    const missing = [...requiredSteps, 'blocks' as const].filter((id) => !covered.has(id))
    expect(missing.filter((id) => ![...byReader, ...rest].includes(id))).toEqual([])
  })

  test.each(tamperings.map((tampering) => [tampering.name, tampering.step, tampering] as const))(
    '%s is caught by %s',
    async (_, step, tampering) => {
      const result = await check({ ...honest, ...tamperV2(golden, tampering) })
      expect(result.verdict).toBe('failed')
      expect(failures(result)[0]).toBe(step)
    },
  )

  test('an authorization and an off-chain signature: the signed content cannot be exchanged', async () => {
    const authorization = parseGolden(await issueGolden({ kind: 'authorization' }))
    const offChain = parseGolden(await issueGolden({ kind: 'typed-data' }))
    const cases: [typeof golden, (string | number)[], unknown, StepId][] = [
      [authorization, ['subject', 'chainId'], 1, 'digest'],
      [authorization, ['subject', 'address'], `0x${'aa'.repeat(20)}`, 'digest'],
      [authorization, ['subject', 'nonce'], 1, 'digest'],
      [authorization, ['subject', 'digest'], `0x${'11'.repeat(32)}`, 'digest'],
      [authorization, ['signer', 'statement', 'address'], `0x${'11'.repeat(20)}`, 'signature'],
      [authorization, ['subject', 'chainId'], 0, 'format'],
      [offChain, ['subject', 'commitment'], '11'.repeat(32), 'statement'],
      [offChain, ['signer', 'statement', 'address'], `0x${'11'.repeat(20)}`, 'statement'],
      [offChain, ['signer', 'statement', 'kind'], 'transaction', 'statement'],
      [offChain, ['subject', 'digest'], '11'.repeat(32), 'format'],
    ]
    for (const [blocks, path, value, step] of cases) {
      const files = tamperV2(blocks, { block: 'attestation', isNamedAnew: false, changes: [{ path, value }] })
      expect([path, failures(await check({ ...honest, ...files }))[0]]).toEqual([path, step])
    }
  })
})

describe('both signatures', () => {
  const { batch, collateral, coordinator } = golden.release
  const released = { batch, collateral, coordinator }
  const attacker = { ed25519: ed25519.keygen(), mlDsa65: ml_dsa65.keygen() }
  const message = toBlockRelease(released)
  const genuine = golden.release.signatures.map(({ value }) => Buffer.from(value, 'hex')) as [Buffer, Buffer]

  function withSignatures(signatures: { ed25519: Uint8Array; mlDsa65: Uint8Array }) {
    const release = encodeBlock('release', assembleRelease({ ...released, signatures }))
    const bytes = encodeBlock('attestation', { ...golden.attestation, coordinator: { release: toCid(release) } })
    return { ...honest, bytes, blocks: { ...honest.blocks, release } }
  }

  test('a thief of one key can release nothing', async () => {
    const forged = {
      ed25519: ed25519.sign(message, attacker.ed25519.secretKey),
      mlDsa65: ml_dsa65.sign(message, attacker.mlDsa65.secretKey),
    }
    for (const signatures of [
      { ed25519: genuine[0], mlDsa65: forged.mlDsa65 },
      { ed25519: forged.ed25519, mlDsa65: genuine[1] },
      forged,
    ]) {
      expect(failures(await check(withSignatures(signatures)))).toEqual(['release'])
    }
    expect(failures(await check(withSignatures({ ed25519: genuine[0], mlDsa65: genuine[1] })))).toEqual([])
  })

  test('rejects a signature with a context, or of another release', async () => {
    const { secretKey } = ml_dsa65.keygen(new Uint8Array(32))
    for (const mlDsa65 of [
      ml_dsa65.sign(message, secretKey, { context: new Uint8Array(1) }),
      ml_dsa65.sign(toBlockRelease({ ...released, batch: collateral }), secretKey),
    ]) {
      expect(failures(await check(withSignatures({ ed25519: genuine[0], mlDsa65 })))).toEqual(['release'])
    }
  })

  test('the verifier’s ML-DSA-65 accepts Node’s signatures: both follow FIPS 204', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ml-dsa-65')
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-1952)
    const signature = signWithNode(null, message, privateKey)
    expect(signature).toHaveLength(3309)
    expect(ml_dsa65.verify(signature, message, raw)).toBe(true)
    expect(
      ml_dsa65.verify(
        signature,
        message.map((byte) => byte ^ 1),
        raw,
      ),
    ).toBe(false)
  })
})

describe('no byte is free', () => {
  const quote = Buffer.from(golden.batch.quoteHex, 'hex')
  const inBatch = (path: string, value: unknown) =>
    tamperV2(golden, { block: 'batch', isNamedAnew: true, changes: [{ path: [path], value }] })

  test.each([
    ...createFreeForms(quote).map(([name, form]) => [name, inBatch('quoteHex', toHex(form))] as const),
    ['an empty event log', inBatch('eventLog', '[]')] as const,
    ['an empty event log with white space', inBatch('eventLog', '[ ]\n')] as const,
  ])('%s, which version 1 accepts as genuine, is not what was released', async (_, files) => {
    const result = await check({ ...honest, ...files })
    expect(statusOf(result, 'quote')).toBe('pass')
    expect(failures(result)).toEqual(['release'])
  })
})

describe('missing or wrong blocks', () => {
  test.each(['release', 'batch', 'coordinator'] as const)(
    'without the %s nothing is verified, and nothing has failed',
    async (name) => {
      const { [name]: _, ...blocks } = honest.blocks
      const result = await check(honest, { blocks })
      expect(result.verdict).toBe('incomplete')
      expect([statusOf(result, 'blocks'), statusOf(result, 'digest')]).toEqual(['skip', 'pass'])
    },
  )

  test('without any block, and without collateral', async () => {
    const { roots, anchors } = { ...service, ...honest }
    expect(await checkReceipt(honest.bytes, undefined, { roots, anchors })).toMatchObject({ verdict: 'incomplete' })
    const result = await checkReceipt(honest.bytes, undefined, { roots, verifier, anchors, blocks: honest.blocks })
    expect([result.verdict, statusOf(result, 'quote')]).toEqual(['incomplete', 'skip'])
  })

  test.each([0, 1])('accepts collateral of 256 KiB as a block, but not one byte more (%i)', async (more) => {
    const members = JSON.parse(new TextDecoder().decode(honest.collateral))
    const room = MAX_BLOCK_BYTES - honest.collateral.length + more
    const collateral = toCanonicalJson({ ...members, tcb_info: members.tcb_info + ' '.repeat(room) })
    const release = toCanonicalJson({ ...golden.release, collateral: toCid(collateral) })
    const coordinator = { release: toCid(release) }
    const bytes = toCanonicalJson({ ...golden.attestation, coordinator })
    const result = await check({ ...honest, bytes, collateral, blocks: { ...honest.blocks, release } })
    const [status, detail] = more === 0 ? ['pass', /verified with/] : ['fail', /larger than 256 KiB/]
    expect([statusOf(result, 'collateral'), detailOf(result, 'collateral')]).toEqual([
      status,
      expect.stringMatching(detail),
    ])
    // Not signed.
    expect(failures(result)).toContain('release')
  })

  test.each([
    ['white space', (text: string) => text.replace('{', '{ ')],
    ['a member twice', (text: string) => text.replace('{', '{"pck_crl":"",')],
    ['another order', (text: string) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse()))],
  ])('collateral in another encoding is refused, in both versions: %s', async (_, respell) => {
    const collateral = new TextEncoder().encode(respell(new TextDecoder().decode(honest.collateral)))
    const release = toCanonicalJson({ ...golden.release, collateral: toCid(collateral) })
    const bytes = toCanonicalJson({ ...golden.attestation, coordinator: { release: toCid(release) } })
    const { receipt } = await service.issue({ signedAt: GOLDEN_SIGNED_AT })
    const v1 = toCanonicalJson({ ...receipt, signer: { ...receipt.signer, collateral: toCid(collateral) } })
    for (const given of [{ bytes, blocks: { ...honest.blocks, release } }, { bytes: v1 }]) {
      const { steps } = await check({ ...honest, ...given, collateral })
      expect(steps.find(({ id }) => id === 'collateral')).toMatchObject({ status: 'fail', code: 'json_not_canonical' })
    }
  })

  test('rejects one block in place of another', async () => {
    const { release, batch, coordinator } = honest.blocks
    for (const blocks of [
      { release: batch, batch: release, coordinator },
      { release, batch: coordinator, coordinator: batch },
      { release, batch: honest.bytes, coordinator },
    ]) {
      expect(failures(await check(honest, { blocks }))).toEqual(['blocks'])
    }
  })

  test('rejects the blocks of another receipt, though each is genuine', async () => {
    const other = await issue({ signing: { kind: 'message' } })
    for (const name of ['release', 'batch'] as const) {
      const blocks = { ...honest.blocks, [name]: other.blocks[name] }
      expect(failures(await check(honest, { blocks }))).toEqual(['blocks'])
    }
    const { coordinator } = parseGolden(other).attestation
    const bytes = toCanonicalJson({ ...golden.attestation, coordinator })
    const swapped = { ...honest, bytes, blocks: { ...honest.blocks, release: other.blocks.release } }
    expect(failures(await check(swapped))).toEqual(['blocks'])
  })

  test('a receipt of version 1 needs none, and accepts no opening', async () => {
    const v1 = await service.issue({ signedAt: GOLDEN_SIGNED_AT })
    const { roots, mockEntropyKeys } = service
    const options = { roots, verifier, mockEntropyKeys, anchors: v1.anchors, blocks: honest.blocks }
    expect(await checkReceipt(v1.bytes, v1.collateral, options)).toMatchObject({ verdict: 'mock' })
    const opened = await checkReceipt(v1.bytes, v1.collateral, { ...options, opening: encode({}) })
    expect(failures(opened)).toEqual(['opening'])
  })
})

describe('AMD’s revocation list in the coordinator block', () => {
  test('is checked at the time of signing; without one the step is skipped', async () => {
    const result = await check(await issue({ revocations: {} }))
    expect([result.verdict, statusOf(result, 'coordinator-revocation')]).toEqual(['mock', 'pass'])
    expect(statusOf(await check(honest), 'coordinator-revocation')).toBe('skip')
  })

  test.each([
    { revoked: ['ask'] },
    { faults: { expired: true } },
    { faults: { notYetValid: true } },
    { faults: { wrongSigner: true } },
  ] as const)('%j fails, though the coordinator provided it', async (revocations) => {
    expect(failures(await check(await issue({ revocations })))).toEqual(['coordinator-revocation'])
  })

  test('the reader’s list comes first', async () => {
    const simulator = createSimulator({ at: GOLDEN_SIGNED_AT })
    const list = new Uint8Array(simulator.revocations({ revoked: ['ask'] }))
    const files = await issue({ revocations: {} })
    const result = await check(files, { revocations: { list, at: GOLDEN_SIGNED_AT } })
    expect(failures(result)).toEqual(['coordinator-revocation'])
  })
})

describe('authorizations', () => {
  test('rejects code that the settings do not list, though the enclave signed', async () => {
    const files = await issue({ signing: { kind: 'authorization' }, settings: { implementations: [] } })
    const result = await check(files)
    expect(failures(result)).toEqual(['digest'])
    expect(result.steps.find(({ id }) => id === 'digest')?.code).toBe('authorization_not_allowed')
  })
})

describe('entropy', () => {
  test('a round of a public beacon passes, and the sentence says that many share it', async () => {
    const files = await issue({ isBeacon: true })
    const result = await check(files)
    expect(result.verdict).toBe('mock')
    expect(detailOf(result, 'entropy')).toContain('a public beacon, shared by all signatures of its round')
  })

  test('identifies a beacon by its key, not by its name from the coordinator', async () => {
    const files = await issue({ isBeacon: true })
    const result = await check(files)
    const { publicKey, sequence, source } = result.receipt?.entropy ?? {}
    const detail = detailOf(result, 'entropy')
    expect(detail).toContain(`Round ${sequence}, signed by ${publicKey}:`)
    expect(detail).not.toContain(source)
  })

  test('rejects a source that the settings do not name', async () => {
    const other = await issue({ satelliteSeed: 'evil' })
    const named = golden.batch.settings.entropy
    const satellite = await issue({ satelliteSeed: 'evil', settings: { entropy: named } })
    expect(failures(await check({ ...satellite, anchors: other.anchors }))).toEqual(['config', 'entropy'])
    expect(failures(await check(satellite))).toEqual(['entropy'])
    const beacon = await issue({ isBeacon: true, settings: { entropy: named } })
    expect(failures(await check(beacon))).toEqual(['entropy'])
  })

  test('compares the round’s time with any beacon of the settings that has its chain hash', async () => {
    const { receipt } = await issue({ isBeacon: true })
    if (!('kind' in receipt.entropy)) throw new Error('no beacon')
    const { publicKey: key, chainHash } = receipt.entropy
    const own = { kind: 'drand', key, chainHash, genesisS: 1_500_000_000, periodS: 3 } as const
    const earlier = { ...own, genesisS: 1_499_999_970 }
    const runCheck = async (...entropy: (typeof earlier)[]) =>
      failures(await check(await issue({ isBeacon: true, settings: { entropy } })))
    expect([await runCheck(earlier), await runCheck(earlier, own)]).toEqual([['entropy'], []])
  })

  test('an unsigned sample fails its step', async () => {
    const files = await issue({ unsignedSource: 'orbitport', settings: { entropy: [{ kind: 'unsigned' }] } })
    expect(failures(await check(files))).toEqual(['entropy'])
  })
})

describe('the chain', () => {
  const contract = `0x${'ab'.repeat(20)}`

  test.each(Object.values(goldenSignings))('has the event under the hash of its kind: $kind', async (signing) => {
    const files = await issue({ signing })
    const { receipt } = files
    const queries: { topics: readonly string[] }[] = []
    const result = await check(files, {
      anchors: { ...files.anchors, contract },
      chain: {
        getLogs: async (query) => {
          queries.push(query)
          const blockTime = new Date(GOLDEN_SIGNED_AT.getTime() + 9_000)
          return [
            { address: contract, topics: [...query.topics], data: encodeCid(files.cid), blockNumber: 1, blockTime },
          ]
        },
        getTransactionState: async () => 'mined',
      },
    })
    expect([result.verdict, statusOf(result, 'event')]).toEqual(['mock', 'pass'])
    expect(statusOf(result, 'transaction')).toBe(receipt.kind === 'transaction' ? 'pass' : 'skip')
    const [topic, wallet, hash] = queries[0]?.topics ?? []
    expect([topic, wallet]).toEqual([
      attestationPublishedTopic,
      `0x${receipt.signer.statement.address.slice(2).padStart(64, '0')}`,
    ])
    if (receipt.kind === 'transaction') expect(hash).toBe(receipt.subject.txHash)
    if (receipt.kind === 'off-chain') expect(hash).toBe(`0x${receipt.subject.commitment}`)
  })
})

test('the same options give the same bytes', async () => {
  const again = await issueGolden({ kind: 'transaction' })
  expect(toHex(again.bytes)).toBe(toHex(honest.bytes))
  expect(again.cid).toBe(honest.cid)
})
