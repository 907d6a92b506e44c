import fc from 'fast-check'
import {
  keccak256,
  parseTransaction,
  recoverAddress,
  serializeTransaction,
  type TransactionSerializableEIP1559,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { fromHex, type Hex, toHex, toPrefixedHex } from './hex.ts'
import { recoverPublicKey, toAddress } from './signature.ts'
import {
  encodeSignedTransaction,
  encodeUnsignedTransaction,
  hashParsedTransaction,
  hashSignedTransaction,
  hashUnsignedTransaction,
} from './transaction.ts'
import type { TxMetadata } from './txMetadata.ts'

const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const edges = [0n, 1n, 127n, 128n, 255n, 256n, 65535n, 65536n]

/** Edge values, including `max`, are as likely as all others. */
const upTo = (max: bigint, min = 0n) =>
  fc.oneof(fc.constantFrom(...edges.filter((edge) => edge >= min), max - 1n, max), fc.bigInt({ min, max }))

const bytesOf = (lengths: number[]) =>
  fc
    .tuple(fc.constantFrom(...lengths), fc.constantFrom(0x00, 0x01, 0x7f, 0x80, 0xff), fc.boolean())
    .map(([length, value, isRamp]) => Uint8Array.from({ length }, (_, index) => (isRamp ? index + value : value)))

const data = fc.oneof(
  { weight: 60, arbitrary: bytesOf([0, 1, 2, 31, 32, 54, 55, 56, 57, 255, 256, 257]) },
  { weight: 40, arbitrary: fc.uint8Array({ maxLength: 300 }) },
  { weight: 1, arbitrary: bytesOf([65_535, 65_536, 65_537, 131_072]) },
)

const metadata: fc.Arbitrary<TxMetadata> = fc
  .record({
    chainId: upTo(BigInt(Number.MAX_SAFE_INTEGER), 1n).map(Number),
    nonce: upTo(BigInt(Number.MAX_SAFE_INTEGER)).map(Number),
    to: fc.oneof(
      fc.constantFrom(0, 0x7f, 0xff).map((value) => new Uint8Array(20).fill(value)),
      fc.uint8Array({ minLength: 20, maxLength: 20 }),
    ),
    value: upTo(2n ** 256n - 1n),
    data,
    gas: upTo(2n ** 64n - 1n),
    fees: fc.tuple(upTo(2n ** 256n - 1n), upTo(2n ** 256n - 1n)),
  })
  .map(({ to, data, value, gas, fees: [one, two], ...numbers }) => {
    const [tip, fee] = one < two ? [one, two] : [two, one]
    return {
      ...numbers,
      to: toPrefixedHex(to),
      value: String(value),
      data: toPrefixedHex(data),
      gas: String(gas),
      maxFeePerGas: String(fee),
      maxPriorityFeePerGas: String(tip),
    }
  })

/** r and s in range, sometimes with leading zero bytes. Encoding doesn't need a valid signature. */
const signature = fc
  .tuple(upTo(n - 1n, 1n), upTo(n >> 1n, 1n), fc.constantFrom(0, 1))
  .map(([r, s, yParity]) => ({ r, s, yParity: yParity as 0 | 1 }))

function toViem(one: TxMetadata): TransactionSerializableEIP1559 {
  return {
    type: 'eip1559',
    chainId: one.chainId,
    nonce: one.nonce,
    to: one.to,
    value: BigInt(one.value),
    data: one.data,
    gas: BigInt(one.gas),
    maxFeePerGas: BigInt(one.maxFeePerGas),
    maxPriorityFeePerGas: BigInt(one.maxPriorityFeePerGas),
  }
}

function toBytes({ r, s, yParity }: { r: bigint; s: bigint; yParity: number }): Uint8Array {
  return fromHex(`${word(r)}${word(s)}${(27 + yParity).toString(16)}`)
}

const word = (value: bigint) => value.toString(16).padStart(64, '0')

const simple: TxMetadata = {
  chainId: 1,
  nonce: 0,
  to: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  value: '0',
  data: '0x',
  gas: '21000',
  maxFeePerGas: '2',
  maxPriorityFeePerGas: '1',
}

describe('EIP-1559 transaction', () => {
  // `npm run fuzz:sign` runs 20,000.
  test('unsigned and signed, 500 random and edge cases match viem', () => {
    fc.assert(
      fc.property(metadata, signature, (one, mark) => {
        const unsigned = serializeTransaction(toViem(one))
        expect(toPrefixedHex(encodeUnsignedTransaction(one))).toBe(unsigned)
        expect(toPrefixedHex(hashUnsignedTransaction(one))).toBe(keccak256(unsigned))
        const rAndS = { r: `0x${word(mark.r)}`, s: `0x${word(mark.s)}`, yParity: mark.yParity } as const
        const signed = serializeTransaction(toViem(one), rAndS)
        expect(toPrefixedHex(encodeSignedTransaction(one, toBytes(mark)))).toBe(signed)
        expect(toPrefixedHex(hashSignedTransaction(one, toBytes(mark)))).toBe(keccak256(signed))
        const parsed = [hashParsedTransaction(one), hashParsedTransaction(one, mark)].map(toPrefixedHex)
        expect(parsed).toEqual([keccak256(unsigned), keccak256(signed)])
      }),
      { numRuns: 500 },
    )
  })

  test('viem parses our encoding', () => {
    fc.assert(
      fc.property(metadata, signature, (one, mark) => {
        const parsed = parseTransaction(toPrefixedHex(encodeSignedTransaction(one, toBytes(mark))))
        expect(parsed).toMatchObject({ type: 'eip1559', chainId: one.chainId, to: one.to, yParity: mark.yParity })
        expect([parsed.nonce ?? 0, parsed.data ?? '0x']).toEqual([one.nonce, one.data])
        const amounts = [parsed.value, parsed.gas, parsed.maxFeePerGas, parsed.maxPriorityFeePerGas]
        expect(amounts.map((amount) => String(amount ?? 0n))).toEqual([
          one.value,
          one.gas,
          one.maxFeePerGas,
          one.maxPriorityFeePerGas,
        ])
        expect([BigInt(parsed.r as Hex), BigInt(parsed.s as Hex)]).toEqual([mark.r, mark.s])
      }),
      { numRuns: 300 },
    )
  })

  test('an account’s signature recovers to its address', async () => {
    const account = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')
    await fc.assert(
      fc.asyncProperty(metadata, async (one) => {
        const signed = await account.signTransaction(toViem(one))
        const { r, s, yParity } = parseTransaction(signed as `0x02${string}`)
        const mark = toBytes({ r: BigInt(r as Hex), s: BigInt(s as Hex), yParity: yParity as number })
        const digest = hashUnsignedTransaction(one)
        expect(toPrefixedHex(encodeSignedTransaction(one, mark))).toBe(signed)
        expect(toAddress(recoverPublicKey(digest, mark))).toBe(account.address.toLowerCase())
        expect(await recoverAddress({ hash: toPrefixedHex(digest), signature: toPrefixedHex(mark) })).toBe(
          account.address,
        )
      }),
      { numRuns: 40 },
    )
  })

  test('the case of hex digits does not change the bytes', () => {
    const upper = { ...simple, to: `0x${simple.to.slice(2).toUpperCase()}`, data: '0xAB' } as const
    expect(encodeUnsignedTransaction(upper)).toEqual(encodeUnsignedTransaction({ ...simple, data: '0xab' }))
  })

  test('every field changes the hash', () => {
    const others: Partial<TxMetadata>[] = [
      {},
      { chainId: 2 },
      { nonce: 1 },
      { to: `0x${'00'.repeat(20)}` },
      { value: '1' },
      { data: '0x00' },
      { gas: '21001' },
      { maxFeePerGas: '3' },
      { maxPriorityFeePerGas: '2' },
    ]
    const digests = others.map((other) => toHex(hashUnsignedTransaction({ ...simple, ...other })))
    expect(new Set(digests).size).toBe(digests.length)
  })

  test('rejects malformed metadata and signatures', () => {
    const mark = toBytes({ r: 1n, s: 1n, yParity: 0 })
    const wrong = { ...simple, gas: '021000' }
    expect(() => encodeUnsignedTransaction(wrong)).toThrow(withCode('invalid_tx_metadata'))
    expect(() => hashUnsignedTransaction(wrong)).toThrow(withCode('invalid_tx_metadata'))
    expect(() => encodeSignedTransaction(wrong, mark)).toThrow(withCode('invalid_tx_metadata'))
    expect(() => hashSignedTransaction(wrong, mark)).toThrow(withCode('invalid_tx_metadata'))
    expect(() => encodeSignedTransaction(simple, toBytes({ r: 1n, s: n - 1n, yParity: 0 }))).toThrow(
      withCode('signature_malformed'),
    )
    expect(() => hashSignedTransaction(simple, mark.subarray(1))).toThrow(withCode('signature_malformed'))
  })
})
