/** Why a command failed, in words for the custodian. */
export class CustodianError extends Error {
  override name = 'CustodianError'
}
