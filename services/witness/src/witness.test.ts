import {
  formatAddCheckpoint,
  formatCheckpoint,
  hashOrigin,
  MAX_NOTE_SIGNATURES,
  type Note,
  openNote,
  openWitnessStatement,
  parseNote,
  signNote,
} from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigner, hash, log, origin, toCosigned, toText, witnesses } from '../../../packages/log/test/logs.ts'
import { createMemoryStore, createTestWitness, keyFile, NOW_S, signers, toBody, toRequest } from '../test/witness.ts'
import type { Stored } from './store.ts'
import type { Reply, Witness } from './witness.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const keys = signers.map(({ key }) => key)

/** Verifies the cosignatures of a response for this text. */
function assertCosigns(reply: Reply, text: string, count = 2) {
  expect(reply).toMatchObject({ status: 200 })
  const { verified } = openNote(`${toCosigned(text)}${reply.body}`, keys)
  expect(verified.map(({ timestampS }) => timestampS)).toEqual(Array.from({ length: count }, () => NOW_S))
}

/** A witness that has cosigned 5 leaves. */
async function createAtFive() {
  const made = createTestWitness()
  assertCosigns(await made.witness.addCheckpoint(toBody({ oldSize: 0, size: 5 })), toText(5))
  return made
}

describe('add-checkpoint (c2sp.org/tlog-witness)', () => {
  test('200: a first checkpoint, later ones, and a repeated one', async () => {
    const { witness } = await createAtFive()
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 5, size: 8 })), toText(8))
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 8, size: 8 })), toText(8))
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 8, size: 300 })), toText(300))
  })

  test('200: an empty tree first', async () => {
    const { witness, store } = createTestWitness()
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 0, size: 0 })), toText(0))
    expect(store.latest(hashOrigin(origin))?.checkpoint.size).toBe(0)
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 0, size: 3 })), toText(3))
  })

  test('409: the old size is not the newest, which the body names', async () => {
    const { witness } = await createAtFive()
    for (const oldSize of [0, 4, 6]) {
      const reply = await witness.addCheckpoint(toBody({ oldSize, size: 8 }))
      expect(reply).toEqual({ status: 409, body: '5\n', type: 'text/x.tlog.size' })
    }
    const fresh = await createTestWitness().witness.addCheckpoint(toBody({ oldSize: 5, size: 8 }))
    expect(fresh).toEqual({ status: 409, body: '0\n', type: 'text/x.tlog.size' })
  })

  test('409: a replayed request', async () => {
    const { witness, store } = await createAtFive()
    const body = toBody({ oldSize: 5, size: 8 })
    await witness.addCheckpoint(body)
    expect(await witness.addCheckpoint(body)).toMatchObject({ status: 409, body: '8\n' })
    expect(await witness.addCheckpoint(toBody({ oldSize: 0, size: 5 }))).toMatchObject({ status: 409, body: '8\n' })
    expect(store.latest(hashOrigin(origin))?.checkpoint.size).toBe(8)
  })

  test.each([
    ['a history that forks below what was cosigned', { oldSize: 5, size: 8, history: 'fork' }],
    ['another root of the same size', { oldSize: 5, size: 5, history: 'fork' }],
  ])('422: %s; keeps the record and logs the evidence', async (_, step) => {
    const { witness, store, lines } = await createAtFive()
    const before = store.latest(hashOrigin(origin))
    expect(await witness.addCheckpoint(toBody(step))).toMatchObject({ status: 422 })
    expect(store.latest(hashOrigin(origin))).toEqual(before)
    expect(lines.at(-1)).toMatchObject({ isFork: step.size === 5 })
    expect(openNote(String(lines.at(-1)?.checkpoint), [log.key]).text).toBe(toText(step.size, 'fork'))
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 5, size: 9 })), toText(9))
  })

  test.each([
    ['no proof', toRequest({ oldSize: 5, size: 8 }).replace(/^old 5\n[^—]*?\n\n/, 'old 5\n\n')],
    ['a hash less', toRequest({ oldSize: 5, size: 8 }).replace(/^old 5\n[^\n]*\n/, 'old 5\n')],
    ['a hash more', toRequest({ oldSize: 5, size: 8 }).replace('old 5\n', `old 5\n${'A'.repeat(43)}=\n`)],
    [
      'a proof where the size is the same',
      toRequest({ oldSize: 5, size: 5 }).replace('old 5\n', `old 5\n${'A'.repeat(43)}=\n`),
    ],
  ])('422: %s', async (_, text) => {
    const { witness, store } = await createAtFive()
    expect(await witness.addCheckpoint(encode(text))).toMatchObject({ status: 422 })
    expect(store.latest(hashOrigin(origin))?.checkpoint.size).toBe(5)
  })

  test('422: only two roots of one size are a fork, logged with both; an invalid proof is no evidence', async () => {
    let forks = 0
    const { witness, lines } = createTestWitness({ onFork: () => forks++ })
    await witness.addCheckpoint(toBody({ oldSize: 0, size: 5 }))
    const madeUp = toRequest({ oldSize: 5, size: 5 }).replace('old 5\n', `old 5\n${'A'.repeat(43)}=\n`)
    expect(await witness.addCheckpoint(encode(madeUp))).toMatchObject({ status: 422 })
    expect([lines.length, forks]).toEqual([1, 0])
    await witness.addCheckpoint(toBody({ oldSize: 5, size: 5, history: 'b' }))
    expect(lines.slice(1)).toMatchObject([{ isFork: true, recorded: toCosigned(toText(5)) }])
    expect(forks).toBe(1)
  })

  test('422: logs a repeated refusal once, in any form, and every new one', async () => {
    const { witness, lines } = await createAtFive()
    const forked = toRequest({ oldSize: 5, size: 5, history: 'b' })
    const twice = `${forked}${forked.split('\n').at(-2)}\n`
    const grown = toRequest({ oldSize: 5, size: 9, history: 'b' })
    for (let round = 0; round < 3; round++) {
      for (const text of [forked, twice, grown]) {
        expect(await witness.addCheckpoint(encode(text))).toMatchObject({ status: 422 })
      }
    }
    expect(lines.map(({ size }) => size)).toEqual([5, 9])
  })

  test('422: a proof from nothing, and a wrong root of the empty tree', async () => {
    const { witness, store } = createTestWitness()
    const proof = toRequest({ oldSize: 0, size: 5 }).replace('old 0\n', `old 0\n${'A'.repeat(43)}=\n`)
    expect(await witness.addCheckpoint(encode(proof))).toMatchObject({ status: 422 })
    const checkpoint = signNote(formatCheckpoint({ origin, size: 0, root: hash('x'), extensions: [] }), [log])
    const empty = formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint })
    expect(await witness.addCheckpoint(encode(empty))).toMatchObject({ status: 422 })
    expect(store.latest(hashOrigin(origin))).toBeUndefined()
  })

  test('404: an unknown log with any signature', async () => {
    const { witness } = createTestWitness()
    const text = toText(5).replace(origin, 'other.example')
    const checkpoint = signNote(text, [log, createSigner('other.example')])
    const body = encode(formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint }))
    expect(await witness.addCheckpoint(body)).toMatchObject({ status: 404 })
  })

  test.each([
    ['an unknown key', signNote(toText(5), [createSigner('stranger')])],
    ['another key under the name of the log', signNote(toText(5), [createSigner(origin, 'ed25519', hash('x'))])],
    ['the log, over another text', toCosigned(toText(5)).replace('\n5\n', '\n6\n')],
    [
      'the log, and once more with a signature that does not hold',
      `${toCosigned(toText(5))}${toCosigned(toText(6)).split('\n\n')[1]}`,
    ],
    ['only a witness', signNote(toText(5), [{ ...witnesses[0], timestampS: 1 } as never])],
  ])('403: signed by %s', async (_, checkpoint) => {
    const { witness, store } = createTestWitness()
    const body = encode(formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint }))
    expect(await witness.addCheckpoint(body)).toMatchObject({ status: 403 })
    expect(store.latest(hashOrigin(origin))).toBeUndefined()
  })

  const request = toRequest({ oldSize: 0, size: 5 })
  test.each([
    ['nothing', ''],
    ['an old size beyond the checkpoint', request.replace('old 0', 'old 6')],
    ['no old size', request.replace('old 0\n', '')],
    ['an old size with a leading zero', request.replace('old 0', 'old 00')],
    ['an invalid hash', request.replace('old 0\n', 'old 0\nxyz\n')],
    ['64 hashes', request.replace('old 0\n', `old 0\n${`${'A'.repeat(43)}=\n`.repeat(64)}`)],
    ['no signature', request.slice(0, request.indexOf('\n—'))],
    ['no checkpoint', 'old 0\n\n'],
    ['a size with a leading zero', request.replace('\n5\n', '\n05\n')],
    ['a root that is cut off', request.replace(/=\n\n—/, '\n\n—')],
    ['carriage returns', request.replaceAll('\n', '\r\n')],
    ['a newline less at the end', request.slice(0, -1)],
    ['too many signatures', `${request}${`${request.split('\n').at(-2)}\n`.repeat(MAX_NOTE_SIGNATURES)}`],
  ])('400: %s', async (_, text) => {
    const { witness, store } = createTestWitness()
    expect(text).not.toBe(request)
    expect(await witness.addCheckpoint(encode(text))).toMatchObject({ status: 400 })
    expect(store.latest(hashOrigin(origin))).toBeUndefined()
  })

  test('400: bytes that are not text', async () => {
    expect(await createTestWitness().witness.addCheckpoint(Uint8Array.of(0xff, 0xfe))).toMatchObject({ status: 400 })
  })

  test('Ed25519 cosigns extension lines, which it covers, and ML-DSA-44 does not', async () => {
    const { witness, store } = createTestWitness()
    const text = `${toText(5)}an extension\n`
    const body = encode(formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint: toCosigned(text) }))
    assertCosigns(await witness.addCheckpoint(body), text, 1)
    // After a restart, from the stored checkpoint.
    const restarted = createTestWitness({ store })
    const { body: cosigned } = await restarted.witness.getCheckpoint(hashOrigin(origin))
    expect(openNote(cosigned, [log.key, ...keys]).verified).toHaveLength(2)
  })

  test('neither returns nor stores signatures of unknown keys, and only one of the log', async () => {
    const { witness, store } = createTestWitness()
    const checkpoint = signNote(toText(5), [createSigner('stranger'), log, log, log])
    await witness.addCheckpoint(encode(formatAddCheckpoint({ oldSize: 0, proof: [], checkpoint })))
    expect(store.latest(hashOrigin(origin))?.note).toBe(toCosigned(toText(5)))
  })
})

describe('the record', () => {
  test('signs only after saving, and returns nothing if saving fails', async () => {
    const events: string[] = []
    const memory = createMemoryStore()
    const store = {
      ...memory,
      save(stored: Stored) {
        events.push('saved')
        memory.save(stored)
      },
    }
    const watched = signers.map((signer) => ({
      ...signer,
      sign: async (message: Uint8Array) => {
        events.push('signed')
        return signer.sign(message)
      },
    }))
    const { witness } = createTestWitness({ store, signers: watched })
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 0, size: 5 })), toText(5))
    expect(events).toEqual(['saved', 'signed', 'signed'])

    const save = () => {
      throw new Error('no space left on device')
    }
    const full = { ...memory, save }
    const broken = createTestWitness({ store: full, signers: watched })
    await expect(broken.witness.addCheckpoint(toBody({ oldSize: 5, size: 8 }))).rejects.toThrow('no space')
    expect(events).toHaveLength(3)
  })

  test('cosigns one of two concurrent histories', async () => {
    for (let round = 0; round < 8; round++) {
      const { witness, store } = createTestWitness()
      const steps = ['a', 'b', 'a', 'b'].map((history) => ({ oldSize: 0, size: 1 + round, history }))
      const replies = await Promise.all(steps.map((step) => witness.addCheckpoint(toBody(step))))
      expect(replies.map(({ status }) => status)).toEqual([200, 409, 409, 409])
      expect(store.latest(hashOrigin(origin))?.note).toBe(toCosigned(toText(1 + round, 'a')))
    }
  })

  test('a smaller checkpoint that waits behind a larger one does not roll it back', async () => {
    const { witness, store } = await createAtFive()
    const steps = [20, 8, 12].map((size) => ({ oldSize: 5, size }))
    const replies = await Promise.all(steps.map((step) => witness.addCheckpoint(toBody(step))))
    expect(replies.map(({ status }) => status)).toEqual([200, 409, 409])
    expect(store.latest(hashOrigin(origin))?.checkpoint.size).toBe(20)
  })

  test('endless requests of other callers do not delay the log, because their signatures are shared', async () => {
    let asked = 0
    const slow = signers.map((signer) => ({
      ...signer,
      sign(message: Uint8Array) {
        if (signer.key.type === 'cosignature-ed25519') return signer.sign(message)
        asked++
        return new Promise<never>(() => {})
      },
    }))
    const { witness } = createTestWitness({ signers: slow })
    const only = { isEd25519Only: true }
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 0, size: 5 }), only), toText(5), 1)
    for (let call = 0; call < 40; call++) void witness.getCheckpoint(hashOrigin(origin))
    expect(asked).toBe(1)
    for (let call = 0; call < 40; call++) void witness.addCheckpoint(toBody({ oldSize: 5, size: 5 }))
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 5, size: 8 }), only), toText(8), 1)
  })

  test('a failed call does not delay the next one', async () => {
    const memory = createMemoryStore()
    let isFull = true
    const save = (stored: Stored) => {
      if (isFull) throw new Error('no space left on device')
      memory.save(stored)
    }
    const { witness } = createTestWitness({ store: { ...memory, save } })
    await expect(witness.addCheckpoint(toBody({ oldSize: 0, size: 5 }))).rejects.toThrow()
    isFull = false
    assertCosigns(await witness.addCheckpoint(toBody({ oldSize: 0, size: 5 })), toText(5))
  })
})

describe('for monitors', () => {
  const get = (witness: Witness, name = origin) => witness.getCheckpoint(hashOrigin(name))

  test('serves the newest checkpoint with the signatures of the log and the witness', async () => {
    const { witness, store } = await createAtFive()
    const { status, body } = await get(witness)
    expect(status).toBe(200)
    expect(openNote(body, [log.key, ...keys]).verified).toHaveLength(3)
    // After a restart there is only the stored checkpoint.
    const restarted = createTestWitness({ store })
    expect(parseNote((await get(restarted.witness)).body).text).toBe(toText(5))
  })

  test('has every kind of cosignature, even if the log requested only Ed25519', async () => {
    const { witness } = await createAtFive()
    const answer = await witness.addCheckpoint(toBody({ oldSize: 5, size: 8 }), { isEd25519Only: true })
    assertCosigns(answer, toText(8), 1)
    const { body } = await get(witness)
    expect(parseNote(body).text).toBe(toText(8))
    expect(openNote(body, [log.key, ...keys]).verified).toHaveLength(3)
  })

  test('renews a cosignature for monitors after a minute, with the current time', async () => {
    let now = NOW_S * 1_000
    const { witness } = createTestWitness({ clock: { now: () => now } })
    await witness.addCheckpoint(toBody({ oldSize: 0, size: 5 }))
    const readTimes = async () => openNote((await get(witness)).body, keys).verified.map(({ timestampS }) => timestampS)
    expect(await readTimes()).toEqual([NOW_S, NOW_S])
    now += 59_000
    expect(await readTimes()).toEqual([NOW_S, NOW_S])
    now += 1_000
    expect(await readTimes()).toEqual([NOW_S + 60, NOW_S + 60])
  })

  test('returns 404 for a log that is unknown or has sent nothing', async () => {
    const { witness } = createTestWitness()
    expect(await get(witness)).toMatchObject({ status: 404 })
    expect(await get(witness, 'other.example')).toMatchObject({ status: 404 })
  })
})

describe('statements', () => {
  const nonce = 'ab'.repeat(32)
  const witness = toHex(keys[0]?.publicKey as Uint8Array)
  async function ask(asked: Witness, name = origin) {
    const { status, body } = await asked.getStatement({ originHash: hashOrigin(name), nonce })
    expect(status).toBe(200)
    const expected = { origin: name, nonce, witnesses: [witness], now: new Date(NOW_S * 1_000) }
    return openWitnessStatement(encode(body), expected)
  }

  test('contain the newest checkpoint with the log’s signature, even after a restart', async () => {
    const { witness: asked, store } = await createAtFive()
    for (const one of [asked, createTestWitness({ store }).witness]) {
      const { witness: signed, known } = await ask(one)
      expect([signed, known?.size]).toEqual([witness, 5])
      expect(openNote(known?.note as Note, [log.key]).text).toBe(toText(5))
    }
  })

  test('have no checkpoint for a log that sent none or is unknown', async () => {
    const { witness: asked } = createTestWitness()
    expect(await ask(asked)).toEqual({ witness, known: undefined })
    expect(await ask(asked, 'other.example')).toEqual({ witness, known: undefined })
  })

  test('contain the checkpoint of a log that is no longer on the list', async () => {
    const { store } = await createAtFive()
    expect((await ask(createTestWitness({ store, logs: new Map() }).witness)).known?.size).toBe(5)
  })

  test('omit a checkpoint that could not be recorded', async () => {
    const save = () => {
      throw new Error('no space left on device')
    }
    const { witness: asked } = createTestWitness({ store: { ...createMemoryStore(), save } })
    await expect(asked.addCheckpoint(toBody({ oldSize: 0, size: 5 }))).rejects.toThrow('no space')
    expect(await ask(asked)).toEqual({ witness, known: undefined })
  })
})

test('logs and responses do not contain the key file', async () => {
  const { witness, lines } = await createAtFive()
  const reply = await witness.addCheckpoint(toBody({ oldSize: 5, size: 8, history: 'fork' }))
  const { ed25519: seed } = JSON.parse(keyFile) as { ed25519: string }
  expect(JSON.stringify([lines, reply])).not.toContain(seed)
})
