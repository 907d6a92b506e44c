import { type Policy, readSpend, type SpendRequest } from '@countersign/policy'
import {
  fromHex,
  type Hex,
  isPlainObject,
  type KeyApproval,
  type Opening,
  parseCanonicalJson,
  type SignDigestRequest,
  signDigestResponse,
  toAgentApprovalBytes,
  toHex,
  type WalletInfo,
} from '@countersign/protocol'
import type { Schema } from '@countersign/protocol/schema'
import { isAddress, type LocalAccount, sha256, stringToBytes } from 'viem'
import { toAccount } from 'viem/accounts'
import { createError } from '../client/errors.ts'
import { parseTypedData, type SignTypedDataRequest } from '../client/parseOffChain.ts'
import { request } from '../client/request.ts'
import { signTransaction } from '../client/signTransaction.ts'
import { offChainAnswer, verifyOffChain, withBudget } from '../client/verifyOffChain.ts'
import { requestSignature } from '../client/verifyWallet.ts'
import { createVaultError } from '../vaults/errors.ts'
import { parseTransaction } from '../viem/parseTransaction.ts'
import { importAgentKey } from './agentKey.ts'

/** The proof of a payment. */
export type AgentProof = {
  slug: string
  /** The proof in JSON, which anyone can read. */
  url: string
  /** Only for typed data. Store it: it is the only way to show what was signed. */
  opening?: Opening | undefined
}

export type CreateAgentParameters = {
  /** The service's origin. */
  apiBaseUrl: string
  /** The vault that pays. `policy` is the text of its policy file. */
  vault: { address: Hex; policy: string }
  /** The agent's secret Ed25519 key: 32 bytes in hex, as `createAgentKey` returns it. */
  key: string
  /** Called after each signature. */
  onProof?: ((proof: AgentProof) => void) | undefined
}

/** Long enough to send a request again if its answer was lost. */
const APPROVAL_MS = 60_000
const MAX_POLICY_BYTES = 16_384

type Signing = { content: SpendRequest; digest: Hex; members: object }

/**
 * A viem account that pays from a vault within its budgets, without a session. It signs the transactions and typed data that a rule of kind
 * `spend` allows with the approval of this key only. If a budget doesn't suffice, it rejects with `budget_exceeded` and what is `left`.
 *
 * @example
 * const account = createAgent({ apiBaseUrl, vault: { address, policy }, key, onProof: ({ url }) => console.log(url) })
 */
export function createAgent({ apiBaseUrl, vault, key, onProof }: CreateAgentParameters): LocalAccount {
  // The budget of the chain's coin limits the fees.
  const config = { apiBaseUrl: apiBaseUrl.replace(/\/+$/, ''), maxFeePerGas: 2n ** 256n }
  const { policy, policyHash } = readPolicy(vault.policy)
  if (!isAddress(vault.address)) throw createError('invalid_request', 'invalid address of the vault')
  const address = vault.address.toLowerCase() as Hex
  const wallet = { address }
  const importing = importAgentKey(key)
  // Each signature awaits it.
  importing.catch(() => {})

  /** Approves a request and sends it. */
  async function send<R>(schema: Schema<R>, { content, digest, members }: Signing) {
    const { privateKey, publicKey } = await importing
    const nowMs = Date.now()
    const { rule, approver } = findRule(policy, { content, publicKey, address, nowMs })
    const expiresMs = nowMs + APPROVAL_MS
    const bytes = toAgentApprovalBytes({
      vaultAddress: fromHex(address.slice(2)),
      policyHash,
      rule,
      kind: content.kind,
      digest: fromHex(digest.slice(2)),
      expiresMs,
    })
    const signature = toHex(new Uint8Array(await crypto.subtle.sign('Ed25519', privateKey, bytes)))
    const approvals: KeyApproval[] = [{ approver, expiresMs, signature }]
    const body = { kind: content.kind, ...members, rule, approvals }
    const path = `/vaults/${address}/sign`
    return { approvals, answer: await request(config, { method: 'POST', path, schema, body, credentials: 'omit' }) }
  }

  const client = {
    config,
    api: {
      // No session could have changed.
      getWallet: async () => wallet as WalletInfo,
      signDigest: async ({ digest, txMetadata }: SignDigestRequest) => {
        const content = { kind: 'transaction', txMetadata } as const
        return (await send(signDigestResponse, { content, digest, members: { digest, txMetadata } })).answer
      },
    },
  }

  function notify(slug: string, opening?: Opening) {
    const url = `${config.apiBaseUrl}/proof/${slug}`
    // In a microtask, so that an error in it can't keep the signature from the caller.
    if (onProof) queueMicrotask(() => onProof({ slug, url, ...(opening && { opening }) }))
  }

  return toAccount({
    address,
    async signTransaction(transaction, { serializer } = {}) {
      const { to, data, ...rest } = parseTransaction(transaction, { chainId: transaction.chainId, serializer })
      const unsigned = { ...rest, to: to.toLowerCase() as Hex, data: data.toLowerCase() as Hex }
      const { serializedTransaction, signed } = await signTransaction(client, { wallet, transaction: unsigned })
      notify(signed.attestationSlug)
      return serializedTransaction
    },
    async signTypedData(typedData) {
      const request = typedData as SignTypedDataRequest
      const sent = parseTypedData(request, Number(request.domain?.chainId ?? 0))
      const { digest, ...content } = sent
      const ask = () => send(offChainAnswer, { content, digest, members: content.content })
      const { approvals, answer } = await requestSignature(client, { wallet, ask, digest })
      const approved = withBudget({ ...sent, approvals }, answer)
      const { signature, attestationSlug, opening } = await verifyOffChain({ wallet, sent: approved, answer })
      notify(attestationSlug, opening)
      return signature
    },
    signMessage: rejectKind,
    signAuthorization: rejectKind,
    sign: rejectKind,
  })
}

/** No form of payment. */
async function rejectKind(): Promise<never> {
  throw createError('unsupported_method', 'an agent signs only payments: transactions and typed data')
}

/** The hash is over the text, so the text must be canonical. */
function readPolicy(text: string): { policy: Policy; policyHash: Uint8Array } {
  const bytes = stringToBytes(text)
  const policy = parseCanonicalJson(bytes, { maxBytes: MAX_POLICY_BYTES })
  const isPolicy = isPlainObject(policy) && Array.isArray(policy.rules) && Array.isArray(policy.approvers)
  if (!isPolicy) throw createError('invalid_request', 'the vault’s policy is not a policy')
  return { policy: policy as unknown as Policy, policyHash: sha256(bytes, 'bytes') }
}

type FindRuleParameters = { content: SpendRequest; publicKey: string; address: Hex; nowMs: number }

/** The first rule that allows the payment with this key's approval only. Uses the enclave's code. Throws `policy_refused`. */
function findRule(policy: Policy, { content, publicKey, address: vaultAddress, nowMs }: FindRuleParameters) {
  const approver = policy.approvers.findIndex((one) => one.type === 'key' && one.publicKey === publicKey)
  let details = 'no rule lets this key pay without a session'
  for (const [index, rule] of policy.rules.entries()) {
    if (rule.kind !== 'spend' || rule.session || rule.approvals > 1 || !rule.approvers.includes(approver)) continue
    const read = readSpend(rule, content, { vaultAddress, nowMs })
    if ('spends' in read) return { rule: index, approver }
    details = read.reasons.map(({ code }) => code).join(', ')
  }
  throw createVaultError('policy_refused', 'the rules of the vault do not allow this', { details })
}
