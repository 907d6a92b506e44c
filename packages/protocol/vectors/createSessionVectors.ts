// Creates the test vectors of sign-in, stamps and owners with this package's own functions:
//   node -C source packages/protocol/vectors/createSessionVectors.ts
// `src/sessionVectors.test.ts` compares the file with this script and with node:crypto.

import { writeFileSync } from 'node:fs'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  type Hex,
  hashLogin,
  hashOwner,
  type Kind,
  kinds,
  type OwnerIdentity,
  toHex,
  toPrefixedHex,
  toSessionName,
  toStampBytes,
  toTagBytes,
} from '../src/index.ts'
import { sessionTags } from './sessionTags.ts'

const sample = (name: string) => sha256(new TextEncoder().encode(name))
const clientKey = `04${toHex(sample('x'))}${toHex(sample('y'))}`

/** Every vector, as plain JSON. */
export function createSessionVectors() {
  const loginSecret = sample('login secret')
  const address: Hex = toPrefixedHex(sample('address').subarray(0, 20))
  const policy = toHex(sample('policy'))
  const identities: OwnerIdentity[] = [
    { issuer: 'https://accounts.example', subject: 'alice', email: 'alice@example.com' },
    { issuer: 'https://accounts.example', subject: 'alice', email: null },
    { issuer: 'https://accounts.example', subject: 'zoë "z"', email: 'zoë@example.com' },
  ]
  return {
    version: 'countersign-session-vectors/1',
    notes: [
      'Byte strings are lower-case hex: with 0x where they are values of Ethereum, without elsewhere.',
      'The client key is not on its curve: nothing here checks a signature.',
    ],
    tags: sessionTags.map((tag) => ({ tag, bytes: toHex(toTagBytes(tag)) })),
    logins: [undefined, clientKey].map((key) => ({
      loginSecret: toHex(loginSecret),
      clientKey: key ?? null,
      nonceHash: toHex(hashLogin({ loginSecret, clientKey: key })),
    })),
    session: { clientKey, address, name: toSessionName({ clientKey, address }) },
    stamps: (Object.keys(kinds) as Kind[]).map((kind, index) => {
      const vault =
        index % 2 === 0 ? null : { policy, rule: kind === 'address' || kind === 'revocation' ? null : index }
      const digest = kind === 'address' ? null : sample(`digest ${kind}`)
      const issuedMs = 1_735_787_045_678 + index
      const bytes = toHex(toStampBytes({ address, vault, kind, digest, issuedMs }))
      return { address, vault, kind, digest: digest && toHex(digest), issuedMs, bytes }
    }),
    owners: identities.map((identity, index) => {
      const salt = toHex(sample(`salt ${index}`))
      return { salt, identity, commitment: toHex(hashOwner({ salt, identity })) }
    }),
  }
}

/** The file, to the byte. */
export function toSessionVectorFile(vectors: ReturnType<typeof createSessionVectors>): string {
  return `${JSON.stringify(vectors, undefined, 2)}\n`
}

if (import.meta.main) {
  writeFileSync(new URL('session-v1.vectors.json', import.meta.url), toSessionVectorFile(createSessionVectors()))
}
