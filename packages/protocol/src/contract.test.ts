import fc from 'fast-check'
import {
  decodeEventLog,
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  parseAbi,
  toEventSelector,
  toFunctionSelector,
} from 'viem'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { attestationPublishedTopic, parseAttestationPublished, serviceAttestationsAbi } from './contract.ts'
import { type Hex, toHex } from './hex.ts'

const wallet: Hex = `0x${'1a'.repeat(20)}`
const txHash: Hex = `0x${'2b'.repeat(32)}`
const ipfsCid = 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'

const bytesOfLength = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((bytes): Hex => `0x${toHex(bytes)}`)

function encode(args: { wallet: Hex; txHash: Hex; ipfsCid: string }) {
  const topics = encodeEventTopics({ abi: serviceAttestationsAbi, eventName: 'AttestationPublished', args }) as [
    Hex,
    Hex,
    Hex,
  ]
  return { topics, data: encodeAbiParameters([{ type: 'string' }], [args.ipfsCid]) }
}

/** 32 bytes as hex. */
const word = (value: number | bigint) => value.toString(16).padStart(64, '0')
const letters = (text: string) => Buffer.from(text, 'latin1').toString('hex')
const paddedRight = (hex: string) => hex.padEnd(Math.ceil(hex.length / 64) * 64, '0')

describe('ServiceAttestations', () => {
  test('the ABI matches the specification', () => {
    expect(serviceAttestationsAbi.map(({ name }) => name)).toEqual(['AttestationPublished', 'publish', 'publishBatch'])
    const written = parseAbi([
      'event AttestationPublished(address indexed wallet, bytes32 indexed txHash, string ipfsCid)',
      'function publish(address wallet, bytes32 txHash, string ipfsCid)',
      'struct Attestation { address wallet; bytes32 txHash; string ipfsCid; }',
      'function publishBatch(Attestation[] attestations)',
    ])
    const [event, publish, publishBatch] = serviceAttestationsAbi
    expect(toEventSelector(event)).toBe(toEventSelector(written[0]))
    expect(toFunctionSelector(publish)).toBe(toFunctionSelector('publish(address,bytes32,string)'))
    expect(toFunctionSelector(publishBatch)).toBe(toFunctionSelector('publishBatch((address,bytes32,string)[])'))
    const args = [[{ wallet, txHash, ipfsCid }]] as const
    expect(encodeFunctionData({ abi: serviceAttestationsAbi, functionName: 'publishBatch', args })).toBe(
      encodeFunctionData({ abi: written, functionName: 'publishBatch', args }),
    )
  })

  test('the topic is the hash of the event signature', () => {
    expect(attestationPublishedTopic).toBe(toEventSelector('AttestationPublished(address,bytes32,string)'))
  })
})

describe('AttestationPublished', () => {
  test('agrees with viem in both directions', () => {
    const cid = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
      minLength: 1,
      maxLength: 256,
    })
    fc.assert(
      fc.property(bytesOfLength(20), bytesOfLength(32), cid, (wallet, txHash, ipfsCid) => {
        const log = encode({ wallet, txHash, ipfsCid })
        const parsed = parseAttestationPublished(log)
        expect(parsed).toEqual({ wallet, txHash, ipfsCid })
        const { args } = decodeEventLog({ abi: serviceAttestationsAbi, ...log, strict: true })
        expect({ ...args, wallet: args.wallet.toLowerCase() }).toEqual(parsed)
      }),
      { numRuns: 300 },
    )
  })

  test.each([1, 31, 32, 33, 59, 63, 64, 65, 256])('a string of %i characters', (length) => {
    const ipfsCid = 'b'.repeat(length)
    expect(parseAttestationPublished(encode({ wallet, txHash, ipfsCid })).ipfsCid).toBe(ipfsCid)
  })

  test('accepts hex digits in either case', () => {
    const { topics, data } = encode({ wallet, txHash, ipfsCid })
    const upper = (hex: Hex) => `0x${hex.slice(2).toUpperCase()}`
    expect(parseAttestationPublished({ topics: topics.map(upper), data: upper(data) })).toEqual({
      wallet,
      txHash,
      ipfsCid,
    })
  })

  const { topics, data } = encode({ wallet, txHash, ipfsCid })
  const [topic, walletTopic] = topics
  const withText = (hex: string, length = hex.length / 2) => ({
    topics,
    data: `0x${word(32)}${word(length)}${paddedRight(hex)}`,
  })

  test('parses the valid log that the cases below start from', () => {
    expect(parseAttestationPublished(withText(letters(ipfsCid)))).toEqual({ wallet, txHash, ipfsCid })
    expect(withText(letters(ipfsCid)).data).toBe(data)
  })

  test.each<[string, unknown]>([
    ['another event', { topics: [`${topic.slice(0, -1)}0`, walletTopic, txHash], data }],
    ['no topics', { topics: [], data }],
    ['two topics', { topics: [topic, walletTopic], data }],
    ['four topics', { topics: [...topics, txHash], data }],
    ['topics that are not a list', { topics: { length: 3 }, data }],
    ['a topic of 31 bytes', { topics: [topic, walletTopic, txHash.slice(0, -2)], data }],
    ['a topic of 33 bytes', { topics: [topic, walletTopic, `${txHash}00`], data }],
    ['a topic without 0x', { topics: [topic, walletTopic, txHash.slice(2)], data }],
    ['a topic that is null', { topics: [topic, walletTopic, null], data }],
    ['a bit before the wallet', { topics: [topic, `0x01${walletTopic.slice(4)}`, txHash], data }],
    ['a bit right before the wallet', { topics: [topic, `0x${'00'.repeat(11)}01${wallet.slice(2)}`, txHash], data }],
    ['no data', { topics, data: '0x' }],
    ['data that is null', { topics, data: null }],
    ['data in a list', { topics, data: [data] }],
    ['data that is not hex', { topics, data: `${data.slice(0, -1)}g` }],
    ['half a byte', { topics, data: data.slice(0, -1) }],
    ['only an offset', { topics, data: `0x${word(32)}` }],
    ['an empty string', { topics, data: `0x${word(32)}${word(0)}` }],
    ['another offset', { topics, data: `0x${word(64)}${word(0)}${data.slice(66)}` }],
    ['offset 0', { topics, data: `0x${word(0)}${data.slice(66)}` }],
    ['a huge offset', { topics, data: `0x${word(2n ** 255n + 32n)}${data.slice(66)}` }],
    ['a length one short, so that a letter is padding', withText(letters(ipfsCid), 58)],
    ['a length one long, so that padding is a letter', withText(letters(ipfsCid), 60)],
    ['a length beyond the data', withText(letters(ipfsCid), 65)],
    ['a huge length', { topics, data: `0x${word(32)}${word(2n ** 256n - 1n)}${data.slice(130)}` }],
    ['a length that wraps to 59', { topics, data: `0x${word(32)}${word(2n ** 64n + 59n)}${data.slice(130)}` }],
    ['257 characters', withText(letters('b'.repeat(257)))],
    ['a bit in the padding', { topics, data: `${data.slice(0, -1)}1` }],
    ['a word at the end', { topics, data: `${data}${word(0)}` }],
    ['a word less', { topics, data: data.slice(0, -64) }],
    ['a byte at the end', { topics, data: `${data}00` }],
    ['no padding', { topics, data: data.slice(0, -10) }],
    ['a space', withText(letters('bafk rei'))],
    ['a control character', withText(letters('bafk\nrei'))],
    ['a zero character', withText(letters('bafk\0'))],
    ['DEL', withText(letters('bafk\x7f'))],
    ['UTF-8 beyond ASCII', withText(Buffer.from('bäfk').toString('hex'))],
    ['bytes that are not UTF-8', withText('62ff')],
  ])('refuses %s', (_, log) => {
    expect(() => parseAttestationPublished(log as Parameters<typeof parseAttestationPublished>[0])).toThrow(
      withCode('event_malformed'),
    )
  })
})
