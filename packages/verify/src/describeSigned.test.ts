import { type OpeningContent, toChecksumAddress } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { approved, goldenVaults } from '../../receipt/test/vaults.ts'
import { issueGolden, issueGoldenV2 } from '../test/issues.ts'
import { describeSigned, nameSigned, type SignedReader } from './describeSigned.ts'

const one = await issueGolden()
const transaction = await issueGoldenV2()
const authorization = await issueGoldenV2({ signing: { kind: 'authorization' } })
const message = await issueGoldenV2({ signing: { kind: 'message' } })
const address = await issueGoldenV2(goldenVaults.address)

type Shown = Parameters<typeof describeSigned>[0]

const verified = { verdict: 'verified', isMockRefused: false, isKnownCode: true } as const
const say = (shown: Partial<Shown> & Pick<Shown, 'receipt'>, reader?: SignedReader) =>
  describeSigned({ ...verified, content: undefined, ...shown }, reader)

test('describes a transaction alike in both versions', () => {
  expect(say({ receipt: transaction.receipt })).toEqual(say({ receipt: one.receipt }))
})

test.each([
  ['0', '0 ETH'],
  ['1', '0.000000000000000001 ETH'],
  ['1500000000000000000', '1.5 ETH'],
  ['20000000000000000000', '20 ETH'],
])('%s wei are %s', (value, expected) => {
  const receipt = { ...one.receipt, transaction: { ...one.receipt.transaction, value } }
  expect(say({ receipt }).facts).toContainEqual({ name: 'Amount', value: expected })
})

test.each([
  [1, '1 ETH'],
  [11155111, '1 ETH'],
  [137, '1 POL'],
  [100, '1 of the chain’s coin'],
])('names ether only on chains with ether as their coin: %d', (chainId, amount) => {
  const { title, facts } = say({ receipt: { ...one.receipt, transaction: { ...one.receipt.transaction, chainId } } })
  expect(title).toBe(`A payment of ${amount}`)
  expect(facts).toContainEqual({ name: 'Amount', value: amount })
})

test('describes a payment in one sentence, with the reader’s names and times', () => {
  const { title, sentence, facts } = say({ receipt: one.receipt }, { toTime: (time) => `<${time}>` })
  const { from, to, txHash, signedAt } = one.receipt.transaction
  expect(title).toBe('A payment of 1 ETH')
  expect(sentence).toBe(
    `To ${toChecksumAddress(to)} on Local chain. The wallet ${toChecksumAddress(from)} signed it on <${signedAt}>.`,
  )
  expect(facts).toEqual([
    { name: 'Amount', value: '1 ETH' },
    { name: 'From', value: toChecksumAddress(from) },
    { name: 'To', value: toChecksumAddress(to) },
    { name: 'Chain', value: 'Local chain (chain 31337)' },
    { name: 'Signed', value: `<${signedAt}> (${signedAt})` },
    { name: 'Transaction', value: txHash },
  ])
})

test('describes the budgets that a payment was counted against, and a revoked agent', async () => {
  const policyOf = (name: 'transfer' | 'revocation') => goldenVaults[name].vault?.policy
  const transfer = await issueGoldenV2(goldenVaults.transfer)
  const { facts } = say({ receipt: transfer.receipt, policy: policyOf('transfer') })
  const unit = `in the smallest unit of ${policyOf('transfer')?.budgets?.find(({ token }) => token !== null)?.token}`
  expect(facts.filter(({ name }) => /^Budget|^Approved/.test(name))).toEqual([
    { name: 'Approved by', value: 'agent key 2 of 3' },
    { name: 'Budget 1', value: `2500000 counted, 4500000 of 10000000 left, ${unit}` },
    { name: 'Budget 2', value: `2500000 counted, 77500000 of 100000000 left, ${unit}` },
    { name: 'Budget 3', value: '0.00012 counted, 0.00088 of 0.001 left, in ETH' },
  ])
  const { receipt } = await issueGoldenV2(goldenVaults.revocation)
  const words = say({ receipt, policy: policyOf('revocation') })
  const key = receipt.kind === 'revocation' && receipt.subject.key
  expect(words.title).toBe('A revoked agent')
  expect(words.facts).toContainEqual({ name: 'Agent key', value: key })
})

test('describes a contract call, and shows the number of an unnamed chain', () => {
  const receipt = {
    ...one.receipt,
    transaction: { ...one.receipt.transaction, chainId: 5, data: '0xa9059cbb' } as const,
  }
  const { title, sentence, facts } = say({ receipt })
  expect(title).toBe('A contract call with 1 of the chain’s coin')
  expect(sentence).toMatch(/^To 0x\w{40} on Chain 5, with 4 bytes of data\. The wallet/)
  expect(facts).toContainEqual({ name: 'Chain', value: '5' })
})

test('shows the log entry with its cosigners, and escapes the origin for terminals', () => {
  const logged = {
    origin: 'log.example/\u009b31ma',
    index: 6,
    size: 11,
    cosigners: ['a', 'c'],
    timesS: [1, 2],
    witnesses: 3,
    quorum: 2,
    cosignedAt: '2026-06-15T12:00:01.000Z',
  }
  const { facts } = say({ receipt: transaction.receipt, logged }, { toTime: () => 'noon' })
  expect(facts.slice(-3)).toEqual([
    { name: 'Log', value: expect.stringMatching(/^entry 6 of log\.example\/[^\u009b]+31ma, tree size 11$/) },
    { name: 'Witnesses', value: '2 of 3 cosigned (2 required)' },
    { name: 'Cosigned', value: 'by noon, according to the witnesses’ clocks' },
  ])
})

describe('attributes unproven content to the receipt, for every kind', () => {
  const allowedMock = { ...verified, verdict: 'mock' } as const
  const receipts = [one, transaction, authorization, message, address].map(({ receipt }) => receipt)
  const reservation = 'This is not proven, only stated in the receipt: '

  test.each([
    { ...verified, verdict: 'failed' },
    { ...verified, verdict: 'incomplete' },
    { ...verified, verdict: 'unknown-code', isKnownCode: false },
    { ...allowedMock, isMockRefused: true },
    { ...allowedMock, isKnownCode: false },
  ] as const)('$verdict, refused: $isMockRefused, known code: $isKnownCode', (checkedReceipt) => {
    expect(nameSigned(checkedReceipt)).toBe('Stated in the receipt')
    for (const receipt of receipts) {
      expect(say({ receipt, ...checkedReceipt }).sentence).toBe(`${reservation}${say({ receipt }).sentence}`)
    }
  })

  test.each([verified, { ...verified, verdict: 'late' }, { ...verified, verdict: 'unbounded' }, allowedMock] as const)(
    'but not for $verdict',
    (checkedReceipt) => {
      expect(nameSigned(checkedReceipt)).toBe('What was signed')
      for (const receipt of receipts) expect(say({ receipt, ...checkedReceipt }).sentence).not.toContain(reservation)
    },
  )
})

test('warns that an authorized code can act for the wallet', () => {
  const { sentence, warnings } = say({ receipt: authorization.receipt })
  expect(sentence).toMatch(/authorized the code at 0x(7e){20} to act for it on Local chain \(EIP-7702\)/i)
  expect(warnings.join()).toContain('all of the wallet’s assets')
})

test('an authorization of the zero address ends a delegation, without a warning', async () => {
  const none = { kind: 'authorization', authorization: { address: `0x${'00'.repeat(20)}` } } as const
  const { receipt } = await issueGoldenV2({ signing: none })
  const { title, sentence, warnings } = say({ receipt })
  expect(title).toBe('Removal of a delegation')
  expect(sentence).toContain('removes its delegation')
  expect(warnings).toEqual([])
})

test('shows off-chain content only from an opening', () => {
  const { content } = message.opening ?? {}
  if (typeof content !== 'object') throw new Error('the simulator shows the content')
  expect(say({ receipt: message.receipt }).sentence).toContain('signed a message or typed data on 2026-06-15')
  expect(JSON.stringify(say({ receipt: message.receipt }))).not.toContain('hello')
  expect(say({ receipt: message.receipt, content }).facts).toContainEqual({
    name: 'Message',
    value: 'hello',
  })
})

describe('a vault', async () => {
  const vault = await issueGoldenV2(goldenVaults.transaction)
  const offChain = await issueGoldenV2(goldenVaults['off-chain'])
  const content = offChain.opening?.content as OpeningContent
  const valuesOf = ({ facts }: ReturnType<typeof say>, wanted: string) =>
    facts.filter(({ name }) => name === wanted).map(({ value }) => value)

  test('shows all rules, the common limits, and the approvers', () => {
    const words = say({ receipt: vault.receipt, policy: approved })
    expect(valuesOf(words, 'Rules')[0]).toContain('Up to 0.1 ')
    expect(words.facts.filter(({ name }) => /^Rule \d$/.test(name))).toHaveLength(4)
    expect(valuesOf(words, 'Note')).not.toEqual([])
    expect(valuesOf(words, 'Approved by')).toEqual(['passkey 1 of 2, at vault.example'])
    expect(valuesOf(words, 'Policy')).toEqual([vault.receipt.signer.statement.policy])
  })

  test('shows off-chain approvers only from an opening', () => {
    const approversOf = (shown?: OpeningContent) =>
      valuesOf(say({ receipt: offChain.receipt, content: shown, policy: approved }), 'Approved by')
    expect(approversOf()).toEqual([])
    expect(approversOf(content)).toHaveLength(1)
    expect(approversOf({ ...content, approvals: [{ approver: 'me' }] as never })).toEqual([])
  })

  test('shows no rules if they differ from the statement’s, or for a wallet without rules', () => {
    const unknown = say({ receipt: vault.receipt })
    expect([valuesOf(unknown, 'Rules'), valuesOf(unknown, 'Policy')]).toEqual([
      [],
      [vault.receipt.signer.statement.policy],
    ])
    expect(valuesOf(say({ receipt: transaction.receipt, policy: approved }), 'Policy')).toEqual([])
  })

  test('names the owner of an address with an opening only', () => {
    const from = toChecksumAddress(address.receipt.signer.statement.address)
    const { sentence } = say({ receipt: address.receipt })
    expect(sentence).toContain('Only its owner can show whose it is, with an opening.')
    expect(valuesOf(say({ receipt: address.receipt }), 'Owner')).toEqual(['sealed'])
    const identity = { issuer: 'https://issuer.example', subject: 'a-1', email: 'alice@example.com' }
    const named = say({ receipt: address.receipt, owner: identity })
    expect(named.sentence).toContain(`${from} belongs to alice@example.com at https://issuer.example.`)
    expect(valuesOf(named, 'Owner')).toEqual(['alice@example.com at https://issuer.example'])
    expect(valuesOf(named, 'Subject')).toEqual(['a-1'])
    const nameless = say({ receipt: address.receipt, owner: { ...identity, email: null } })
    expect(nameless.sentence).toContain(`${from} belongs to the user "a-1" at https://issuer.example.`)
    expect(say({ receipt: transaction.receipt, owner: identity })).toEqual(say({ receipt: transaction.receipt }))
  })

  test('replaces misleading characters of an owner', () => {
    const owner = { issuer: 'https://issuer.example', subject: 'a\u001b[2K', email: 'al\u202eice@example.com' }
    for (const one of [owner, { ...owner, email: null }]) {
      const { sentence, facts } = say({ receipt: address.receipt, owner: one })
      for (const text of [sentence, ...facts.map(({ value }) => value)]) expect(text).not.toMatch(/\p{Cc}|\p{Cf}/u)
    }
  })

  test('describes an address without a signature', async () => {
    expect(say({ receipt: address.receipt, policy: approved }).title).toBe('The address of a vault')
    const { receipt } = await issueGoldenV2(goldenVaults['wallet-address'])
    expect(say({ receipt }).title).toBe('The address of a wallet')
  })
})
