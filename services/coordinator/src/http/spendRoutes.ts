import { hash } from 'node:crypto'
import { countSpends, type Policy, parseStateHex } from '@countersign/policy'
import {
  type Approval,
  type ApprovalKind,
  type EndpointRequest,
  type EndpointResponse,
  fromHex,
  type Hex,
  MAX_RULES,
  parseRequest,
  toEventHash,
  type VaultBudgetInfo,
} from '@countersign/protocol'
import type { SignerFinder } from '../accounts/session.ts'
import { budgetUnavailable, CoordinatorError, invalidBody, invalidRequest } from '../errors.ts'
import type { LogService } from '../log/logService.ts'
import type { Access, SignContent } from '../sign/contents.ts'
import type { SignJob, SignResult } from '../sign/job.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock } from '../system.ts'
import type { AppContext } from './context.ts'
import { type CookieRules, readSessionSecret } from './cookies.ts'
import { type Limiters, limit, limitByUser } from './limiters.ts'
import { type ChainLimits, parseWallet, toOffChain, toTransaction } from './parseSigning.ts'
import { readJsonBody } from './readBody.ts'
import type { Handlers } from './router.ts'
import type { RuledSign } from './ruledSign.ts'
import { toSignature } from './signRoutes.ts'

export type SpendRoutesDeps = {
  store: Pick<Store, 'findVaultAt' | 'findSigned'>
  signers: SignerFinder
  clock: Clock
  sign(request: SignJob): Promise<SignResult>
  ruledSign: RuledSign
  /** Present if the enclaves have logs. */
  logService?: Pick<LogService, 'findState'> | undefined
  /** Undefined allows all chains. */
  allowedChainIds: readonly number[] | undefined
  isChainRequired: boolean
  cookies: CookieRules
  limiters: Limiters
}

/** For callers without a session. */
const MAX_BYTES = 4_096

type Vault = NonNullable<SignJob['vault']>
/** What approvals must cover. */
type Approved = { rule: number; kind: ApprovalKind; digest: Uint8Array; required: number }

/** Payments of agents, and the budgets and keys that limit them. */
export function registerSpendRoutes(handlers: Handlers, deps: SpendRoutesDeps): void {
  const { store, signers, clock, ruledSign, cookies, limiters } = deps
  const { vaultRules } = ruledSign

  /** The vault of a caller whose approvals replace a session. Unknown vaults and wrong approvals get the same answer. */
  async function findApproved(
    address: Hex,
    approvals: readonly Approval[],
    toApproved: (policy: Policy) => Approved | undefined,
  ) {
    const found = await store.findVaultAt(address)
    if (found !== undefined) {
      const { userId, owner, kmsKeyId: keyId, id: walletId, policy } = found
      const rules = vaultRules.read(policy)
      const job = { owner, keyId, walletId, address, vault: { policy, rules, approvals } }
      const approved = toApproved(rules)
      if (approved !== undefined && vaultRules.isApproved(job, approved)) return { userId, job }
    }
    const details = 'no such vault or rule without a session, or the approvals are not valid for it'
    throw new CoordinatorError('approval_invalid', 'the approvals are not valid', { details })
  }

  /** The vault of the session's user. */
  async function findOwn(c: AppContext, limiter: Limiters['own']) {
    const query = { sid: readSessionSecret(cookies, c.req), digest: undefined, wallet: readAddress(c) }
    const found = await limitByUser(c, limiter, signers.find(query), ({ userId }) => userId)
    const { policy, walletId } = found
    if (policy === undefined || walletId === undefined) {
      throw new CoordinatorError('vault_not_found', 'the user has no such vault')
    }
    return { ...found, walletId, vault: { policy, rules: vaultRules.read(policy) } }
  }

  async function findSigned(walletId: string, digest: Hex | undefined): Promise<SignResult | undefined> {
    const [signed] = digest === undefined ? [] : await store.findSigned([{ walletId, digest }])
    return signed
  }

  handlers.set('POST /vaults/:address/sign', async (c) => {
    limit(c, limiters.sign)
    const body = await readJsonBody(c.incoming, { maxBytes: MAX_BYTES })
    const payment = parseRequest('POST /vaults/:address/sign', body, invalidBody)
    const { kind, rule, approvals } = payment
    const address = readAddress(c)
    const content = toContent(payment, deps)
    const repeatDigest = content.kind === 'transaction' ? content.digest : undefined
    const digest = fromHex(content.digest.slice(2))
    const { userId, job } = await findApproved(address, approvals, ({ rules }) => {
      const named = rules[rule]
      const isOpen = named?.kind === 'spend' && !named.session
      return isOpen ? { rule, kind, digest, required: named.approvals } : undefined
    })
    // Only after the approvals, so that nobody else can use up the limit of a vault.
    limit(c, limiters.sign, `vault:${address}`)
    const { signature, slug, opening } =
      (await findSigned(job.walletId, repeatDigest)) ??
      (await ruledSign.sign(c, { ...job, vault: { ...job.vault, rule }, content }, { userId, repeatDigest }))
    const answer: EndpointResponse<'POST /vaults/:address/sign'> = { signature: toSignature(signature), slug }
    return c.json({ ...answer, ...(opening && { opening }) })
  })

  handlers.set('GET /vaults/:address/budget', async (c) => {
    const { keyId, vault } = await findOwn(c, limiters.own)
    const { budgets = [], log, approvers } = vault.rules
    const origin = log?.origin
    if (origin !== undefined && deps.logService === undefined) throw budgetUnavailable('this service has no log')
    const proof = (log && origin && (await deps.logService?.findState({ origin, keyId, need: log }))) || null
    const state = proof === null ? undefined : parseStateHex(proof.state)
    const { sequence = 0, revoked = 0, counters = [] } = state ?? {}
    const time = Math.floor(clock.now() / 1000)
    const counted = countSpends(
      budgets,
      counters,
      budgets.map(({ chainId, token }) => ({ chainId, token, amount: 0n })),
      time,
    )
    const answer: VaultBudgetInfo = {
      time,
      sequence,
      budgets: budgets.map(({ limit }, index) => {
        const { window, spent } = counters[index] ?? { window: 0, spent: 0n }
        const before = counted.allowed ? (counted.changes[index]?.before ?? 0n) : BigInt(limit)
        return { window, spent: String(spent), left: String(BigInt(limit) - before) }
      }),
      revoked: approvers.flatMap(({ publicKey }, index) => ((revoked >>> index) & 1 ? publicKey : [])),
      proof,
    }
    return c.json(answer)
  })

  handlers.set('POST /vaults/:address/revoke', async (c) => {
    const body = await readJsonBody(c.incoming, { maxBytes: MAX_BYTES })
    const { key, approvals = [], stamp } = parseRequest('POST /vaults/:address/revoke', body, invalidBody)
    if (approvals.length === 0) {
      const { sid, grant, isBound, keyId, address, walletId, vault } = await findOwn(c, limiters.sign)
      if (isBound && stamp === undefined) throw new CoordinatorError('stamp_missing', 'the request has no stamp')
      return c.json(await revoke({ sid, grant, keyId, address, walletId, vault, stamp }, key))
    }
    limit(c, limiters.sign)
    const digest = hash('sha256', fromHex(key), 'buffer')
    const toApproved = () => ({ rule: MAX_RULES, kind: 'revocation' as const, digest, required: 1 })
    const { job } = await findApproved(readAddress(c), approvals, toApproved)
    return c.json(await revoke(job, key))
  })

  /** Not counted into the quota: a user must always be able to revoke a key. */
  async function revoke(job: Access & Omit<SignJob, 'content' | keyof Access> & { vault: Vault }, key: string) {
    const { address, walletId, vault } = job
    if (!vault.rules.approvers.some(({ type, publicKey }) => type === 'key' && publicKey === key)) {
      throw invalidRequest('key is not of an agent of this vault')
    }
    const digest = toEventHash({ kind: 'revocation', subject: { address, policy: vault.policy.hash, key } })
    const content: SignContent = { kind: 'revocation', key, digest }
    const { slug } = (await findSigned(walletId, digest)) ?? (await deps.sign({ ...job, content }))
    return { slug }
  }
}

function readAddress({ params }: AppContext): Hex {
  return parseWallet(params.address ?? '', 'address') as Hex
}

type Payment = EndpointRequest<'POST /vaults/:address/sign'>

function toContent(payment: Payment, limits: ChainLimits): SignContent {
  if (payment.kind === 'transaction') return toTransaction(payment, limits)
  const { kind, rule: _, approvals: __, ...content } = payment
  return toOffChain({ kind, content }, limits)
}
