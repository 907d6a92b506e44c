import { fromHex, type KeyApproval, toAgentApprovalBytes, toHex } from '@countersign/protocol'
import { ed25519 } from '@noble/curves/ed25519.js'
import type { AgentKey } from '../src/policy.ts'
import type { ApprovalRequest } from './passkey.ts'

export type Agent = {
  approver: AgentKey
  approve(request: ApprovalRequest, approver: number): KeyApproval
}

/** The key of a program, with a published secret: all bytes equal. */
export function createAgent(byte: number): Agent {
  const secretKey = new Uint8Array(32).fill(byte)
  return {
    approver: { type: 'key', publicKey: toHex(ed25519.getPublicKey(secretKey)) },
    approve({ vaultAddress, expiresMs, ...request }, approver) {
      const approved = { ...request, expiresMs, vaultAddress: fromHex(vaultAddress.slice(2)) }
      return { approver, expiresMs, signature: toHex(ed25519.sign(toAgentApprovalBytes(approved), secretKey)) }
    },
  }
}
