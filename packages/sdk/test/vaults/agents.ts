import { createPolicy, type Policy, type SpendRule, X402_SPENDERS } from '@countersign/policy'
import { type Hex, toCanonicalJson } from '@countersign/protocol'
import { parseEther } from 'viem'
import { onTestFinished } from 'vitest'
import { createAgentKey } from '../../src/agent/agentKey.ts'
import { type AgentProof, createAgent } from '../../src/agent/createAgent.ts'
import { createVault } from '../../src/vaults/vaultCalls.ts'
import { alice, startVault } from './vaults.ts'

export const token: Hex = '0x5fbdb2315678afecb367f032d93f642f64180aa3'
const WITNESS = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const LIFE = { chainId: 31337, periodS: 0 }

export type StartAgentOptions = {
  /** Changes the agent's rule. */
  rule?: Partial<SpendRule>
  /** Replaces the policy's rules. */
  toRules?: (spend: SpendRule) => Policy['rules']
}

/** A vault with a budget of 100 of a token and 0.1 ether, a passkey, and an agent that pays Alice. */
export async function startAgent({ rule, toRules = (spend) => [spend] }: StartAgentOptions = {}) {
  const started = await startVault()
  onTestFinished(started.stop)
  const { key, publicKey } = await createAgentKey()
  const [passkey] = started.passkeys
  const given: Policy = {
    version: 1,
    log: { origin: 'log.example/a', witnesses: [WITNESS], quorum: 1 },
    approvers: [{ type: 'key', publicKey }, passkey.approver],
    budgets: [
      { ...LIFE, token, limit: '100' },
      { ...LIFE, token: null, limit: String(parseEther('0.1')) },
    ],
    rules: toRules({
      kind: 'spend',
      chainIds: [31337],
      payees: [alice],
      forms: ['eip3009', 'coin', 'transfer'],
      approvals: 1,
      approvers: [0],
      session: false,
      ...rule,
    }),
  }
  const policy = createPolicy(given)
  const vault = await createVault(started.client, policy)
  const proofs: AgentProof[] = []
  const text = new TextDecoder().decode(toCanonicalJson(policy))
  const parameters = {
    apiBaseUrl: started.client.config.apiBaseUrl,
    vault: { address: vault.address, policy: text },
    key,
    onProof: (proof: AgentProof) => void proofs.push(proof),
  }
  const credentials = [passkey]
  return { ...started, vault, credentials, key, publicKey, proofs, parameters, agent: createAgent(parameters) }
}

/** EIP-3009, as x402 asks for it. */
export function toPayment(from: Hex, value: bigint, { to = alice, chainId = 31337, nonce = 1 } = {}) {
  const nowS = Math.floor(Date.now() / 1000)
  const types = {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ],
  } as const
  const message = {
    from,
    to,
    value,
    validAfter: BigInt(nowS - 600),
    validBefore: BigInt(nowS + 300),
    nonce: `0x${nonce.toString(16).padStart(64, '0')}` satisfies Hex,
  }
  const domain = { name: 'Test Dollar', version: '1', chainId, verifyingContract: token }
  return { domain, types, primaryType: 'TransferWithAuthorization', message } as const
}

/** Permit2's witness, for tokens without EIP-3009. */
export function toPermit(amount: bigint, { spender = X402_SPENDERS[0] as Hex, to = alice } = {}) {
  const nowS = BigInt(Math.floor(Date.now() / 1000))
  const types = {
    PermitWitnessTransferFrom: [
      { name: 'permitted', type: 'TokenPermissions' },
      { name: 'spender', type: 'address' },
      { name: 'nonce', type: 'uint256' },
      { name: 'deadline', type: 'uint256' },
      { name: 'witness', type: 'Witness' },
    ],
    TokenPermissions: [
      { name: 'token', type: 'address' },
      { name: 'amount', type: 'uint256' },
    ],
    Witness: [
      { name: 'to', type: 'address' },
      { name: 'validAfter', type: 'uint256' },
    ],
  } as const
  const permitted = { token, amount }
  const message = { permitted, spender, nonce: 1n, deadline: nowS + 300n, witness: { to, validAfter: nowS - 600n } }
  const verifyingContract: Hex = '0x000000000022d473030f116ddee9f6b43ac78ba3'
  const domain = { name: 'Permit2', chainId: 31337, verifyingContract }
  return { domain, types, primaryType: 'PermitWitnessTransferFrom', message } as const
}
