export type { Approval, Approver, Policy } from '@countersign/policy'
export { type ApproveOptions, approve, approveRevocation } from './approve.ts'
export {
  type CreatePasskeyParameters,
  createPasskey,
  type Passkey,
  type PasskeyCredential,
} from './createPasskey.ts'
export { isVaultError, type VaultErrorCode } from './errors.ts'
export { type PrepareOptions, type PrepareRequest, prepare } from './prepare.ts'
export { type Prepared, parsePrepared } from './prepared.ts'
export { type SignPreparedResult, sendPrepared, signPrepared } from './signPrepared.ts'
export { signAndSend, toVaultClient, type VaultSignRequest } from './toVaultClient.ts'
export { toPolicyFile, type Vault } from './vault.ts'
export {
  type AttestAddressResult,
  attestVault,
  attestWallet,
  type CreateVaultOptions,
  createVault,
  getBudget,
  listVaults,
  revokeKey,
} from './vaultCalls.ts'
