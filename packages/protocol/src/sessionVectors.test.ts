import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createSessionVectors, toSessionVectorFile } from '../vectors/createSessionVectors.ts'

const file = readFileSync(new URL('../vectors/session-v1.vectors.json', import.meta.url), 'utf8')
const { logins, session, stamps, owners } = JSON.parse(file) as ReturnType<typeof createSessionVectors>

test('the file is what the script creates, to the byte', () => {
  expect(file).toBe(toSessionVectorFile(createSessionVectors()))
})

// The tests below compare the file with node:crypto, not with the code that created it.

const unhex = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')
const sha256 = (...parts: (string | Buffer)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

test('a nonce hashes the login secret, or its hash and the client key', () => {
  const [plain, bound] = logins.map(({ nonceHash }) => nonceHash)
  const secret = unhex(logins[0]?.loginSecret ?? '')
  const key = unhex(session.clientKey)
  expect(plain).toBe(sha256('countersign/login/v1\0', secret).toString('hex'))
  expect(bound).toBe(sha256('countersign/login/v2\0', sha256(secret), key).toString('hex'))
  const named = sha256('countersign/session/v1\0', key, unhex(session.address))
  expect(session.name).toBe(named.toString('hex').slice(0, 32))
})

test('a stamp is over address, policy, rule, kind, digest and time, with zeros and 255 for what is missing', () => {
  const numbers: Record<string, number> = {
    transaction: 1,
    message: 2,
    'typed-data': 3,
    authorization: 4,
    address: 5,
    revocation: 6,
  }
  for (const { address, vault, kind, digest, issuedMs, bytes } of stamps) {
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(BigInt(issuedMs))
    const expected = Buffer.concat([
      Buffer.from('countersign/stamp/v1\0'),
      unhex(address),
      vault === null ? Buffer.alloc(32) : unhex(vault.policy),
      Buffer.of(vault?.rule ?? 255, numbers[kind] ?? 0),
      digest === null ? Buffer.alloc(32) : unhex(digest),
      time,
    ])
    expect(bytes).toBe(expected.toString('hex'))
    expect(expected).toHaveLength(21 + 20 + 32 + 1 + 1 + 32 + 8)
  }
  expect(stamps).toHaveLength(Object.keys(numbers).length)
})

test('an owner commitment hashes the salt and the canonical JSON of the identity', () => {
  for (const { salt, identity, commitment } of owners) {
    const { email, issuer, subject } = identity
    const json = JSON.stringify({ email, issuer, subject })
    expect(commitment).toBe(sha256('countersign/owner/v1\0', unhex(salt), json).toString('hex'))
  }
  expect(new Set(owners.map(({ commitment }) => commitment)).size).toBe(owners.length)
})
