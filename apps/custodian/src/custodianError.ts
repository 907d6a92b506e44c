/** What a custodian is told, and why nothing was sent. */
export class CustodianError extends Error {
  override name = 'CustodianError'
}
