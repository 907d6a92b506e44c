import { checkPrimeSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { primeOffsets, type RsaKeyName, rsaLabel } from './amdPki.ts'
import { developmentSeed } from './keys.ts'
import { createRsaKey, derivePrimes, findPrimeOffsets, isProbablePrime } from './rsa.ts'

const keys = Object.entries(primeOffsets).flatMap(([seed, offsets]) =>
  Object.entries(offsets).map(([name, pair]) => ({ seed, name: name as RsaKeyName, offsets: pair })),
)

describe('RSA keys from a seed', () => {
  test.each(keys)('$seed: the stored primes of $name are prime and make a usable 4096-bit key', (key) => {
    const { p, q } = derivePrimes(key.seed, rsaLabel(key.name), key.offsets)
    for (const prime of [p, q]) {
      expect(checkPrimeSync(prime, { checks: 8 })).toBe(true)
      expect((prime - 1n) % 65537n).not.toBe(0n)
    }
    expect(p).not.toBe(q)
    expect((p * q).toString(2)).toHaveLength(4096)
  })

  test('no two keys share a prime', () => {
    const primes = keys.flatMap(({ seed, name, offsets }) => Object.values(derivePrimes(seed, rsaLabel(name), offsets)))
    expect(new Set(primes).size).toBe(primes.length)
  })

  test('a search finds the primes of another seed', () => {
    expect(findPrimeOffsets('another seed 2', rsaLabel('ark'))).toEqual([98, 374])
  })

  test('Miller–Rabin distinguishes primes from Carmichael numbers and strong pseudoprimes', () => {
    expect([65537n, 2n ** 127n - 1n, 2n ** 521n - 1n].every(isProbablePrime)).toBe(true)
    // 3215031751 deceives the bases 2, 3, 5 and 7 (OEIS A014233).
    expect([561n, 2047n, 3215031751n, 2n ** 127n + 1n].some(isProbablePrime)).toBe(false)
  })

  test('signatures are RSASSA-PSS with SHA-384 and 48 bytes of salt (RFC 8017 §8.1), and deterministic', async () => {
    const key = createRsaKey(developmentSeed, rsaLabel('ark'), { offsets: primeOffsets[developmentSeed]?.ark })
    const message = new TextEncoder().encode('message')
    const signature = key.sign(message).slice()
    expect(signature).toHaveLength(512)
    expect(key.sign(message)).toEqual(signature)

    const algorithm = { name: 'RSA-PSS', hash: 'SHA-384', saltLength: 48 }
    const publicKey = await crypto.subtle.importKey('spki', key.publicKey.slice(), algorithm, false, ['verify'])
    expect(await crypto.subtle.verify(algorithm, publicKey, signature, message)).toBe(true)
    expect(await crypto.subtle.verify(algorithm, publicKey, signature, message.slice(1))).toBe(false)
  })
})
