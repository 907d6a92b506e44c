import type { OpeningContent } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { approved, goldenVaults } from '../../receipt/src/vaults.fake.ts'
import { describeSigned } from './describeSigned.ts'
import { describeVault } from './describeVault.ts'
import { issueGoldenV2 } from './issues.fake.ts'

const transaction = await issueGoldenV2(goldenVaults.transaction)
const offChain = await issueGoldenV2(goldenVaults['off-chain'])
const address = await issueGoldenV2(goldenVaults.address)
const policy = approved
const verified = { verdict: 'verified', isMockRefused: false, isKnownCode: true, content: undefined } as const
const content = offChain.opening?.content as OpeningContent
const valuesOf = (facts: readonly { name: string; value: string }[], wanted: string) =>
  facts.filter(({ name }) => name === wanted).map(({ value }) => value)

describe('a vault in words', () => {
  test('has the rules, what holds for all of them, and who approved', () => {
    const { facts } = describeSigned({ ...verified, receipt: transaction.receipt, policy })
    expect(valuesOf(facts, 'Rules')[0]).toContain('Up to 0.1 ')
    expect(facts.filter(({ name }) => /^Rule \d$/.test(name))).toHaveLength(4)
    expect(valuesOf(facts, 'Note')[0]).toContain('These rules can never change.')
    expect(valuesOf(facts, 'Approved by')).toEqual(['passkey 1 of 2, at vault.example'])
    expect(valuesOf(facts, 'Policy')).toEqual([transaction.receipt.signer.statement.policy])
  })

  test('off the chain says who approved only where its owner shows it', () => {
    const { receipt } = offChain
    expect(valuesOf(describeVault({ receipt, content: undefined, policy }), 'Approved by')).toEqual([])
    expect(valuesOf(describeVault({ receipt, content, policy }), 'Approved by')).toHaveLength(1)
    const malformed = { ...content, approvals: [{ approver: 'me' }] }
    expect(valuesOf(describeVault({ receipt, content: malformed, policy }), 'Approved by')).toEqual([])
  })

  test('says nothing of rules that are not those in the statement, and nothing for a wallet without rules', async () => {
    expect(describeVault({ receipt: transaction.receipt, content: undefined, policy: undefined })).toEqual([
      { name: 'Policy', value: transaction.receipt.signer.statement.policy },
    ])
    const { receipt } = await issueGoldenV2()
    expect(describeVault({ receipt, content: undefined, policy })).toEqual([])
  })

  test('an address is no signature: title and sentence say so', async () => {
    const words = describeSigned({ ...verified, receipt: address.receipt, policy })
    expect(words.title).toBe('The address of a vault')
    expect(words.sentence).toContain('Nothing was signed with that key.')
    const { receipt } = await issueGoldenV2(goldenVaults['wallet-address'])
    expect(describeSigned({ ...verified, receipt }).title).toBe('The address of a wallet')
  })
})
