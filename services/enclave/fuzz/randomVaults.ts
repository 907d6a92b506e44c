import { createPolicy } from '@countersign/policy'
import type {
  Approval,
  PasskeyApproval,
  SignItem,
  Stamp,
  TransactionItem,
  TxMetadata,
  VaultUse,
} from '@countersign/protocol'
import fc from 'fast-check'
import { limited, payment as paymentRule } from '../../../packages/policy/test/policies.ts'
import { createClient } from '../test/clientKey.ts'
import { approve, createVault, large, now, openSession, payment, sign, toTransaction } from '../test/vault.ts'

const owner = openSession('alice')
const vault = createVault(owner)
/** Rules without approvals, as a thief would want them. */
const open = createVault(
  owner,
  createPolicy({ ...limited, rules: [{ ...paymentRule, maxValueWei: large.value.repeat(3) }] }),
)
const bobs = createVault(openSession('bob'))
const threshold = 10n ** 17n

type Try = { item: TransactionItem & { vault: VaultUse }; text: string | undefined; at: number }
type Tampering = (attempt: Try, random: { natural(max: number): number }) => SignItem | Try

const withApprovals = ({ item, ...rest }: Try, approvals: readonly Approval[]): Try => ({
  ...rest,
  item: { ...item, vault: { ...item.vault, approvals } },
})
const firstOf = ({ item }: Try) => item.vault.approvals?.[0] as PasskeyApproval

/** A session of the owner that signs nothing without a stamp of this key. */
const [browser, thief] = [createClient(), createClient()]
const bound = openSession('alice', browser.clientKey)
const toStamp = ({ digest, vault: { rule = 0 } }: Try['item'], by = browser, issuedMs = now) =>
  by.stamp({
    address: vault.address,
    vault: { policy: vault.hash, rule },
    kind: 'transaction',
    digest: Buffer.from(digest.slice(2), 'hex'),
    issuedMs,
  })
const withStamp = ({ item, ...rest }: Try, stamp: Stamp | undefined): Try => ({
  ...rest,
  item: { ...item, grant: bound.grant, ...(stamp && { stamp }) },
})

/** Each takes an approved payment above the threshold and makes it invalid. */
const tamperings: Tampering[] = [
  (attempt) => withApprovals(attempt, []),
  ({
    item: {
      vault: { approvals: _, ...use },
      ...item
    },
    ...rest
  }) => ({ ...rest, item: { ...item, vault: use } }),
  // Changes one digit of the approval.
  (attempt, { natural }) => {
    const approval = firstOf(attempt)
    const names = ['authenticatorData', 'clientDataJSON', 'signature'] as const
    const name = names[natural(2)] as (typeof names)[number]
    const at = natural(approval[name].length - 1)
    const digit = ((Number.parseInt(approval[name].charAt(at), 16) + 1 + natural(14)) % 16).toString(16)
    return withApprovals(attempt, [
      { ...approval, [name]: approval[name].slice(0, at) + digit + approval[name].slice(at + 1) },
    ])
  },
  (attempt, { natural }) => withApprovals(attempt, [{ ...firstOf(attempt), expiresMs: now + 1 + natural(59_998) }]),
  (attempt, { natural }) => withApprovals(attempt, [{ ...firstOf(attempt), approver: 1 + natural(5) }]),
  (attempt) => withApprovals(attempt, [firstOf(attempt), firstOf(attempt)]),
  (attempt, { natural }) =>
    withApprovals(attempt, [approve(vault, { digest: attempt.item.digest, expiresMs: natural(now) })]),
  (attempt, { natural }) =>
    withApprovals(attempt, [
      approve(vault, { digest: attempt.item.digest, expiresMs: now + 86_400_001 + natural(1e9) }),
    ]),
  (attempt) => withApprovals(attempt, [approve(vault, { digest: attempt.item.digest, kind: 'message' })]),
  (attempt, { natural }) => {
    const { digest, vault: use } = attempt.item
    return withApprovals(attempt, [approve(vault, { digest, rule: ((use.rule ?? 0) + 1 + natural(253)) % 255 })])
  },
  (attempt) => withApprovals(attempt, [approve(open, { digest: attempt.item.digest })]),
  (attempt) => withApprovals(attempt, [approve(bobs, { digest: attempt.item.digest })]),
  (attempt) => withApprovals(attempt, [approve(vault, { digest: toTransaction(vault, payment).digest })]),
  // Keeps the approval and changes the transaction, with the new digest or the approved one.
  (attempt, { natural }) => changeTransaction(attempt, { nonce: attempt.item.txMetadata.nonce + 1 + natural(100) }),
  (attempt, { natural }) =>
    changeTransaction(attempt, { value: String(BigInt(attempt.item.txMetadata.value) + 1n + BigInt(natural(1e9))) }),
  ({ item, ...rest }) => ({ ...rest, item: { ...item, txMetadata: payment } }),
  // Changes the rules, or uses another vault's.
  (attempt) => ({ ...withApprovals(attempt, []), text: open.text }),
  (attempt) => ({ ...withApprovals(attempt, []), text: undefined }),
  ({ item, ...rest }) => ({ ...rest, item: { ...item, vault: { policy: open.hash, rule: 0 } }, text: open.text }),
  ({ item, ...rest }) => ({ ...rest, item: { ...item, keyId: bobs.keyId } }),
  ({ item, ...rest }) => ({ ...rest, item: { ...item, grant: bobs.granted.grant } }),
  ({ item, at }) => {
    const { vault: _, ...bare } = item
    return { item: bare as typeof item, text: undefined, at }
  },
  ({ item: { sid, grant, keyId, witness, vault: use } }) => {
    const authorization = { chainId: 1, address: payment.to, nonce: 0 }
    return { sid, grant, keyId, witness, vault: use, kind: 'authorization', authorization }
  },
  ({ item: { sid, grant, keyId, witness, vault: use } }) => {
    return { sid, grant, keyId, witness, vault: use, kind: 'message', content: { message: '0x00' } }
  },
  (attempt) => ({ ...attempt, at: now + 60_000 }),
  // Another rule is named, or none.
  (attempt) => withRule(attempt, toTransaction(vault, payment).vault.rule),
  (attempt, { natural }) => withRule(attempt, 2 + natural(300)),
  (attempt) => withRule(attempt, undefined),
  // The session has a client key, and the stamp is missing, of another key or request, changed, or too old or new.
  (attempt) => withStamp(attempt, undefined),
  (attempt) => withStamp(attempt, toStamp(attempt.item, thief)),
  (attempt, { natural }) => withStamp(attempt, toStamp(attempt.item, browser, now - 300_001 - natural(1e9))),
  (attempt, { natural }) => withStamp(attempt, toStamp(attempt.item, browser, now + 60_001 + natural(1e9))),
  (attempt) => withStamp(attempt, toStamp(toTransaction(vault, payment))),
  (attempt, { natural }) => {
    const stamp = toStamp(attempt.item)
    return withStamp(attempt, { ...stamp, issuedMs: now - 1 - natural(299_999) })
  },
  (attempt, { natural }) => {
    const stamp = toStamp(attempt.item)
    const signature = Buffer.from(stamp.signature, 'hex')
    const at = natural(63)
    signature[at] = (signature[at] as number) ^ (1 << natural(7))
    return withStamp(attempt, { ...stamp, signature: signature.toString('hex') })
  },
  // A stamp in a session without a client key.
  ({ item, ...rest }) => ({ ...rest, item: { ...item, stamp: toStamp(item) } }),
  // The stamp is right, and the approval is missing.
  (attempt) => withApprovals(withStamp(attempt, toStamp(attempt.item)), []),
]

function withRule({ item, ...rest }: Try, rule: number | undefined): Try {
  const { rule: _, ...use } = item.vault
  return { ...rest, item: { ...item, vault: { ...use, ...(rule !== undefined && { rule }) } } }
}

function changeTransaction({ item, ...rest }: Try, changes: Partial<TxMetadata>): Try {
  return { ...rest, item: { ...item, ...toTransaction(vault, { ...item.txMetadata, ...changes }), vault: item.vault } }
}

/**
 * Requests payments above the amount that needs no approval, with tampered sessions and approvals. Returns how many were signed, which must
 * be none, and why the others were rejected. Signs the untampered payment before each try.
 */
export function tryVaults({ runs, seed }: { runs: number; seed: number }) {
  const errors = new Map<string, number>()
  let signed = 0
  const amount = fc.bigInt(threshold + 1n, 10n ** 24n)
  const randomness = fc.infiniteStream(fc.nat())
  fc.assert(
    fc.property(amount, fc.nat(1e6), fc.constantFrom(...tamperings), randomness, (value, nonce, tamper, stream) => {
      const natural = (max: number) => Number(stream.next().value) % (max + 1)
      const item = toTransaction(vault, { ...payment, value: String(value), nonce })
      const attempt = withApprovals({ item, text: vault.text, at: now }, [approve(vault, { digest: item.digest })])
      for (const { item } of [attempt, withStamp(attempt, toStamp(attempt.item))]) {
        if ('error' in sign(item, { policy: vault.text })) throw new Error('an approved payment was rejected')
      }
      const tampered = tamper(attempt, { natural })
      const tried = 'item' in tampered ? tampered : { ...attempt, item: tampered }
      const outcome = sign(tried.item, tried.text === undefined ? undefined : { policy: tried.text }, { at: tried.at })
      if (!('error' in outcome)) signed += 1
      else errors.set(outcome.error, (errors.get(outcome.error) ?? 0) + 1)
    }),
    { numRuns: runs, seed },
  )
  return { tries: runs, signed, errors }
}
