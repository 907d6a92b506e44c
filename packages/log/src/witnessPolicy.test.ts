import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createSigner, hash, leaves, log, origin, TIME_S, toCosigned, toText, witnesses } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import { arrangeCheckpoint, assertCosigned, assertLogged } from './assertCosigned.ts'
import { parseNote } from './note.ts'
import { signNote } from './openNote.ts'
import { formatTlogProof, parseTlogProof } from './tlogProof.ts'
import { createInclusionProof, createLeafReader } from './treeProofs.ts'
import {
  assertWitnessPolicy,
  findCosignatures,
  isSatisfied,
  readQuorumTimes,
  type WitnessPolicy,
} from './witnessPolicy.ts'

const [w1, w2, w3] = witnesses as [(typeof witnesses)[number], (typeof witnesses)[number], (typeof witnesses)[number]]
const stranger = createSigner('stranger.example', 'cosignature-ed25519')
const keys = witnesses.map(({ key }) => toHex(key.publicKey))
const policy: WitnessPolicy = { witnesses: keys, quorum: 2 }
const trust = { log: log.key, policy }
const text = toText(9)

describe('a witness policy', () => {
  test.each<[string, Partial<Record<keyof WitnessPolicy, unknown>>]>([
    ['half of the witnesses', { witnesses: keys.slice(0, 2), quorum: 1 }],
    ['less than half', { quorum: 1 }],
    ['more than all', { quorum: 4 }],
    ['a quorum of nothing', { quorum: 0 }],
    ['a quorum with a fraction', { quorum: 2.5 }],
    ['a quorum in words', { quorum: '2' }],
    ['no witnesses', { witnesses: [], quorum: 0 }],
    ['a witness twice', { witnesses: [keys[0], keys[0], keys[1]] }],
    ['a key in capitals', { witnesses: [keys[0]?.toUpperCase(), keys[1]] }],
    ['a key of small order', { witnesses: [`01${'00'.repeat(31)}`, keys[1]] }],
    ['a key of 31 bytes', { witnesses: [keys[0]?.slice(2), keys[1]] }],
    ['33 witnesses', { witnesses: Array.from({ length: 33 }, (_, at) => toHex(hash(String(at)))), quorum: 17 }],
    ['no list', { witnesses: keys[0] }],
  ])('refused: %s', (_, changed) => {
    const changedPolicy = { ...policy, ...changed } as WitnessPolicy
    expect(() => assertWitnessPolicy(changedPolicy)).toThrow(withCode('witness_policy_malformed'))
    expect(() => assertCosigned(toCosigned(text, witnesses), { ...trust, policy: changedPolicy })).toThrow(
      withCode('witness_policy_malformed'),
    )
  })
})

describe('a cosigned checkpoint', () => {
  test('uses the caller’s signature check, and only for the witnesses’ lines', () => {
    const note = parseNote(toCosigned(text, [w1, stranger, w2]))
    const asked: string[] = []
    const allow = (key: Uint8Array, signature: Uint8Array, message: Uint8Array) => {
      asked.push(toHex(key))
      return signature.length === 64 && new TextDecoder().decode(message).endsWith(text)
    }
    expect(findCosignatures(note, keys, allow).map(({ witness }) => witness)).toEqual(keys.slice(0, 2))
    expect(asked).toEqual(keys.slice(0, 2))
    expect(() => findCosignatures(note, keys, () => false)).toThrow(withCode('note_signature_invalid'))
  })

  test('a quorum is enough, and cosignatures are in the order of the policy', () => {
    const { checkpoint, cosignatures } = assertCosigned(toCosigned(text, [w3, stranger, w1]), trust)
    expect(checkpoint).toMatchObject({ origin, size: 9 })
    expect(cosignatures.map(({ witness }) => witness)).toEqual([keys[0], keys[2]])
  })

  test.each([
    ['none', []],
    ['one of two', [w1]],
    ['one of two, twice', [w1, w1]],
    ['one of two, and strangers', [w1, stranger, createSigner('other', 'cosignature-ed25519')]],
    ['one of two, and the key of another as a log', [w1, createSigner('w2.example', 'ed25519')]],
    [
      'one of two, and another key under the name of the second',
      [w1, createSigner('w2.example', 'cosignature-ed25519', hash('x'))],
    ],
  ])('too few: %s', (_, cosigners) => {
    expect(() => assertCosigned(toCosigned(text, cosigners), trust)).toThrow(withCode('quorum_missing'))
  })

  test('a witness with a new name is the same witness, and counts once', () => {
    const renamed = createSigner('new-name.example', 'cosignature-ed25519', hash('w1.example'))
    expect(assertCosigned(toCosigned(text, [renamed, w2]), trust).cosignatures).toHaveLength(2)
    expect(() => assertCosigned(toCosigned(text, [w1, renamed]), trust)).toThrow(withCode('quorum_missing'))
  })

  test('a witness with a name that gives it another witness’s key ID counts as itself, and breaks nothing', () => {
    // Found by trial: SHA-256 of these texts are seeds of keys with the same ID under one name.
    const [one, two] = ['k1887', 'k81493'].map((seed) =>
      createSigner('witness.example', 'cosignature-ed25519', hash(seed)),
    )
    if (one === undefined || two === undefined) throw new Error('no keys')
    expect(one.key.id).toBe(two.key.id)
    const both = [one, two].map(({ key }) => toHex(key.publicKey))
    for (const order of [both, both.toReversed()]) {
      const find = (cosigners: (typeof one)[]) => findCosignatures(parseNote(toCosigned(text, cosigners)), order)
      expect(find([one]).map(({ witness }) => witness)).toEqual([both[0]])
      expect(find([two]).map(({ witness }) => witness)).toEqual([both[1]])
      expect(find([one, two]).map(({ witness }) => witness)).toEqual(order)
    }
    const forged = parseNote(toCosigned(toText(8), [one]))
    expect(() => findCosignatures({ ...forged, text }, both)).toThrow(withCode('note_signature_invalid'))
  })

  test('the newer of two cosignatures by one witness counts', () => {
    const note = signNote(text, [log, { ...w1, timestampS: 5 }, { ...w1, timestampS: 9 }, { ...w1, timestampS: 7 }])
    expect(findCosignatures(parseNote(note), keys).map(({ timestampS }) => timestampS)).toEqual([9])
  })

  test('rejects a note with a cosignature of another tree', () => {
    const [own] = toCosigned(toText(9, 'fork')).split('\n\n')
    const lines = toCosigned(text, [w1, w2]).split('\n\n')[1]?.split('\n').slice(1).join('\n')
    const forked = `${toCosigned(`${own}\n`)}${lines}`
    expect(() => assertCosigned(forked, trust)).toThrow(withCode('note_signature_invalid'))
  })

  test('rejects a note without the log’s signature, or of another origin’s log', () => {
    const bare = signNote(
      text,
      witnesses.map((signer) => ({ ...signer, timestampS: TIME_S })),
    )
    expect(() => assertCosigned(bare, trust)).toThrow(withCode('note_unsigned'))
    const other = createSigner('log.example/enclave-b')
    const both = signNote(text, [log, other, ...witnesses.map((signer) => ({ ...signer, timestampS: TIME_S }))])
    expect(() => assertCosigned(both, { ...trust, log: other.key })).toThrow(withCode('note_unsigned'))
    expect(assertCosigned(both, trust).checkpoint.size).toBe(9)
  })

  test('the arranged checkpoint has the log’s signature, then the witnesses’ in the order of the policy', () => {
    const arranged = [
      [w2, stranger, w1],
      [w1, w2],
      [stranger, w2, w1, w1],
    ].map((cosigners) => arrangeCheckpoint(text, assertCosigned(toCosigned(text, cosigners), trust)))
    expect(new Set(arranged).size).toBe(1)
    expect(arranged[0]).toBe(toCosigned(text, [w1, w2]))
  })
})

describe('a proof (c2sp.org/tlog-proof)', () => {
  const all = leaves(9)
  const index = 4
  const proof = createInclusionProof(createLeafReader(all), { index, size: 9 })
  const checkpoint = toCosigned(text, [w1, w2])
  const whole = formatTlogProof({ index, proof, checkpoint })
  const leaf = all[index] as Uint8Array
  const expected = { leaf, ...trust }

  test('has the lines of the specification', () => {
    expect(whole).toBe(
      `c2sp.org/tlog-proof@v1\nindex 4\n${proof.map((one) => `${Buffer.from(one).toString('base64')}\n`).join('')}\n${checkpoint}`,
    )
    expect(parseTlogProof(whole)).toEqual({ index, proof, checkpoint })
    const extra = Uint8Array.of(1, 2, 3)
    const text = formatTlogProof({ index, proof, checkpoint, extra })
    expect(text).toContain('@v1\nextra AQID\nindex 4\n')
    expect(parseTlogProof(text)).toEqual({ index, proof, checkpoint, extra })
  })

  test('shows that an entry is in the log', () => {
    expect(assertLogged(whole, expected)).toMatchObject({ index, checkpoint: { size: 9 } })
  })

  test('has no hashes for the only leaf of a tree', () => {
    const one = formatTlogProof({ index: 0, proof: [], checkpoint: toCosigned(toText(1), [w1, w2]) })
    expect(assertLogged(one, { ...expected, leaf: all[0] as Uint8Array }).index).toBe(0)
  })

  test.each([
    ['another header', whole.replace('@v1', '@v2')],
    ['no header', whole.split('\n').slice(1).join('\n')],
    ['no index', whole.replace('index 4\n', '')],
    ['an index with a leading zero', whole.replace('index 4', 'index 04')],
    ['an index with a sign', whole.replace('index 4', 'index -4')],
    ['an index of 2^53', whole.replace('index 4', 'index 9007199254740992')],
    ['two spaces', whole.replace('index 4', 'index  4')],
    ['extra data after the index', whole.replace('index 4', 'index 4\nextra AQID')],
    ['extra data that is not base64', whole.replace('index 4', 'extra !\nindex 4')],
    ['extra data twice', whole.replace('index 4', 'extra AQID\nextra AQID\nindex 4')],
    ['a hash of another length', whole.replace('index 4\n', 'index 4\nAQID\n')],
    ['64 hashes', whole.replace('index 4\n', `index 4\n${`${'A'.repeat(43)}=\n`.repeat(64)}`)],
    ['no empty line', whole.replace('\n\n', '\n')],
    ['a carriage return', whole.replace('\n', '\r\n')],
    ['nothing', ''],
    ['a text without an end', 'a'.repeat(300_000)],
  ])('refused: %s', (_, changed) => {
    expect(changed).not.toBe(whole)
    expect(() => assertLogged(changed, expected)).toThrow(expect.objectContaining({ name: 'LogError' }))
    expect(() => parseTlogProof(changed)).toThrow(expect.objectContaining({ name: 'LogError' }))
  })

  test.each([
    ['another index', whole.replace('index 4', 'index 5'), 'inclusion_invalid'],
    ['a hash less', whole.replace(/index 4\n[^\n]*\n/, 'index 4\n'), 'inclusion_invalid'],
    ['a witness less', formatTlogProof({ index, proof, checkpoint: toCosigned(text, [w1]) }), 'quorum_missing'],
    ['another size', whole.replace('\n9\n', '\n10\n'), 'note_signature_invalid'],
    [
      'a checkpoint of another history',
      formatTlogProof({ index, proof, checkpoint: toCosigned(toText(9, 'fork'), [w1, w2]) }),
      'inclusion_invalid',
    ],
  ] as const)('well formed, and no proof: %s', (_, changed, code) => {
    expect(() => assertLogged(changed, expected)).toThrow(withCode(code))
  })

  test('rejects another leaf', () => {
    expect(() => assertLogged(whole, { ...expected, leaf: all[5] as Uint8Array })).toThrow(
      withCode('inclusion_invalid'),
    )
  })
})

describe('the times of a quorum', () => {
  const policies = [1, 2, 3, 4, 5, 6, 7].flatMap((length) =>
    Array.from({ length: Math.ceil(length / 2) }, (_, at) => ({ length, quorum: length - at })).filter(
      ({ quorum }) => 2 * quorum > length,
    ),
  )
  const read = (times: readonly number[], { length, quorum }: (typeof policies)[number]) =>
    readQuorumTimes(
      times.map((timestampS) => ({ timestampS })),
      { witnesses: Array.from({ length }, String), quorum },
    )
  const fill = (length: number, time: number) => Array.from({ length }, () => time)

  test.each(policies)('$quorum of $length: the tolerated liars cannot hold back the shown time', (policy) => {
    const { length, quorum } = policy
    const liars = 2 * quorum - length - 1
    for (let cosigned = quorum; cosigned <= length; cosigned++) {
      expect(read([...fill(liars, 1), ...fill(cosigned - liars, 100)], policy).shownS).toBe(100)
    }
  })

  test.each(policies)(
    '$quorum of $length: too few witnesses to block the log cannot push the time forward',
    (policy) => {
      const { length, quorum } = policy
      const liars = Math.min(2 * quorum - length - 1, length - quorum)
      const honest = fill(quorum - liars, 100)
      expect(read([...fill(liars, 900), ...honest], policy)).toEqual({ passedS: 100, shownS: 100 })
    },
  )

  test('of three, the second time has passed, and the newest is shown', () => {
    expect(read([20, 40, 30], { length: 3, quorum: 2 })).toEqual({ passedS: 30, shownS: 40 })
  })
})

describe('isSatisfied', () => {
  const policy = { witnesses: ['one', 'two', 'three'], quorum: 2 }
  test.each<[string, string[], boolean]>([
    ['all', ['one', 'two', 'three'], true],
    ['a quorum', ['three', 'one'], true],
    ['one of them', ['one'], false],
    ['one of them, twice', ['one', 'one'], false],
    ['one of them and others', ['one', 'four', 'five'], false],
    ['no keys', [], false],
  ])('decides for %s', (_, keys, expected) => {
    expect(isSatisfied(policy, keys)).toBe(expected)
  })
})
