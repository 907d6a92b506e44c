import { createHash, hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { privateKeyToAddress } from 'viem/accounts'
import { expect, test } from 'vitest'
import { createVaultVectors, toVaultVectorFile } from '../vectors/createVaultVectors.ts'

const file = readFileSync(new URL('../vectors/vault-v1.vectors.json', import.meta.url), 'utf8')
const { vaults, challenges, addresses, rootSecret } = JSON.parse(file) as ReturnType<typeof createVaultVectors>

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toVaultVectorFile(createVaultVectors()))
})

// From here on, node:crypto and viem check the file, not the code that wrote it.

const unhex = (hex: string) => Buffer.from(hex.replace(/^0x/, ''), 'hex')
const derive = (info: Buffer, length: number) =>
  Buffer.from(hkdfSync('sha256', unhex(rootSecret), '', info, length)).toString('hex')

test('a vault key is HKDF over tag, zero, owner and policy hash', () => {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  for (const { owner, policyHash, keyInfo, privateKey, address, keyIdInfo, keyId } of vaults) {
    const info = Buffer.concat([Buffer.from('countersign/vault/v1\0'), unhex(owner), unhex(policyHash)])
    expect(keyInfo).toBe(info.toString('hex'))
    const scalar = (BigInt(`0x${derive(info, 48)}`) % (order - 1n)) + 1n
    expect(privateKey).toBe(scalar.toString(16).padStart(64, '0'))
    expect(address).toBe(privateKeyToAddress(`0x${privateKey}`).toLowerCase())
    const idInfo = Buffer.concat([Buffer.from('countersign/vault-key-id/v1\0'), unhex(owner), unhex(policyHash)])
    expect(keyIdInfo).toBe(idInfo.toString('hex'))
    expect(keyId).toBe(derive(idInfo, 16))
  }
  expect(new Set(vaults.map(({ address }) => address)).size).toBe(vaults.length)
})

test('a challenge is SHA-256 over tag, zero, vault, policy, rule, kind, digest and expiry', () => {
  for (const [index, { preimage, challenge, agentApproval, ...fields }] of challenges.entries()) {
    const expires = Buffer.alloc(8)
    expires.writeBigUInt64BE(BigInt(fields.expiresMs))
    const after = Buffer.concat([
      ...[unhex(fields.vaultAddress), unhex(fields.policyHash)],
      ...[Buffer.from([fields.rule, index + 1]), unhex(fields.digest), expires],
    ])
    const bytes = Buffer.concat([Buffer.from('countersign/approval/v1\0'), after])
    expect(preimage).toBe(bytes.toString('hex'))
    expect(bytes).toHaveLength(24 + 20 + 32 + 1 + 1 + 32 + 8)
    expect(agentApproval).toBe(Buffer.concat([Buffer.from('countersign/agent-approval/v1\0'), after]).toString('hex'))
    expect(challenge).toBe(createHash('sha256').update(bytes).digest('hex'))
  }
  expect(challenges.map(({ kind }) => kind)).toEqual(['transaction', 'message', 'typed-data'])
})

test('the subject of an address is SHA-256 over tag, zero and its canonical JSON, and so is the event’s field', () => {
  for (const { subject, hash, eventHash } of addresses) {
    const policy = subject.policy === null ? 'null' : `"${subject.policy}"`
    const json = `{"address":"${subject.address}","owner":"${subject.owner}","policy":${policy}}`
    const preimage = `countersign/subject/v1\0${json}`
    expect(hash).toBe(createHash('sha256').update(preimage).digest('hex'))
    expect(eventHash).toBe(`0x${hash}`)
  }
  expect(addresses.map(({ subject }) => subject.policy === null)).toEqual([true, false])
})
