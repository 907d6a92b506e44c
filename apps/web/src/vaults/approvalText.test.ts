import { hashPolicy, type Policy } from '@countersign/policy'
import { fromHex, hashUnsignedTransaction, type TxMetadata, toHex } from '@countersign/protocol'
import { type Prepared, parsePrepared } from '@countersign/sdk/vaults'
import { describe, expect, test } from 'vitest'
import type { AssertionChanges } from '../../../../packages/policy/test/passkey.ts'
import { alice, ETHER, limited, passkeys } from '../../../../packages/policy/test/policies.ts'
import { parseApproval, readPreparedText, toApproveUrl, withApproval } from './approvalText.ts'
import { parseApprover } from './newVaultDraft.ts'

const now = Date.UTC(2026, 10, 16)
const content: TxMetadata = {
  chainId: 1,
  nonce: 3,
  to: alice,
  value: String(ETHER),
  data: '0x',
  gas: '21000',
  maxFeePerGas: '1000000000',
  maxPriorityFeePerGas: '0',
}
const prepared = parsePrepared({
  version: 1,
  kind: 'transaction',
  content,
  policy: limited,
  rule: limited.rules.findIndex(({ approvals }) => approvals === 1),
  approvals: 1,
  expiresMs: now + 3_600_000,
  address: `0x${'11'.repeat(20)}`,
  policyHash: toHex(hashPolicy(limited)),
  digest: `0x${toHex(hashUnsignedTransaction(content))}`,
})

function approveAs(index: number, from: Prepared = prepared, changes?: AssertionChanges): string {
  const { policy, address, policyHash, rule, kind, digest, expiresMs } = from
  const approver = (policy as Policy).approvers[index]
  const passkey = passkeys.find((one) => one.approver.publicKey === approver?.publicKey)
  if (passkey === undefined) throw new Error('no such passkey')
  const request = { vaultAddress: address, policyHash: fromHex(policyHash), digest: fromHex(digest.slice(2)) }
  return JSON.stringify(passkey.approve({ ...request, rule, kind, expiresMs }, index, changes))
}

describe('the link to another device', () => {
  test('is read from its fragment, as a whole link, or from a file', () => {
    const url = toApproveUrl(prepared, 'https://vault.example')
    expect(url).toMatch(/^https:\/\/vault\.example\/approve#[\w-]+$/)
    for (const text of [url, new URL(url).hash, ` ${JSON.stringify(prepared)}\n`]) {
      expect(parsePrepared(readPreparedText(text))).toEqual(prepared)
    }
  })

  test.each([
    ['nothing', '#'],
    ['no base64', '#%%%'],
    ['bytes that are no text', `#${btoa('\xff\xfe')}`],
    ['one that was cut', toApproveUrl(prepared, '').slice(0, -40)],
  ])('is rejected with %s', (_, text) => {
    expect(() => parsePrepared(readPreparedText(text) ?? '')).toThrow(
      expect.objectContaining({ code: 'prepared_malformed' }),
    )
  })

  test('is rejected if the recipient was changed', () => {
    const text = JSON.stringify({ ...prepared, content: { ...content, to: `0x${'b0'.repeat(20)}` } })
    expect(() => parsePrepared(readPreparedText(text))).toThrow(expect.objectContaining({ code: 'prepared_mismatch' }))
  })
})

describe('a returned approval', () => {
  test('counts by its passkey', () => {
    expect(parseApproval(approveAs(1), prepared, now)).toMatchObject({ approval: { approver: 1 } })
  })

  test.each<[string, () => string, RegExp]>([
    ['is no text of one', () => 'approved!', /complete approval/],
    ['is a list', () => `[${approveAs(0)}]`, /complete approval/],
    ['has a member more', () => approveAs(0).replace('{', '{"x":1,'), /complete approval/],
    ['names another approver', () => approveAs(0).replace('"approver":0', '"approver":1'), /did not sign it/],
    ['names an approver that is not there', () => approveAs(0).replace('"approver":0', '"approver":7'), /no such/],
    [
      'is for another payment',
      () => approveAs(0, { ...prepared, digest: `0x${'00'.repeat(32)}` }),
      /for another signature/,
    ],
    [
      'is for another vault',
      () => approveAs(0, { ...prepared, address: `0x${'22'.repeat(20)}` }),
      /for another signature/,
    ],
    ['has ended', () => approveAs(0, { ...prepared, expiresMs: now - 1 }), /it had expired/],
    [
      'was given on another page',
      () => approveAs(0, prepared, { clientData: { origin: 'https://evil.example' } }),
      /page/,
    ],
    ['was given without a finger or PIN', () => approveAs(0, prepared, { flags: 0x01 }), /did not verify its user/],
  ])('is rejected with a reason if it %s', (_, toText, words) => {
    expect(parseApproval(toText(), prepared, now)).toEqual({ fault: expect.stringMatching(words) })
  })

  test('is sorted by approver, each once', () => {
    const [first, second] = [0, 1].map((index) => JSON.parse(approveAs(index)))
    const again = { ...first, signature: 'later' }
    expect(withApproval(withApproval(withApproval([], second), first), again)).toEqual([again, second])
  })
})

describe('a passkey from another device', () => {
  const approver = passkeys[0]?.approver

  test('is accepted as its page shows it', () => {
    expect(parseApprover(` ${JSON.stringify(approver)}\n`)).toEqual({ approver })
  })

  test.each([
    ['half of it', JSON.stringify(approver).slice(0, 60)],
    ['a number', '7'],
    ['null', 'null'],
    ['a key that is no point', JSON.stringify({ ...approver, publicKey: `04${'00'.repeat(64)}` })],
    ['a member more', JSON.stringify({ ...approver, name: 'Ada' })],
    ['an origin of another domain', JSON.stringify({ ...approver, origins: ['https://evil.example'] })],
    ['an origin without https', JSON.stringify({ ...approver, origins: ['http://vault.example'] })],
    ['no origin', JSON.stringify({ ...approver, origins: [] })],
    ['a bare IP address', JSON.stringify({ ...approver, rpId: '127.0.0.1', origins: ['https://127.0.0.1'] })],
  ])('is rejected if it is %s', (_, text) => {
    expect(parseApprover(text)).toEqual({ fault: expect.any(String) })
  })
})
