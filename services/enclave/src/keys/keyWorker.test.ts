import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createVault, type Vault } from './vault.ts'
import { createX25519Pair } from './x25519.ts'

const configHash = new Uint8Array(32).fill(1)
const aad = new Uint8Array(64)
const grant = { owner: 'ab'.repeat(32), sidHash: 'cd'.repeat(32), exp: 1 }
let empty: Vault
let given: Vault

beforeAll(async () => {
  empty = await createVault({ configHash })
  given = await createVault({ rootSecret: new Uint8Array(32).map((_, index) => index), configHash })
})
afterAll(async () => {
  await empty.close()
  await given.close()
})

describe('the root secret, across the thread', () => {
  test('one that came from outside does not go on to others', async () => {
    await expect(given.openGrant(grant)).resolves.toHaveProperty('address')
    const recipient = createX25519Pair().publicKey
    await expect(given.custody.seal({ recipient, aad })).rejects.toMatchObject({ refusal: 'no secret here' })
  })

  test('goes from vault to vault sealed, and nothing is signed before it is there', async () => {
    await expect(empty.openGrant(grant)).rejects.toThrow('the vault could not do it')
    const donor = await createVault({ configHash })
    try {
      await donor.custody.generate()
      const recipient = await empty.custody.makeKey()
      const sealed = await donor.custody.seal({ recipient, aad })
      await empty.custody.accept({ sealed, aad })
      expect(await empty.openGrant(grant)).toEqual(await donor.openGrant(grant))
    } finally {
      await donor.close()
    }
  })

  test('nothing but the answer comes along: no view of a buffer that is larger', async () => {
    const vault = await createVault({ configHash })
    try {
      const [first, recipient] = [createX25519Pair().publicKey, createX25519Pair().publicKey]
      const key = await vault.custody.makeKey()
      await vault.custody.generate()
      const custodians = [first, recipient]
      const { commitment, shares } = await vault.custody.share({ policyHash: configHash, custodians, threshold: 2 })
      const sealed = await vault.custody.seal({ recipient, aad })
      const views = [key, commitment, sealed, ...shares].flatMap((part) =>
        part instanceof Uint8Array ? part : Object.values<Uint8Array>(part),
      )
      expect(views).toHaveLength(10)
      expect(views.map(({ buffer }) => buffer.byteLength)).toEqual(views.map(({ byteLength }) => byteLength))
    } finally {
      await vault.close()
    }
  })

  test('calls at once are answered each with its own', async () => {
    const policyHash = new Uint8Array(32)
    const custodians = [1, 2, 3].map(() => createX25519Pair().publicKey)
    const [refused, shared, again, granted] = await Promise.allSettled([
      empty.custody.makeKey(),
      empty.custody.share({ policyHash, custodians, threshold: 2 }),
      empty.custody.share({ policyHash, custodians: [], threshold: 2 }),
      empty.openGrant(grant),
    ])
    expect(refused).toMatchObject({ reason: { refusal: 'secret already here' } })
    expect(shared).toMatchObject({ value: { shares: [{}, {}, {}] } })
    // What the library throws is not told.
    expect(again).toMatchObject({ reason: new Error('the vault could not do it') })
    expect(granted).toHaveProperty('value.address')
  })

  test('a vault that has ended answers nobody', async () => {
    const vault = await createVault({ configHash })
    const waiting = vault.custody.generate()
    await Promise.all([vault.close(), expect(waiting).rejects.toThrow('the vault has ended')])
    await expect(vault.custody.makeKey()).rejects.toThrow('the vault has ended')
  })
})
